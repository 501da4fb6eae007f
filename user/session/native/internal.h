// SPDX-License-Identifier: Apache-2.0
/* What the files of session/native share. */
#ifndef SESSION_NATIVE_INTERNAL_H
#define SESSION_NATIVE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"
#include "native/ask.h"
#include "native/ask_ahead.h"
#include "native/ask_lines.h"
#include "native/walker.h"
#include "session/native/costs.h"
#include "session/native/fetch.h"
#include "session/native/files.h"
#include "session/native/lines.h"
#include "session/native/native_account.h"
#include "session/native/pages.h"

/* Longest time for names when the run has ended; and further for lines: information of 80 MiB takes a second of CPU. */
#define NATIVE_END_S       1.0
#define NATIVE_LINES_END_S 9.0

struct session;

struct mapping {
	uint64_t start, end, offset;
	uint32_t file; /* index in files */
	uint32_t pad;
};

/* A process, and what it maps. */
struct mapper {
	uint64_t proc_id;
	pid_t pid;
	bool is_due;      /* its mappings are to be read */
	bool is_unshown;  /* the kernel side does not know them as they are */
	double next_look; /* CLOCK_MONOTONIC seconds: not before this */
	double pause;
	uint64_t code_pages; /* when they were read last */
	uint32_t heard;      /* processes_record.mapped when they were read last */
	struct mapping *mappings;
	uint32_t count, left_out;
	struct pybpf_native_list shown; /* count 0: none is */
};

enum job {
	JOB_NONE,
	JOB_MAPPINGS,
	JOB_ROWS,
	JOB_STOPS,
	JOB_NAMES,
	JOB_LINES,
	JOB_CHECK,
};

union answer {
	struct native_mappings mappings;
	struct native_rows rows;
	struct native_ahead_rows ahead;
	struct native_names names;
	struct native_lines_found lines;
};

struct session_native_state {
	struct native_frames *frames;
	struct native_pages pages;
	struct native_files files;
	struct native_lines_files lines;
	struct native_fetching fetching;
	struct intern mappers; /* struct mapper */
	uint64_t generation;
	enum job job;
	uint64_t job_proc_id;
	uint32_t job_file; /* index of a file, or its number for names */
	uint32_t pcs[NATIVE_NAMES_MAX], nr_pcs;
	struct native_source names_source;
	uint64_t names_base;
	double helpers_cpu_s; /* when the look at names began */
	bool names_only;      /* the run has ended: mappings and tables are of no use any more */
	union answer *answer;
	struct native_walker *walker; /* NULL: no thread was followed yet */
	uint64_t walker_writes;       /* pages.writes then */
	struct session_native_account account;
};

static inline struct mapper *native_mapper_of(const struct session_native_state *n, uint64_t proc_id)
{
	uint32_t i = intern_find(&n->mappers, &proc_id);

	return i == INTERN_NONE ? NULL : intern_item(&n->mappers, i);
}

/*
 * Asks what is to be known, one question at a time. until: CLOCK_MONOTONIC seconds. Returns whether there is more to do
 * at once.
 */
bool native_work_until(struct session *s, double until);
/* The run has ended: finds names and lines of what it has met. */
void native_name_frames(struct session *s);
/* The process has ended: what was asked of the code that it had made is of no use any more. */
void native_forget_question(struct session_native_state *n, uint64_t proc_id);
/* Forgets what the process maps. */
void native_forget_mappings(struct session_native_state *n, struct mapper *mapper);

/* Processes that map the file learn of its table, or of its number. */
void native_note_users(struct session_native_state *n, uint32_t file);

/* The names in the answer were given to code of the job's file. now: CLOCK_MONOTONIC seconds. */
void native_note_made_names(struct session_native_state *n, double now);
/*
 * Chooses code in no file whose names are to be looked at again: fills pcs. Returns whether there is some. now:
 * CLOCK_MONOTONIC seconds.
 */
bool native_choose_check(struct session_native_state *n, double now);
/* Looks at these names again. Returns 0 or -EINPROGRESS. now: CLOCK_MONOTONIC seconds. */
int native_check_names(struct session_native_state *n, double now);
/* Returns when the next names are to be looked at again, in CLOCK_MONOTONIC seconds, or SESSION_NEVER_S. */
double native_next_check(const struct session_native_state *n);
/* Returns whether other code takes the place of the file's code too often for names. */
bool native_is_restless(const struct native_known_file *file);

/* Tells the programs what changed since the last call of what processes map. now: CLOCK_MONOTONIC seconds. */
void native_show_changed(struct session *s, double now);
/* Takes the list of a process from the programs. */
void native_hide(struct session_native_state *n, struct mapper *mapper, double now);

#endif
