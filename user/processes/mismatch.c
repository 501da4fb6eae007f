// SPDX-License-Identifier: Apache-2.0
/* Pythons whose memory contradicts their files: they are not sampled meanwhile, and refused when it lasts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "processes/internal.h"

/*
 * A loader first maps the whole library like its code, which puts the rest of the file where the variables belong.
 * Until it has made its second mapping and cleared .bss, the memory there contradicts every layout (_dl_map_segments,
 * glibc's elf/dl-map-segments.h). The loader can be kept waiting for its CPU at any time, so contradicting memory is
 * read once more after LOOK_OFTEN_S, and then after as long as the contradiction has lasted, at most PAUSE_MOST_S. A
 * contradiction that has lasted REFUSE_S leads to a refusal, which is reported; for a process that has ended,
 * REFUSE_ENDED_S suffices.
 */
#define REFUSE_S       2.0
#define REFUSE_ENDED_S 0.1
#define PAUSE_MOST_S   1.0

void processes_clear_mismatch(struct processes_record *process, uint32_t which)
{
	process->mismatched &= ~which;
	if (process->mismatched)
		return;
	free(process->mismatch_text);
	process->mismatch_text = NULL;
}

static bool has_only_mismatched(const struct processes_record *process)
{
	return process->mismatched && !(((1u << process->nr_runtimes) - 1) & ~process->mismatched);
}

void processes_stop_mismatched(struct processes *p, struct processes_record *process)
{
	processes_drop_mismatched(p, process);
	if (!has_only_mismatched(process))
		process->state = PROCESSES_PYTHON;
	processes_publish_state(p, process, has_only_mismatched(process) ? PYBPF_PROC_UNDECIDED : PYBPF_PROC_READY,
				NULL);
}

bool processes_is_sampled(const struct processes_record *process)
{
	return process->nr_runtimes && !has_only_mismatched(process);
}

/* Reports, once, why the process with a mismatch, or one of its Pythons, is refused. */
static void say_refused(struct processes *p, struct processes_record *process)
{
	if (!process->refusal_said)
		log_printf(process->wanted ? LOG_ERROR : LOG_INFO, "%s", process->mismatch_text);
	process->refusal_said = true;
	free(process->mismatch_text);
	process->mismatch_text = NULL;
	if (!has_only_mismatched(process))
		return;
	process->state = PROCESSES_REFUSED;
	processes_publish_state(p, process, p->options.all ? PYBPF_PROC_UNWANTED : PYBPF_PROC_UNDECIDED, NULL);
}

void processes_set_mismatched(struct processes *p, struct processes_record *process, uint32_t mismatched)
{
	if (mismatched == process->mismatched)
		return;
	processes_clear_mismatch(process, ~mismatched);
	process->mismatched = mismatched;
	processes_stop_mismatched(p, process);
}

void processes_note_mismatch(struct processes *p, struct processes_record *process, double now, uint32_t mismatched,
			     const char *why)
{
	double pause;

	if (!process->mismatched) {
		process->mismatch_since = now;
		log_debug("%s; it may be about to start", why);
	}
	processes_set_mismatched(p, process, mismatched);
	pause = now - process->mismatch_since;
	if (why[0] && process->state != PROCESSES_REFUSED) {
		free(process->mismatch_text);
		process->mismatch_text = strdup(why);
		if (!process->mismatch_text)
			p->error = -ENOMEM;
	}
	if (process->mismatch_text && pause >= REFUSE_S)
		say_refused(p, process);
	process->look_further = mismatched & MISMATCH_UNPLACED;
	pause = pause < LOOK_OFTEN_S ? LOOK_OFTEN_S : pause > PAUSE_MOST_S ? PAUSE_MOST_S : pause;
	processes_stop_looking(p, process);
	processes_schedule_look(p, process, now + pause);
}

void processes_report_mismatch(struct processes *p, struct processes_record *process)
{
	if (process->mismatch_text && clock_s(CLOCK_MONOTONIC) >= process->mismatch_since + REFUSE_ENDED_S)
		say_refused(p, process);
}
