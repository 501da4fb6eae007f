// SPDX-License-Identifier: Apache-2.0
/* What does a process run? The look at it, and the answer to the kernel. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "log.h"
#include "pybpf.h"
#include "pybpf.skel.h"
#include "remote.h"
#include "session_processes_internal.h"

/*
 * A program that has not mapped a Python so long after its start is taken for another one, until it does. Meanwhile
 * records of mappings are looked for often, for its first Python instruction is not far.
 */
#define STARTING_S   0.5
#define LOOK_OFTEN_S 0.001
/* A loader that divides a mapping goes on to map: so much later one look can do for all of that. */
#define SOON_S 0.01
/* An interpreter that is not up yet is looked at again after so long, to validate its layout. */
#define VALIDATE_S 0.1
/*
 * A loader maps a library's code first, and over the place of its variables the rest of the file: until its second
 * mapping, and its clearing of .bss, memory there contradicts every layout (_dl_map_segments, glibc's
 * elf/dl-map-segments.h). It can be kept waiting for its CPU at any time, so what contradicts is read again: after
 * LOOK_OFTEN_S, then after as long as it has lasted, at most DOUBT_MOST_S. A contradiction that has lasted REFUSE_S is
 * a refusal, in a sentence; one of a process that has ended, if it had lasted REFUSE_ENDED_S.
 */
#define REFUSE_S       2.0
#define REFUSE_ENDED_S 0.1
#define DOUBT_MOST_S   1.0
/* One go of session_processes_look: stacks wait in their buffer meanwhile. */
#define LOOK_BUDGET_S 0.02

void session_stop_looking(struct session_processes *p, struct session_process *process)
{
	if (process->next_look > 0)
		DL_DELETE(p->looking, process);
	process->next_look = 0;
}

/* The record waits until the given time; when it waits already, until the sooner one. */
static void look_at(struct session_processes *p, struct session_process *process, double when)
{
	if (process->next_look > 0) {
		if (when < process->next_look)
			process->next_look = when;
		return;
	}
	process->next_look = when;
	DL_APPEND(p->looking, process);
}

double session_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int session_procs_fd(const struct session_processes *p)
{
	return bpf_map__fd(p->session->skel->maps.procs);
}

/* What the kernel knows of the record's process; -ESRCH when it runs another program by now, or has ended. */
int session_kernel_entry(const struct session_processes *p, const struct session_process *process,
			 struct pybpf_proc *entry)
{
	uint32_t tgid = (uint32_t)process->pid;
	int err = bpf_map_lookup_elem(session_procs_fd(p), &tgid, entry);

	return err == -ENOENT || (!err && entry->proc_id != process->proc_id) ? -ESRCH : err;
}

static int put_entry(const struct session_processes *p, const struct session_process *process,
		     const struct pybpf_proc *entry)
{
	uint32_t tgid = (uint32_t)process->pid;

	return bpf_map_update_elem(session_procs_fd(p), &tgid, entry, BPF_EXIST);
}

/*
 * Tells the kernel what the process is, and, unless NULL, where its interpreter lies. Returns 0, -ESRCH when it is that
 * no more, or another negative errno.
 */
int session_answer(const struct session_processes *p, const struct session_process *process,
		   enum pybpf_proc_state state, const struct pybpf_proc *place)
{
	struct pybpf_proc entry;
	int err = session_kernel_entry(p, process, &entry);

	if (err)
		return err;
	entry.state = state;
	entry.told = true;
	if (place) {
		entry.interp_head = place->interp_head;
		entry.tstate_current = place->tstate_current;
		entry.code_type = place->code_type;
		entry.layout = place->layout;
	}
	err = put_entry(p, process, &entry);
	return err == -ENOENT ? -ESRCH : err;
}

bool session_repair(const struct session_processes *p, const struct pybpf_process_event *event)
{
	const struct pybpf_proc right = {
		.mm = event->mm,
		.start = event->start,
		.proc_id = event->proc_id,
		.state = PYBPF_PROC_UNDECIDED,
		.told = true,
	};
	struct pybpf_proc entry;

	if (!event->other_id || bpf_map_lookup_elem(session_procs_fd(p), &event->tgid, &entry) ||
	    entry.proc_id != event->other_id)
		return false;
	return bpf_map_update_elem(session_procs_fd(p), &event->tgid, &right, BPF_EXIST) == 0;
}

void session_become_python(struct session_processes *p, struct session_process *process, uint32_t layout)
{
	int err;

	session_stop_looking(p, process);
	process->state = SESSION_PROCESS_PYTHON;
	process->layout = layout;
	p->python_found = true;
	err = pysym_add_process(p->session->pysym, process->proc_id, process->pid, session_layout(p->session, layout));
	if (err)
		p->error = err;
}

/* Makes the process one that is sampled. */
void session_make_ready(struct session_processes *p, struct session_process *process, const struct pybpf_proc *place)
{
	uint64_t interpreter = 0;
	int err;

	/* Before it is READY: the first samples may come at once. */
	session_become_python(p, process, place->layout);
	err = session_answer(p, process, PYBPF_PROC_READY, place);
	if (err && err != -ESRCH)
		log_error("cannot hand process %d to the kernel: %s", process->pid, strerror(-err));
	/* No interpreter yet: no sample with Python frames was missed. */
	process->in_time =
		!remote_read(process->pid, place->interp_head, &interpreter, sizeof(interpreter)) && !interpreter;
}

/* Does its name keep the process out? Then the kernel is told. */
bool session_is_unwanted(struct session_processes *p, struct session_process *process)
{
	const struct discovery_filter *names = p->session->options.names;
	struct discovery_container container;
	bool contained;

	if (!names)
		return false;
	contained = names->not_containers.count && !discovery_container_of(process->pid, &container);
	if (discovery_filter_passes_names(names, process->pid, process->comm, contained ? &container : NULL))
		return false;
	session_stop_looking(p, process);
	process->state = SESSION_PROCESS_UNWANTED;
	session_answer(p, process, PYBPF_PROC_UNWANTED, NULL);
	return true;
}

static struct pybpf_proc place_of(const struct discovery_python *python, uint32_t layout)
{
	return (struct pybpf_proc){
		.interp_head = python->interp_head_addr,
		.tstate_current = python->tstate_current_addr,
		.code_type = python->code_type_addr,
		.layout = layout,
	};
}

/* The program holds a Python: the kernel is told, and of the file for the next process. */
static void found_python(struct session_processes *p, struct session_process *process,
			 const struct discovery_python *python)
{
	struct pybpf_proc place, entry;
	int layout;

	/* After an exec that is yet to be heard of, what was found is not the program of this record and its file. */
	if (session_kernel_entry(p, process, &entry)) {
		session_stop_looking(p, process);
		return;
	}
	if (session_is_unwanted(p, process))
		return;
	layout = session_put_layout(p->session, &python->build.layout);
	if (layout < 0) {
		log_error("cannot hand process %d to the kernel: %s", process->pid, strerror(-layout));
		session_stop_looking(p, process);
		process->state = SESSION_PROCESS_REFUSED;
		return;
	}
	place = place_of(python, (uint32_t)layout);
	session_make_ready(p, process, &place);
	log_info("process %d (%.16s): Python %s in %s", process->pid, process->comm, python->version, python->path);
	if (session_files_add(p->session->files, &process->file, python, place.layout))
		return;
	/* Until one process of the file has been seen to agree with its layout. */
	process->python = malloc(sizeof(*python));
	if (!process->python)
		return;
	*process->python = *python;
	look_at(p, process, session_now());
}

static void clear_doubt(struct session_process *process)
{
	process->doubted = false;
	free(process->doubt);
	process->doubt = NULL;
}

/* Says, once, why the process in doubt is refused. */
static void say_refused(struct session_processes *p, struct session_process *process)
{
	if (!process->refusal_said)
		log_printf(process->wanted ? LOG_ERROR : LOG_INFO, "%s", process->doubt);
	process->refusal_said = true;
	free(process->doubt);
	process->doubt = NULL;
	process->state = SESSION_PROCESS_REFUSED;
	session_answer(p, process, p->session->options.all ? PYBPF_PROC_UNWANTED : PYBPF_PROC_UNDECIDED, NULL);
}

/* What the process's memory says contradicts what its files say. It is not sampled, and looked at again. */
static void doubt(struct session_processes *p, struct session_process *process, double now, const char *why)
{
	double pause;

	if (!process->doubted) {
		process->doubted = true;
		process->doubt_since = now;
		log_debug("%s; it may be about to start", why);
		session_answer(p, process, PYBPF_PROC_UNDECIDED, NULL);
	}
	pause = now - process->doubt_since;
	if (process->state != SESSION_PROCESS_REFUSED) {
		free(process->doubt);
		process->doubt = strdup(why);
		if (process->doubt && pause >= REFUSE_S)
			say_refused(p, process);
	}
	pause = pause < LOOK_OFTEN_S ? LOOK_OFTEN_S : pause > DOUBT_MOST_S ? DOUBT_MOST_S : pause;
	session_stop_looking(p, process);
	look_at(p, process, now + pause);
}

void session_say_doubt(struct session_processes *p, struct session_process *process)
{
	if (process->doubt && session_now() >= process->doubt_since + REFUSE_ENDED_S)
		say_refused(p, process);
}

static void refuse(struct session_processes *p, struct session_process *process, const char *why)
{
	session_stop_looking(p, process);
	process->state = SESSION_PROCESS_REFUSED;
	if (!p->session->options.all) {
		log_error("%s", why);
		return;
	}
	log_info("%s", why);
	session_answer(p, process, PYBPF_PROC_UNWANTED, NULL);
}

static void no_python(struct session_processes *p, struct session_process *process, double now)
{
	process->looked = true;
	if (now < process->look_since + STARTING_S) {
		session_stop_looking(p, process);
		look_at(p, process, process->look_since + STARTING_S);
		return;
	}
	session_stop_looking(p, process);
	process->state = SESSION_PROCESS_OTHER;
	/* Unless it was the program after an exec that is yet to be heard of. */
	if (!session_answer(p, process, PYBPF_PROC_OTHER, NULL) && !process->kind)
		session_files_add_other(p->session->files, &process->file);
}

static void look_for_python(struct session_processes *p, struct session_process *process, double now)
{
	struct discovery_python *python = malloc(sizeof(*python));
	enum discovery_result result;
	char why[512];

	if (!python) {
		p->error = -ENOMEM;
		return;
	}
	result = discovery_process(process->pid, python, why, sizeof(why));
	if (result == DISCOVERY_OK && python->start_time != process->start)
		result = DISCOVERY_GONE;
	if (result == DISCOVERY_OK || result == DISCOVERY_NOT_PYTHON)
		clear_doubt(process);
	switch (result) {
	case DISCOVERY_OK:
		found_python(p, process, python);
		break;
	case DISCOVERY_NOT_PYTHON:
		no_python(p, process, now);
		break;
	case DISCOVERY_CONTRADICTED:
		doubt(p, process, now, why);
		break;
	case DISCOVERY_GONE:
	case DISCOVERY_ZOMBIE:
		session_stop_looking(p, process);
		break;
	default:
		refuse(p, process, why);
	}
	free(python);
}

/* The contradiction was a loader's. Where its interpreter is not up yet, no sample with Python frames was missed. */
static void end_doubt(struct session_processes *p, struct session_process *process, bool interpreter_up)
{
	const struct pybpf_proc place = place_of(process->python, process->layout);

	clear_doubt(process);
	process->state = SESSION_PROCESS_PYTHON;
	process->in_time = !interpreter_up;
	session_files_add(p->session->files, &process->file, process->python, process->layout);
	session_answer(p, process, PYBPF_PROC_READY, &place);
}

/* Once the interpreter is up, its memory must agree with the layout; while it does not, no samples are taken. */
static void validate(struct session_processes *p, struct session_process *process, double now)
{
	char why[512];
	int err = discovery_validate(process->python, why, sizeof(why));

	if (err == -EINVAL) {
		session_files_distrust(p->session->files, &process->file, process->python);
		doubt(p, process, now, why);
		return;
	}
	if (process->doubted && (!err || err == -EAGAIN))
		end_doubt(p, process, !err);
	session_stop_looking(p, process);
	if (err == -EAGAIN) {
		look_at(p, process, now + VALIDATE_S);
		return;
	}
	if (!err) {
		log_info("process %d: its memory is laid out as that version's", process->pid);
		session_files_validated(p->session->files, process->python);
	}
	free(process->python);
	process->python = NULL;
}

/* started: a moment ago, so that what it will load may not be there yet. */
void session_begin_look(struct session_processes *p, struct session_process *process, bool started)
{
	double now = session_now();

	clear_doubt(process);
	free(process->python);
	process->python = NULL;
	process->state = SESSION_PROCESS_LOOKING;
	process->look_since = started ? now : now - STARTING_S;
	if (started)
		p->starting_until = now + STARTING_S;
	/* A program that is known to load a Python has not done so yet: its mapping will be seen. */
	look_at(p, process, started && process->kind == PYBPF_FILE_LOADS ? now + STARTING_S : now);
}

void session_look_soon(struct session_processes *p, struct session_process *process)
{
	double now = session_now();

	if (process->doubted)
		return;
	if (process->state != SESSION_PROCESS_LOOKING)
		process->look_since = now - STARTING_S;
	process->state = SESSION_PROCESS_LOOKING;
	look_at(p, process, now + SOON_S);
}

void session_processes_look(struct session_processes *p, double now)
{
	double begin_s = now;
	struct session_process *process, *next;

	for (process = p->looking; process; process = next) {
		next = process->next;
		if (process->next_look > now)
			continue;
		if (process->python)
			validate(p, process, now);
		else if (process->state == SESSION_PROCESS_PYTHON)
			session_stop_looking(p, process);
		else
			look_for_python(p, process, now);
		now = session_now();
		if (now - begin_s > LOOK_BUDGET_S)
			break;
	}
}

double session_processes_next_look(const struct session_processes *p)
{
	double next = 1e18;
	bool looking = false;

	for (const struct session_process *process = p->looking; process; process = process->next) {
		if (process->next_look < next)
			next = process->next_look;
		looking |= process->state == SESSION_PROCESS_LOOKING;
	}
	if (looking && session_now() < p->starting_until && next > session_now() + LOOK_OFTEN_S)
		next = session_now() + LOOK_OFTEN_S;
	return next;
}
