// SPDX-License-Identifier: Apache-2.0
/*
 * What a run measures, each by one row of a table: what is to be done for it at each moment of the run. The session
 * goes through the rows that its options want, and knows none of them by name.
 */
#ifndef SESSION_MEASURE_H
#define SESSION_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "pybpf.h"

struct kernel_options;
struct processes_record;
struct profile;
struct profile_measure;
struct session;
struct session_due;
struct session_entry;
struct session_account;
struct session_options;

/* When a measure wants to be called next: not again. A large number of seconds. */
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
	void (*detach)(struct session *s);

	/*
	 * Periodic work of a few milliseconds. now: CLOCK_MONOTONIC seconds. Returns when it is to be called next,
	 * which is ten times a second anyway, or negative errno.
	 */
	double (*do_periodic_work)(struct session *s, double now);

	/*
	 * Takes a record of these types, a set of bits by enum pybpf_event_type: no two measures take one type. Returns
	 * -ENOENT if its process is not known yet.
	 */
	uint32_t records;
	int (*take)(struct session *s, const struct pybpf_event *event);

	/* Takes a count: all go to the first wanted measure of the table that has this. Returns 0 or -ENOMEM. */
	int (*add_count)(struct session *s, const struct session_counted *counted);
	/* What its records tell of ended processes must be known before their counts are added. */
	bool needs_records;
	/* Says what the values of the profile are; likewise only the first wanted one does. */
	void (*describe)(const struct session *s, const struct session_account *account,
			 struct profile_measure *values);

	/* Sampling has ended: limits what is still read while all is collected. */
	void (*limit_reading)(struct session *s);
	/* Returns the number of times that it keeps until they are events of the profile. */
	size_t (*count_times)(const struct session *s);

	/* Puts what is due into the profile. */
	int (*settle)(struct session *s, const struct session_due *due);
	/* It is settled at the end of each epoch, too: for the samples of all processes. */
	bool in_epochs;

	/* The process has ended, and all of it is settled. */
	void (*forget_process)(struct session *s, uint64_t proc_id);
	/* The profile loses its samples, or also its frames: a new epoch begins. */
	void (*forget_samples)(struct session *s);
	void (*forget_frames)(struct session *s);

	/* At the end, when all is settled and the counts of samples and processes are in the account. */
	void (*tell)(const struct session *s, struct session_account *account);

	/*
	 * What the account says of it, in the order of the table, whatever the run has measured: lines of text, numbers
	 * of the JSON and of the profile's account (NULL or up to one without a key), and one more member of the JSON.
	 */
	void (*print)(const struct session_account *account, const struct profile *profile, FILE *out);
	const struct session_entry *entries;
	void (*write_json)(const struct session_account *account, FILE *out);
	/* Empties the names of tasks and places that write_json would write. */
	void (*hide)(struct session_account *account);
};

#define SESSION_RECORD(type) (1u << (type))

/*
 * The measures in their order: attached, begun, tended, settled and told from the first to the last, ended and detached
 * from the last to the first.
 */
#define SESSION_MEASURES 14
extern const struct session_measure *const session_measures[SESSION_MEASURES];

/* Chooses those that the session's options want. The next ones go through these. */
void session_measures_init(struct session *s);
void session_measures_free(struct session *s);
void session_measures_ask_kernel(const struct session *s, struct kernel_options *kernel);
int session_measures_attach(struct session *s);
void session_measures_end(struct session *s);
void session_measures_detach(struct session *s);
/* Returns when it is to be called next, CLOCK_MONOTONIC seconds, or negative errno. */
double session_measures_do_periodic_work(struct session *s);
bool session_measures_need_records(const struct session *s);
int session_measures_add_count(struct session *s, const struct session_counted *counted);
void session_measures_limit_reading(struct session *s);
size_t session_measures_count_times(const struct session *s);
void session_measures_describe(const struct session *s, const struct session_account *account,
			       struct profile_measure *values);
int session_measures_settle(struct session *s, const struct session_due *due);
int session_measures_settle_epoch(struct session *s);
void session_measures_forget_process(struct session *s, uint64_t proc_id);
void session_measures_forget_samples(struct session *s);
void session_measures_forget_frames(struct session *s);
void session_measures_tell(const struct session *s, struct session_account *account);

/* Returns the measure that takes records of a type, an enum pybpf_event_type; NULL: it is a matter of all. */
const struct session_measure *session_measures_find_taker(uint32_t type);

#endif
