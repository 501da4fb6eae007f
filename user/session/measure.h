// SPDX-License-Identifier: Apache-2.0
/*
 * What a run measures. Each measure is a row of the table in measures.c: a struct session_measure, with what the
 * session does for it at each moment of a run. measure.c calls the rows that the options of the run want, and does not
 * know the table: so a row may use what itself uses measure.c. The other files of the session know no row by its name.
 * In the order of a run:
 *
 *	the session is made             init, ask_kernel
 *	the run begins                  attach, begin, estimate_end
 *	while it goes on                take, do_periodic_work
 *	some processes have ended       note_count, add_count, settle, forget_process
 *	an epoch ends (epochs.c)        prepare_epoch, note_count, add_count, settle of those in_epochs, forget_samples,
 *	                                keep_stacks, forget_frames
 *	the run ends                    end, detach
 *	all is collected (collect.c)    limit_reading, take, name_frames, note_count, add_count, settle, tell, describe
 *	the account is written          hide, print, entries, write_json
 *	the session is freed            free
 */
#ifndef SESSION_MEASURE_H
#define SESSION_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pybpf.h"

struct intern;
struct kernel_options;
struct processes_record;
struct profile;
struct profile_measure;
struct session;
struct session_due;
struct session_entry;
struct session_account;
struct session_options;

/* What do_periodic_work returns if it need not be called at a certain time: seconds, more than any clock has. */
#define SESSION_NEVER_S 1e18

/* A count of the kernel's map whose stack and process are known. */
struct session_counted {
	const struct pybpf_count_key *key;
	const struct pybpf_count *count;
	struct processes_record *process;
	uint32_t stack; /* of the profile */
};

/*
 * Every function may be NULL. Those that return int return 0 or negative errno, which ends the run, as what is lost
 * would be in no account.
 */
struct session_measure {
	const char *name;
	/* Returns whether runs with these options measure it; NULL: all do. */
	bool (*is_wanted)(const struct session_options *options);

	/* Sets the options of the kernel side that it needs. */
	void (*ask_kernel)(const struct session_options *options, struct kernel_options *kernel);

	/* Both are called for a measure that is not wanted, too. */
	void (*init)(struct session *s);
	void (*free)(struct session *s);

	/* Before anything is measured; the caller reports no error. */
	int (*attach)(struct session *s);
	/* When all measures are attached. */
	int (*begin)(struct session *s);
	/* When the run ends, and all are still attached. Called once. */
	void (*end)(struct session *s);
	/* Returns the seconds that end() presumably takes: the run has them as well. NULL: next to none. */
	double (*estimate_end)(const struct session *s);
	void (*detach)(struct session *s);

	/*
	 * Periodic work of a few milliseconds. now: CLOCK_MONOTONIC seconds. Returns the second at which to call it
	 * next, or negative errno; it is called ten times a second anyway.
	 */
	double (*do_periodic_work)(struct session *s, double now);

	/* The types of records in the ring buffer that it takes, a SESSION_RECORD() each: a type has one taker. */
	uint32_t records;
	/* Takes such a record. Returns -ENOENT if its process is not known yet. */
	int (*take)(struct session *s, const struct pybpf_event *event);

	/* All records have come: what frames need to be named is read now. */
	void (*name_frames)(struct session *s);

	/* Looks at a count before it is put into the profile. */
	void (*note_count)(struct session *s, const struct session_counted *counted);
	/*
	 * Puts a count of the kernel's map into the profile. Only one measure gets them: the first wanted one in the
	 * table that has this. Returns 0 or -ENOMEM.
	 */
	int (*add_count)(struct session *s, const struct session_counted *counted);
	/* The counts of ended processes come after all records that were sent before their end. */
	bool needs_records;
	/* Says what the values of the profile are. Likewise only the first wanted one that has this does. */
	void (*describe)(const struct session *s, const struct session_account *account,
			 struct profile_measure *values);

	/* Sampling has ended: limits what is still read while all is collected. */
	void (*limit_reading)(struct session *s);
	/* Returns the number of times that it keeps until they are events of the profile. */
	size_t (*count_times)(const struct session *s);

	/* Puts what it has kept into the profile: what is due (due.h). */
	int (*settle)(struct session *s, const struct session_due *due);
	/* It is settled at the end of each epoch, too: session_due.epoch. */
	bool in_epochs;
	/* An epoch is about to end: what has to be read before the sets of the kernel's maps change. */
	int (*prepare_epoch)(struct session *s);

	/* The process has ended, and all of it is settled. */
	void (*forget_process)(struct session *s, uint64_t proc_id);
	/* A new epoch begins: the profile loses its samples; with forget_frames an empty one takes its place. */
	void (*forget_samples)(struct session *s);
	/* Before that: adds the ids of the stacks that it still needs, which are kept, to a table of uint64_t. */
	int (*keep_stacks)(struct session *s, struct intern *ids);
	void (*forget_frames)(struct session *s);

	/* Fills in its fields of the account, when all is settled and the counts of samples and processes are in it. */
	void (*tell)(const struct session *s, struct session_account *account);

	/*
	 * The output of the account, in the order of the table, whatever the run has measured: there is no session any
	 * more. print: lines of text.
	 */
	void (*print)(const struct session_account *account, const struct profile *profile, FILE *out);
	/* Numbers of the JSON and of the profile's account, up to one without a key; NULL: none. */
	const struct session_entry *entries;
	/* One more member of the outermost JSON object: what is not a number. */
	void (*write_json)(const struct session_account *account, FILE *out);
	/* Empties the names of tasks and places that write_json would write (--anonymize). */
	void (*hide)(struct session_account *account);
};

/* The bit of an enum pybpf_event_type in `records`. */
#define SESSION_RECORD(type) (1u << (type))

/*
 * The measures in their order: the functions above are called from the first to the last, only end, detach
 * and free from the last to the first.
 */
#define SESSION_MEASURES 15
extern const struct session_measure *const session_measures[SESSION_MEASURES];

/* measures.c: for all in the table. */

/* Chooses those that the session's options want. */
void session_measures_init(struct session *s);
void session_measures_free(struct session *s);
/* Returns the measure that takes records of a type, an enum pybpf_event_type; NULL: it is a matter of all. */
const struct session_measure *session_measures_find_taker(uint32_t type);

/* measure.c: for those that were chosen. */

void session_measures_ask_kernel(const struct session *s, struct kernel_options *kernel);
int session_measures_attach(struct session *s);
void session_measures_end(struct session *s);
void session_measures_detach(struct session *s);
/* Returns when it is to be called next, CLOCK_MONOTONIC seconds, or negative errno. */
double session_measures_do_periodic_work(struct session *s);
bool session_measures_need_records(const struct session *s);
void session_measures_name_frames(struct session *s);
int session_measures_add_count(struct session *s, const struct session_counted *counted);
void session_measures_limit_reading(struct session *s);
/* Returns the seconds that session_measures_end() presumably takes. */
double session_measures_estimate_end(const struct session *s);
size_t session_measures_count_times(const struct session *s);
void session_measures_describe(const struct session *s, const struct session_account *account,
			       struct profile_measure *values);
int session_measures_settle(struct session *s, const struct session_due *due);
int session_measures_prepare_epoch(struct session *s);
int session_measures_settle_epoch(struct session *s);
void session_measures_forget_process(struct session *s, uint64_t proc_id);
void session_measures_forget_samples(struct session *s);
int session_measures_keep_stacks(struct session *s, struct intern *ids);
void session_measures_forget_frames(struct session *s);
void session_measures_tell(const struct session *s, struct session_account *account);

#endif
