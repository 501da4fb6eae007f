// SPDX-License-Identifier: Apache-2.0
#include "processes/processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#include "foreign/foreign.h"
#include "base/log.h"
#include "pybpf.h"
#include "base/scan.h"
#include "base/remote.h"
#include "processes/files.h"
#include "processes/internal.h"

/* Containers' names are looked for so often, for so long. */
#define LABEL_EVERY_S 0.2
#define LABEL_UNTIL_S 3.0

struct session_process *session_processes_find(const struct session_processes *p, uint64_t proc_id)
{
	struct session_process *process;

	HASH_FIND(hh, p->records, &proc_id, sizeof(proc_id), process);
	return process;
}

static void free_record(struct session_process *process)
{
	free(process->cmdline);
	free(process->container);
	free(process->program);
	for (size_t i = 0; i < PYBPF_MAX_RUNTIMES; i++)
		free(process->unproved[i]);
	free(process->doubt);
	free(process);
}

/* What counts of a process as a whole; called when its record ends its life, in whatever way. */
static void add_up(const struct session_processes *p, struct session_process_counts *counts,
		   const struct session_process *process)
{
	if (!process->wanted)
		return;
	if (process->state == SESSION_PROCESS_PYTHON && !process->again) {
		counts->seen++;
		counts->started += process->started;
	}
	if (process->running & (process->running - 1) && !counts->several++)
		session_versions(p, process, counts->versions, sizeof(counts->versions));
	if (process->state == SESSION_PROCESS_REFUSED)
		counts->refused++;
	if (process->state == SESSION_PROCESS_LOOKING && process->ended) {
		counts->missed++;
		counts->missed_ns += process->cpu_ns;
	}
}

static struct session_process *find_pid(const struct session_processes *p, pid_t pid)
{
	struct session_process *process;

	HASH_FIND(hh_pid, p->by_pid, &pid, sizeof(pid), process);
	return process;
}

void session_processes_settle(struct session_processes *p)
{
	struct session_process *process, *next;

	HASH_ITER (hh, p->records, process, next) {
		if (process->state != SESSION_PROCESS_LOOKING || !process->ended)
			continue;
		/* It was looked at, and what it mapped since could not be a Python: so it is with others of its
		 * program. */
		if (process->looked && !process->unknown_file && process->kind != PYBPF_FILE_LOADS)
			session_files_add_other(p->session->files, &process->file);
		if (session_files_is_other(p->session->files, &process->file))
			process->state = SESSION_PROCESS_OTHER;
	}
}

void session_processes_say_doubts(struct session_processes *p)
{
	struct session_process *process, *next;

	HASH_ITER (hh, p->records, process, next) {
		if (!process->ended)
			session_say_doubt(p, process);
	}
}

void session_processes_forget(struct session_processes *p, struct session_process *process)
{
	add_up(p, &p->counts, process);
	session_stop_looking(p, process);
	if (find_pid(p, process->pid) == process)
		HASH_DELETE(hh_pid, p->by_pid, process);
	HASH_DEL(p->records, process);
	free_record(process);
}

static void end(struct session_processes *p, struct session_process *process)
{
	if (process->ended)
		return;
	session_label_again(p->session, process);
	session_say_doubt(p, process);
	process->ended = true;
	process->ended_at = session_now();
	session_stop_looking(p, process);
	p->living--;
}

/* A new record; NULL, with p->error set, without memory. */
static struct session_process *begin(struct session_processes *p, const struct pybpf_process_event *event)
{
	struct session_process *process = session_processes_find(p, event->proc_id), *before;

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		goto no_memory;
	process->proc_id = event->proc_id;
	process->pid = (pid_t)event->tgid;
	process->inner_pid = (pid_t)event->inner_tgid;
	process->start = event->start;
	process->wanted = event->wanted;
	process->begun = session_now();
	process->started = process->start >= p->begin;
	process->file = event->file;
	process->kind = event->kind;
	memcpy(process->comm, event->comm, sizeof(process->comm));
	HASH_ADD(hh, p->records, proc_id, sizeof(process->proc_id), process);
	if (!process->hh.tbl)
		goto no_memory;
	before = find_pid(p, process->pid);
	if (before)
		HASH_DELETE(hh_pid, p->by_pid, before);
	HASH_ADD(hh_pid, p->by_pid, pid, sizeof(process->pid), process);
	if (!process->hh_pid.tbl) {
		HASH_DEL(p->records, process);
		goto no_memory;
	}
	p->living++;
	return process;
no_memory:
	free(process);
	p->error = -ENOMEM;
	return NULL;
}

/* Begins the record of a program after an exec: the one before has ended. */
static void follows(struct session_processes *p, struct session_process *process, uint64_t before_id)
{
	struct session_process *before = session_processes_find(p, before_id);

	session_label_process(p->session, process, before);
	if (!before)
		return;
	/* A copy that was only made to execute something else is no Python process of its own. */
	if (before->copy)
		before->again = true;
	else
		process->again = before->again || before->state == SESSION_PROCESS_PYTHON;
	end(p, before);
}

static void on_forked(struct session_processes *p, struct session_process *process,
		      const struct pybpf_process_event *event)
{
	struct session_process *parent = session_processes_find(p, event->other_id);

	if (parent) {
		process->file = parent->file;
		process->kind = parent->kind;
		session_label_copy(process, parent);
	}
	if (event->state == PYBPF_PROC_READY && parent && parent->state == SESSION_PROCESS_PYTHON) {
		process->in_time = process->copy = true;
		session_become_python(p, process, parent->layouts[0]);
		session_copy_runtimes(p, process, parent);
	} else if (event->state == PYBPF_PROC_OTHER) {
		process->state = SESSION_PROCESS_OTHER;
	} else {
		session_begin_look(p, process, true);
	}
}

static void on_execed(struct session_processes *p, struct session_process *process,
		      const struct pybpf_process_event *event)
{
	bool repaired;

	follows(p, process, event->other_id);
	repaired = session_repair(p, event);
	if (!repaired && event->kind == PYBPF_FILE_PYTHON) {
		if (session_is_unwanted(p, process))
			return;
		process->in_time = event->state == PYBPF_PROC_READY;
		session_become_python(p, process, event->layout);
		if (!process->in_time)
			session_answer(p, process, PYBPF_PROC_READY, NULL);
	} else if (!repaired && event->state == PYBPF_PROC_OTHER) {
		process->state = SESSION_PROCESS_OTHER;
	} else {
		session_begin_look(p, process, true);
	}
}

/* The record of a process that was of no interest so far: the kernel knows it. */
static struct session_process *get_record(struct session_processes *p, pid_t pid)
{
	struct session_process *process = find_pid(p, pid);
	struct pybpf_process_event event = {.tgid = (uint32_t)pid, .wanted = true};
	struct discovery_process described;
	struct pybpf_proc entry;

	if (process)
		return process;
	if (kernel_get_process(p->kernel, pid, &entry) || discovery_describe(pid, &described))
		return NULL;
	event.proc_id = entry.proc_id;
	event.start = entry.start;
	event.inner_tgid = (uint32_t)described.inside;
	snprintf(event.comm, sizeof(event.comm), "%.15s", described.comm);
	process = begin(p, &event);
	if (process)
		session_label_process(p->session, process, NULL);
	return process;
}

static void on_mapping(const struct kernel_mapping *mapping, void *arg)
{
	struct session_processes *p = arg;
	struct session_process *process;
	enum session_files_found found;
	struct pybpf_runtime place;

	/*
	 * While other mappings were looked at the process may have executed another program: its mappings are not those
	 * of the program before.
	 */
	kernel_consume_processes(p->kernel);
	process = p->session->options.all ? NULL : find_pid(p, mapping->pid);
	if ((!process && !p->session->options.all) || mapping->pid == getpid())
		return;
	found = session_files_mapped(p->session->files, mapping, &place);
	if (found == SESSION_FILES_NOTHING)
		return;
	process = get_record(p, mapping->pid);
	if (!process)
		return;
	process->unknown_file |= found == SESSION_FILES_UNKNOWN;
	if (process->ended || process->state == SESSION_PROCESS_UNWANTED)
		return;
	if (found == SESSION_FILES_UNKNOWN) {
		session_look_soon(p, process);
	} else if (session_is_sampled(process)) {
		/* Not at once: it may be of a program whose exec has not been told of yet. */
		if (found == SESSION_FILES_LOOK || !session_has_runtime(p, process, &place))
			session_look_again(p, process);
	} else if (found == SESSION_FILES_LOOK || process->kind != PYBPF_FILE_LOADS || process->doubted) {
		session_begin_look(p, process, true);
	} else if (!session_is_unwanted(p, process)) {
		session_make_ready(p, process, &place);
	}
}

static void on_process(const struct pybpf_process_event *event, void *arg)
{
	struct session_processes *p = arg;
	struct session_process *process;

	if (event->what == PYBPF_PROCESS_EXITED) {
		process = session_processes_find(p, event->proc_id);
		if (!process)
			return;
		process->cpu_ns = event->cpu_ns;
		memcpy(process->comm, event->comm, sizeof(process->comm));
		process->wanted |= event->wanted;
		end(p, process);
		return;
	}
	process = begin(p, event);
	if (!process || process->ended)
		return;
	process->wanted |= event->wanted;
	switch (event->what) {
	case PYBPF_PROCESS_FOUND:
		session_label_process(p->session, process, NULL);
		session_begin_look(p, process, false);
		break;
	case PYBPF_PROCESS_FORKED:
		on_forked(p, process, event);
		break;
	case PYBPF_PROCESS_EXECED:
		on_execed(p, process, event);
		break;
	}
}

/* Events were lost: what has ended unheard is no more in the kernel's map. */
static void sweep(struct session_processes *p)
{
	struct session_process *process, *next;
	struct pybpf_proc entry;

	HASH_ITER (hh, p->records, process, next) {
		if (!process->ended && session_kernel_entry(p, process, &entry) == -ESRCH)
			end(p, process);
	}
}

int session_processes_consume(struct session_processes *p)
{
	int err = kernel_consume_processes(p->kernel), mapped = kernel_consume_mappings(p->kernel);
	uint64_t lost = kernel_count_lost_processes(p->kernel);

	if (lost != p->lost_seen) {
		p->lost_seen = lost;
		sweep(p);
	}
	err = p->error ?: mapped ?: err;
	if (err)
		log_error("cannot keep track of processes: %s", strerror(-err));
	return err;
}

void session_processes_fds(const struct session_processes *p, int fds[SESSION_PROCESSES_FDS])
{
	kernel_get_watch_fds(p->kernel, fds);
}

void session_processes_label(struct session_processes *p, double now)
{
	struct session_process *process, *next;

	if (now < p->next_label)
		return;
	p->next_label = now + LABEL_EVERY_S;
	HASH_ITER (hh, p->records, process, next) {
		if (!process->ended && now < process->begun + LABEL_UNTIL_S)
			session_label_again(p->session, process);
	}
}

struct session_processes *session_processes_new(struct session *s)
{
	struct session_processes *p = calloc(1, sizeof(*p));

	if (!p) {
		log_error("out of memory while starting");
		return NULL;
	}
	p->session = s;
	p->kernel = s->kernel;
	if (!kernel_open_watch(p->kernel, &(struct kernel_watcher){on_process, on_mapping, p}))
		return p;
	session_processes_free(p);
	return NULL;
}

void session_processes_free(struct session_processes *p)
{
	struct session_process *process, *next;

	if (!p)
		return;
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_CLEAR(hh_pid, p->by_pid);
	HASH_ITER (hh, p->records, process, next) {
		HASH_DEL(p->records, process);
		free_record(process);
	}
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
	free(p);
}

size_t session_processes_living(const struct session_processes *p)
{
	return p->living;
}

bool session_processes_python_found(const struct session_processes *p)
{
	return p->python_found;
}

bool session_processes_any_ended(const struct session_processes *p, double before)
{
	const struct session_process *process, *next;

	HASH_ITER (hh, p->records, process, next) {
		if (process->ended && process->ended_at < before)
			return true;
	}
	return false;
}

void session_processes_each_ended(struct session_processes *p, double before,
				  void (*visit)(struct session_process *process, void *arg), void *arg)
{
	struct session_process *process, *next;

	HASH_ITER (hh, p->records, process, next) {
		if (process->ended && process->ended_at < before)
			visit(process, arg);
	}
}

void session_processes_counts(const struct session_processes *p, struct session_process_counts *out)
{
	const struct session_process *process, *next;

	*out = p->counts;
	HASH_ITER (hh, p->records, process, next)
		add_up(p, out, process);
	out->lost = kernel_count_lost(p->kernel);
	out->unanswered = foreign_unanswered();
}
