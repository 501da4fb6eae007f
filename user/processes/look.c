// SPDX-License-Identifier: Apache-2.0
/* Finds out which Pythons a process runs: schedules the looks at it, and handles their results. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "discovery/ask.h"
#include "helper/helper.h"
#include "base/clock.h"
#include "base/log.h"
#include "pybpf.h"
#include "processes/internal.h"

/*
 * Intervals between attempts to validate the layout of a Python whose interpreter does not run yet: until YOUNG_S after
 * the start of the process, and later, as the interpreter may never run.
 */
#define VALIDATE_S       0.1
#define VALIDATE_LATER_S 1.0
#define YOUNG_S          3.0
/* Interval between polls for the answer of a busy helper. */
#define PENDING_S 0.005
/*
 * An answer that takes longer is missing: it usually takes a millisecond, and 0.1 s on a machine with work for ten
 * times its CPUs. Less than START_S, so that the shortest run tells of a helper that stands still from its start on.
 */
#define MISSING_S 0.4
/* Interval between attempts at a process whose user's processes are not looked at for a while. */
#define LATER_S 5.0
/* Until the next look at a process that starts a program and has not mapped it yet. */
#define UNMAPPED_S 0.02
/* Longest time of one call of processes_look_at_due: stacks wait in their buffer meanwhile. */
#define LOOK_BUDGET_S 0.02

/* Tells the kernel that the process holds this Python, and about its file, for the next process that maps it. */
static void take_python(struct processes *p, struct processes_record *process, const struct discovery_python *python)
{
	struct pybpf_runtime place = {
		.interp_head = python->interp_head_addr,
		.tstate_current = python->tstate_current_addr,
		.code_type = python->code_type_addr,
		.thread_bias = python->thread_bias,
		.code_before = python->code_before,
		.code_size = python->code_size,
		.asyncio = python->asyncio,
	};
	bool first = !process->nr_runtimes, mismatched = process->mismatched;
	int layout, index = 0;

	layout = kernel_put_layout(p->kernel, &python->build.layout);
	if (layout < 0) {
		log_error("cannot hand process %d to the kernel: %s", process->pid, strerror(-layout));
		processes_stop_looking(p, process);
		if (first)
			process->state = PROCESSES_REFUSED;
		return;
	}
	place.layout = (uint32_t)layout;
	p->asyncio_found |= python->asyncio.loaded;
	if (first)
		processes_make_ready(p, process, &place);
	else
		index = processes_add_runtime(p, process, &place);
	if (index == -EEXIST)
		processes_place_asyncio(p, process, &place);
	if (index < 0)
		return;
	processes_clear_mismatch(process, 1u << index);
	if (mismatched)
		processes_stop_mismatched(p, process);
	log_info("process %d (%.16s): %sPython %s in %s", process->pid, process->comm, first ? "" : "also ",
		 python->version, python->path);
	discovery_warn_newer(python);
	if (processes_files_add_python(p->files, first ? &process->file : NULL, python, place.layout) && first)
		return;
	/*
	 * A first Python stays unproved until one process of its file has agreed with the layout; a further one until
	 * it runs itself.
	 */
	free(process->unproved[index]);
	process->unproved[index] = malloc(sizeof(*python));
	if (process->unproved[index])
		*process->unproved[index] = *python;
	else
		p->error = -ENOMEM;
}

/*
 * Takes the Pythons that were found: `count` of them, of which the array holds the first `room`. why: the sentence
 * about a Python that is refused beside them, or "". Returns whether the process is to be sampled.
 */
static bool take_pythons(struct processes *p, struct processes_record *process, const struct discovery_python *pythons,
			 size_t room, size_t count, const char *why)
{
	enum log_level level = p->options.all ? LOG_INFO : LOG_WARN;
	bool first = !process->nr_runtimes;
	struct pybpf_proc entry;

	processes_stop_looking(p, process);
	/* After an exec whose event has not been read yet, the Pythons found do not belong to this record and its file.
	 */
	if (processes_get_entry(p, process, &entry) || (first && processes_reject_unwanted(p, process)))
		return false;
	for (size_t i = 0; i < count && i < room; i++)
		take_python(p, process, &pythons[i]);
	/* Same as in processes_make_ready, which only considers the first Python. */
	for (size_t i = 1; first && i < count && i < room; i++)
		process->known_before_run &= !discovery_is_running(&pythons[i]);
	if (count > room)
		log_printf(level, "process %d (%.16s) has %zu Pythons in it; pybpf samples %zu of them", process->pid,
			   process->comm, count, room);
	if (why[0])
		log_printf(level, "%s", why);
	return true;
}

static void refuse_process(struct processes *p, struct processes_record *process, const char *why)
{
	processes_stop_looking(p, process);
	process->state = PROCESSES_REFUSED;
	if (!p->options.all) {
		log_error("%s", why);
		return;
	}
	log_info("%s", why);
	processes_publish_state(p, process, PYBPF_PROC_UNWANTED, NULL);
}

/* Refuses a process by PID or a command whose Python cannot tell its tasks. Returns whether it did. */
static bool refuse_without_tasks(struct processes *p, struct processes_record *process,
				 const struct discovery_python *python)
{
	struct error why;

	if (!p->options.tasks || p->options.all || process->nr_runtimes)
		return false;
	if (!discovery_check_tasks(python, &why))
		return false;
	refuse_process(p, process, why.text);
	return true;
}

static void take_no_python(struct processes *p, struct processes_record *process, double now)
{
	process->looked = true;
	if (now < process->look_since + STARTING_S) {
		processes_stop_looking(p, process);
		processes_schedule_look(p, process, process->look_since + STARTING_S);
		return;
	}
	processes_stop_looking(p, process);
	process->state = PROCESSES_OTHER;
	/* An error means that this was the program after an exec whose event has not been read yet. */
	if (!processes_publish_state(p, process, PYBPF_PROC_OTHER, NULL) && !process->kind)
		processes_files_add_other(p->files, &process->file);
}

/* Notes whether the question what the process runs has had an answer. */
static void note_answer(struct processes_record *process, enum discovery_result result, const struct error *error)
{
	double now = clock_s(CLOCK_MONOTONIC);

	if (result != DISCOVERY_PENDING) {
		process->pending_since = 0;
		process->unanswered = result == DISCOVERY_LATER ||
				      (result == DISCOVERY_UNSUPPORTED && helper_has_no_answer(error->code));
		return;
	}
	if (process->pending_since <= 0)
		process->pending_since = now;
	process->unanswered |= now - process->pending_since > MISSING_S;
}

/* Asks for the Pythons of the process. Returns whether there was an answer. */
static bool look_for_python(struct processes *p, struct processes_record *process, double now)
{
	struct discovery_python *pythons = calloc(PYBPF_MAX_RUNTIMES, sizeof(*pythons));
	enum discovery_result result;
	struct error error;
	size_t count;

	if (!pythons) {
		p->error = -ENOMEM;
		return false;
	}
	result = discovery_ask_runtimes(process->pid, process->proc_id, p->starting, pythons, PYBPF_MAX_RUNTIMES,
					&count, &error);
	note_answer(process, result, &error);
	if (result == DISCOVERY_PENDING) {
		free(pythons);
		processes_stop_looking(p, process);
		processes_schedule_look(p, process, clock_s(CLOCK_MONOTONIC) + PENDING_S);
		return false;
	}
	if (result == DISCOVERY_LATER) {
		free(pythons);
		processes_stop_looking(p, process);
		process->look_further = process->nr_runtimes;
		processes_schedule_look(p, process, clock_s(CLOCK_MONOTONIC) + LATER_S);
		return true;
	}
	if ((result == DISCOVERY_OK || result == DISCOVERY_CONTRADICTED) && pythons->start_time != process->start)
		result = DISCOVERY_GONE;
	/* The Python that the process already has stays sampled, whatever this look found. */
	if (result != DISCOVERY_OK && result != DISCOVERY_CONTRADICTED && process->nr_runtimes) {
		result = DISCOVERY_OK;
		count = 0;
		error_clear(&error);
	}
	if (result == DISCOVERY_OK || result == DISCOVERY_NOT_PYTHON)
		processes_clear_mismatch(process, MISMATCH_UNPLACED);
	switch (result) {
	case DISCOVERY_OK:
		if (count && refuse_without_tasks(p, process, pythons))
			break;
		take_pythons(p, process, pythons, PYBPF_MAX_RUNTIMES, count, error.text);
		break;
	case DISCOVERY_CONTRADICTED:
		if (!count || take_pythons(p, process, pythons, PYBPF_MAX_RUNTIMES, count, ""))
			processes_note_mismatch(p, process, now, process->mismatched | MISMATCH_UNPLACED, error.text);
		break;
	case DISCOVERY_NOT_PYTHON:
		take_no_python(p, process, now);
		break;
	case DISCOVERY_UNMAPPED:
		processes_stop_looking(p, process);
		processes_schedule_look(p, process,
					now + (now < process->look_since + STARTING_S ? UNMAPPED_S : LATER_S));
		break;
	case DISCOVERY_GONE:
	case DISCOVERY_ZOMBIE:
		processes_stop_looking(p, process);
		break;
	default:
		refuse_process(p, process, error.text);
	}
	free(pythons);
	return true;
}

/* Compares the memory with the layout, once the interpreter runs. Returns as discovery_validate does. */
static int validate_python(struct processes *p, struct processes_record *process, uint32_t index, struct error *error)
{
	struct discovery_python *python = process->unproved[index];
	int err = discovery_ask_validate(python, error);

	if (err == -EINVAL) {
		processes_files_distrust_python(p->files, &process->file, python);
		return err;
	}
	/* The helper gave no answer. */
	if (err == -EIO)
		return err;
	/* The earlier contradiction came from a loader that had not finished. */
	if ((!err || err == -EAGAIN) && process->mismatched & 1u << index)
		processes_files_add_python(p->files, index ? NULL : &process->file, python, process->layouts[index]);
	if (err == -EAGAIN)
		return err;
	if (!err) {
		log_info("process %d: its memory is laid out as that of Python %s", process->pid, python->version);
		processes_files_trust_python(p->files, python);
		processes_note_running(p, process);
	}
	free(python);
	process->unproved[index] = NULL;
	return err;
}

/* Validates the Pythons of a process; one whose memory contradicts its layout is not sampled meanwhile. */
static void validate_pythons(struct processes *p, struct processes_record *process, double now)
{
	bool sampled = processes_is_sampled(process), waits = false, up = false;
	uint32_t mismatched = process->mismatched;
	struct error error, contradiction = {0};

	for (uint32_t i = 0; i < process->nr_runtimes; i++) {
		uint32_t bit = 1u << i;
		int err = -ESRCH;

		if (process->unproved[i])
			err = validate_python(p, process, i, &error);
		else if (!(mismatched & bit))
			err = 0;
		if (err == -EINVAL) {
			mismatched |= bit;
			contradiction = error;
		} else if (!err || err == -EAGAIN) {
			mismatched &= ~bit;
		}
		up |= !err;
		waits |= err == -EAGAIN || err == -EIO;
	}
	processes_stop_looking(p, process);
	if (mismatched)
		processes_note_mismatch(p, process, now, mismatched, contradiction.text);
	else
		processes_set_mismatched(p, process, 0);
	/* If no interpreter ran yet, no sample with Python frames was missed. */
	if (!sampled && processes_is_sampled(process))
		process->known_before_run = !up;
	if (waits)
		processes_schedule_look(p, process,
					now + (now < process->added_at + YOUNG_S ? VALIDATE_S : VALIDATE_LATER_S));
	processes_find_tasks(p, process, now);
}

void processes_look_at_due(struct processes *p, double now)
{
	double begin_s = now;
	struct processes_record *process;
	bool first, answered;

	struct helper_subject subject;

	if (now < p->busy_until && !helper_has_answer(&subject))
		return;
	/* begin_s, not now: a process that is rescheduled in this call is not due in it once more. */
	while (!p->error && (process = processes_choose_look(p, begin_s))) {
		first = !process->nr_runtimes;
		answered = true;
		if (first || process->look_further) {
			process->look_further = false;
			answered = look_for_python(p, process, now);
		}
		if (!answered) {
			process->look_further = !first;
			p->busy_until = clock_s(CLOCK_MONOTONIC) + PENDING_S;
			break;
		}
		/* All Pythons found in one call are validated: one that agrees is trusted for later processes of its
		 * file. */
		if (process->nr_runtimes && first)
			processes_schedule_look(p, process, clock_s(CLOCK_MONOTONIC));
		else if (process->nr_runtimes && !process->look_further)
			validate_pythons(p, process, now);
		now = clock_s(CLOCK_MONOTONIC);
		if (now - begin_s > LOOK_BUDGET_S)
			break;
	}
}
