// SPDX-License-Identifier: Apache-2.0
/*
 * What `pybpf top` knows: of each function, line, expression, thread, process and container the samples of the last
 * interval, of the one before, and since the start. It is fed with a profile for each interval, and knows no terminal
 * and no process.
 */
#ifndef TOP_MODEL_H
#define TOP_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "top/states.h"

enum top_table {
	TOP_FUNCTIONS,
	TOP_LINES,
	TOP_THREADS,
	TOP_PROCESSES,
	TOP_CONTAINERS,
	TOP_EXPRESSIONS, /* empty unless top_model_want_expressions() */
	TOP_TABLES,
};

/* Rows of a table that are kept; beyond, the coldest ones are forgotten and counted. */
#define TOP_ROWS_MAX 16384
/* Intervals of a thread's strip. */
#define TOP_STRIP 60

/* A function of the program's own, and the samples that a library's function has had for it; 0: none. */
struct top_caller {
	uint32_t name, file; /* strings of the model */
	uint64_t all_self;
};

/* Callers that are kept of a row: the samples of this number of them are exact. */
#define TOP_CALLERS 4

struct top_row {
	struct top_row_key {
		uint32_t kind;              /* of code: enum profile_frame_kind */
		uint32_t name, file;        /* strings of the model, of code and containers; 0: none */
		struct profile_place place; /* of code: what the table tells apart; of functions only the first line */
		int32_t pid, tid;           /* of threads and processes */
	} key;
	uint32_t title;                         /* string: the name of a thread or process; of others key.name */
	uint32_t container;                     /* string, of threads and processes; 0: none */
	uint64_t self, total;                   /* samples of the last interval; equal but for code */
	uint64_t before_total;                  /* of the interval before */
	uint64_t all_self, all_total;           /* since the start */
	struct top_caller callers[TOP_CALLERS]; /* of code of libraries */
	uint32_t met;                           /* the sample that was counted last for it */
	struct top_states states;               /* of threads: of the last interval */
	bool lives;                             /* of threads: was there in the last interval */
	char strip[TOP_STRIP];                  /* of threads: a mark of each interval, the last at the end */
};

/* Sums over an interval, or since the start. */
struct top_sums {
	double duration_s;
	uint64_t samples; /* with a stack, as the rows have them */
	uint64_t asked, lost;
	struct top_states states;
	uint64_t threads; /* that were there at the end */
};

struct top_model;

/* Returns NULL without memory. */
struct top_model *top_model_new(void);
/* Has rows for expressions, too, of profiles that have their columns. */
void top_model_want_expressions(struct top_model *m);
bool top_model_has_expressions(const struct top_model *m);
/* Returns whether rows of the table are code: functions, lines or expressions. */
bool top_table_is_code(enum top_table table);
/* Accepts NULL. */
void top_model_free(struct top_model *m);

/*
 * Begins the next interval; after too many names all begins anew with it. duration_s: how long the interval took.
 * Samples are added by top_model_add(), threads by the next functions. Returns 0 or -ENOMEM.
 */
int top_model_begin(struct top_model *m, double duration_s);
/* Adds samples that were asked for, and those of them that were lost. */
void top_model_count(struct top_model *m, uint64_t asked, uint64_t lost);
/* Returns 0 or -ENOMEM. */
int top_model_add(struct top_model *m, const struct profile *profile);
/* name: in the kernel, for a thread that had no samples yet. */
int top_model_add_thread(struct top_model *m, int32_t pid, int32_t tid, const char *name,
			 const struct top_states *states);
/* Adds the time of a thread that has ended in the interval. */
int top_model_add_ended(struct top_model *m, const struct top_states *states);
/* Ends it: forgets the coldest rows of tables that have grown too large. Returns 0 or -ENOMEM. */
int top_model_end(struct top_model *m);

uint32_t top_model_intervals(const struct top_model *m);
const struct top_sums *top_model_last(const struct top_model *m);
const struct top_sums *top_model_all(const struct top_model *m);
const char *top_model_string(const struct top_model *m, uint32_t index);
/* Returns the name of the process that the row of a thread is in; "": it had no samples. */
const char *top_model_process_of(const struct top_model *m, const struct top_row *row);
/* Returns the caller with the most samples, or NULL: it is the program's own, or has none. */
const struct top_caller *top_model_caller(const struct top_row *row);
/* Returns how often all was forgotten, so that sums since the start are since then. */
uint32_t top_model_begun_anew(const struct top_model *m);
/* Returns how many rows of the table were forgotten. */
uint64_t top_model_forgotten(const struct top_model *m, enum top_table table);

enum top_order {
	TOP_BY_SELF,
	TOP_BY_TOTAL,
	TOP_BY_ALL_SELF, /* since the start */
	TOP_BY_ALL_TOTAL,
	TOP_ORDERS,
};

/*
 * Returns the rows of a table in that order, the first the largest, equal ones by name, that have samples since the
 * start or, of threads, live. filter: only those in whose texts it is, in upper or lower case; NULL or "": all. The
 * caller frees the array; NULL without memory. Valid until the next interval.
 */
const struct top_row **top_model_rows(const struct top_model *m, enum top_table table, enum top_order order,
				      const char *filter, size_t *found);

/*
 * Returns 1 if the row's time on CPUs has grown from the interval before to the last one by more than chance, -1 if it
 * has shrunk, else 0: samples of two intervals are compared as a binomial test does (z above 3.29: once in 1,000 rows
 * that do not change, if samples are independent).
 */
int top_model_change(const struct top_model *m, const struct top_row *row);

#endif
