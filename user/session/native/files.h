// SPDX-License-Identifier: Apache-2.0
/* The files that profiled processes map, and the tables of them that the kernel side has. */
#ifndef SESSION_NATIVE_FILES_H
#define SESSION_NATIVE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "native/ask.h"
#include "session/native/pages.h"
#include "session/native/unwind_stops.h"
#include "symbols/native/native_frames.h"

enum native_file_state {
	NATIVE_FILE_WANTED,     /* its table is to be made */
	NATIVE_FILE_THERE,      /* the kernel side has its table */
	NATIVE_FILE_NONE,       /* it has no call frame information */
	NATIVE_FILE_UNREADABLE, /* its table could not be made */
	NATIVE_FILE_REFUSED,    /* there was no room for it */
};

/* CPU time of helpers. */
struct native_costs {
	uint64_t tables_ns, names_ns;
	uint64_t names; /* that were looked up */
};

/* A table that programs use; pages is 0 without one. */
struct native_shown {
	uint32_t first, pages;
	uint64_t rows;
};

struct native_known_file {
	struct native_identity id;
	enum native_file_state state;
	uint32_t number;  /* for frames; of another file if that has the same build-id */
	bool is_known;    /* about is filled in */
	bool has_sharers; /* another file stands for the same table */
	struct native_file about;
	uint32_t first, pages;       /* of its table; pages 0: it has none */
	struct native_shown shown;   /* the table that programs use, while another one is made, too */
	bool wants_flow;             /* a stack has ended in a function without call frame information */
	struct native_stops *stops;  /* instructions at which others have ended since; NULL: none has */
	struct native_source source; /* of the process that was seen last with it */
	uint32_t users;              /* processes that map it */
	bool is_filled;              /* its pages are being filled */
	uint64_t rows_done;
	struct native_costs costs;
	unsigned tries;
	double try_at;        /* CLOCK_MONOTONIC seconds: not before this */
	bool was_refused;     /* it is counted in native_files.refused */
	double retry_at;      /* REFUSED: likewise */
	double retry_pause_s; /* until then */
	bool is_wanted;       /* REFUSED: a stack has ended in it */
	bool is_taken_away;   /* its table, of which processes that map it do not know yet */
	unsigned idle;        /* how often stacks were forgotten since a process mapped it */
	/* Code of a process that has ended, or a file that none has mapped for long: another may take its place here.
	 */
	bool is_over;
	/* The names of code in no file are looked at again (made_names.c). */
	bool has_names;
	double check_at; /* CLOCK_MONOTONIC seconds: not before this */
	double check_pause_s;
	uint32_t nr_checked; /* names, since the first one was */
	uint32_t nr_numbers; /* that it had before this one */
};

/* Most living processes' windows of code in no file (native/made.h). Those of others are not followed. */
#define NATIVE_MADE_MAX 1024
/* Likewise of all since stacks were forgotten: each leaves its names, which have about a KiB. */
#define NATIVE_MADE_EVER_MAX 8192

struct native_files {
	struct native_pages *pages;
	struct native_frames *frames;
	struct intern known; /* struct native_known_file */
	uint32_t there, made, made_ever;
	uint32_t nr_over; /* files that have is_over set */
	uint64_t rows, refused, unreadable;
	bool has_taken_away;       /* files that have is_taken_away set */
	struct native_costs costs; /* of all files, also of those that were forgotten */
};

void native_files_init(struct native_files *f, struct native_pages *pages, struct native_frames *frames);
void native_files_free(struct native_files *f);

/* A helper has worked on the file. index: INTERN_NONE for one that was forgotten. */
void native_files_add_costs(struct native_files *f, uint32_t index, const struct native_costs *costs);

/* Finds or adds the file of a process's mapping. Returns its index, or INTERN_NONE without memory. */
uint32_t native_files_find(struct native_files *f, const struct native_source *source);
static inline struct native_known_file *native_files_at(const struct native_files *f, uint32_t index)
{
	return intern_item(&f->known, index);
}

/*
 * Returns the index of a file whose table is to be made, or INTERN_NONE: also of one that found no room before, if
 * there may be room now. now: CLOCK_MONOTONIC seconds.
 */
uint32_t native_files_next(struct native_files *f, double now);
/*
 * Asks for the next rows of such a file. Returns 0 when something has been done, or -EINPROGRESS. *room: memory for an
 * answer. now: CLOCK_MONOTONIC seconds.
 */
int native_files_make(struct native_files *f, uint32_t index, double now, struct native_rows *room);

/*
 * A stack has ended at an instruction of the file without a rule: has rows made of that one, which takes some
 * milliseconds, and then a better table of a file whose functions without call frame information were not followed.
 * now: CLOCK_MONOTONIC seconds.
 */
void native_files_want_stop(struct native_files *f, uint32_t index, const struct native_stop *stop, double now);
/* Returns the index of a file with such instructions, or INTERN_NONE. now: CLOCK_MONOTONIC seconds. */
uint32_t native_files_next_stopped(const struct native_files *f, double now);
/* Asks for their rows, as native_files_make() does. *room: memory for an answer. */
int native_files_pass_stops(struct native_files *f, uint32_t index, double now, struct native_ahead_rows *room);

/* A process has ended: the tables of its code in no file are removed. now: CLOCK_MONOTONIC seconds. */
void native_files_forget_made(struct native_files *f, uint64_t life, double now);
/*
 * Other code is where code in no file has been: samples from now on are of a file with another number. Returns 0 or
 * -ENOMEM.
 */
int native_files_renumber_made(struct native_files *f, uint32_t index);
/* A process that had the file mapped has ended. */
void native_files_leave(struct native_files *f, uint32_t index, pid_t pid);

/*
 * Stacks are forgotten, and new ones go into another profile: files that no process has mapped since the time before
 * last are forgotten, too, and so are the names of what is in none. busy: the index of a file that a question is about,
 * which stays, or INTERN_NONE. now: CLOCK_MONOTONIC seconds.
 */
void native_files_forget_stacks(struct native_files *f, uint32_t busy, double now);

/* Returns the index of the file with that number, or INTERN_NONE; of several, one that a process maps. */
uint32_t native_files_of(const struct native_files *f, uint32_t number);

#endif
