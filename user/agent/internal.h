// SPDX-License-Identifier: Apache-2.0
/* Declarations that only the files of the agent share. */
#ifndef AGENT_INTERNAL_H
#define AGENT_INTERNAL_H

#include "agent/agent.h"
#include "agent/notify.h"
#include "agent/sink.h"

/* Most profiles that are made at a time for clients. */
#define AGENT_PULLED_MAX 8

/* One of the modes that are measured beside each other. Times: CLOCK_MONOTONIC seconds. */
struct agent_part {
	struct agent *agent;
	enum session_mode mode;
	const char *name; /* of the mode */
	struct session *session;
	struct agent_mode_metrics *metrics; /* of the agent's */

	/* The epoch that goes on. */
	double begin;
	uint64_t begin_ns;              /* since 1970 */
	struct profile *held;           /* its samples that were taken before its end; NULL: none */
	struct session_account account; /* of the session when it began */
	/* The epoch that has ended, until it is handed on: when, and the account of the session then. */
	double end;
	struct session_account end_account;
	bool is_lost;        /* its last epoch, which was reported */
	unsigned generation; /* epochs since the session's stacks and code objects began anew */

	/* files.c */
	struct archive_keeper keeper;
	bool keeper_ended; /* which was reported */

	double next_pulled; /* serve.c: until then no profile of it begins for a client */
};

/* Differences of clocks, in seconds. */
struct agent_clocks {
	double slept_s;  /* from CLOCK_MONOTONIC to CLOCK_BOOTTIME: it grows while the machine sleeps */
	double booted_s; /* from CLOCK_BOOTTIME to CLOCK_REALTIME: it changes when the clock is set */
};

struct agent {
	struct agent_options options;
	struct agent_part parts[AGENT_MODES_MAX];
	size_t nr_parts;
	struct session_run *run;                     /* NULL: it has ended */
	const struct agent_sink *sinks[AGENT_SINKS]; /* those that the options want */
	size_t nr_sinks;
	struct agent_metrics metrics;
	struct agent_notify notify;

	/* The epoch that goes on. Times: CLOCK_MONOTONIC seconds. */
	double begin, end;          /* end: as it is planned */
	double cpu_begin_s;         /* session_used_s() when it began */
	double sinks_begin_s;       /* agent_sinks_used_s() then */
	struct agent_clocks clocks; /* as they were read last */
	double next_cut;            /* CLOCK_BOOTTIME seconds: before, they end no epoch */
	bool is_restless;           /* they changed before that, which was said */
	unsigned least, most;       /* divisors of the rate that its samples have */
	bool rate_changed;          /* in it; not: when the one before had ended */
	unsigned cheap_epochs;      /* in a row: epochs that would allow a higher rate */
	double lowered_at; /* share of a CPU at which the rate was lowered last; 0: it is known what that saved */
	double saved;      /* share of a CPU that the last lowering saved; valid if saved_known */
	bool saved_known;

	/* What sinks keep: push.c. */
	struct agent_receiver {
		struct push *push;                /* NULL: no such receiver is wanted */
		struct push_counts reported;      /* the counts that were reported last */
		uint64_t unmade[AGENT_MODES_MAX]; /* as in struct agent_push_metrics */
		uint32_t from[AGENT_MODES_MAX];   /* with which process the next epoch begins */
	} receivers[AGENT_RECEIVERS];
	uint64_t chosen_day; /* 1 + days since 1970 for which it was said whether the host sends; 0: none */
	struct output_label pyroscope_labels[AGENT_LABELS_MAX]; /* keys are owned */
	/* serve.c */
	struct serve *server;
	double requests_allowed, requests_allowed_at; /* at: CLOCK_MONOTONIC seconds */
	struct agent_pulled {
		uint64_t id;             /* of the request */
		struct agent_part *part; /* which it wants */
		unsigned seconds;
		struct profile *profile; /* of the samples since its start; NULL: it has not begun, or is lost */
		bool is_lost;            /* it lacks samples, and is to be answered so */
		/* Valid once it has begun. */
		double begin, end;              /* CLOCK_MONOTONIC seconds */
		uint64_t begin_ns;              /* since 1970 */
		struct session_account account; /* of the session at the start */
	} pulled[AGENT_PULLED_MAX];
	size_t nr_pulled;
};

/* epoch.c */

/* Begins the first epoch. */
void agent_begin_epochs(struct agent *a);
/*
 * Ends the epoch, hands it to the sinks, and begins the next one. is_cut: before its planned end. Returns as
 * agent_hold().
 */
int agent_end_epoch(struct agent *a, bool is_cut);
/* Hands on the last epoch: the sessions are detached. Returns as agent_hold(). */
int agent_finish(struct agent *a);

/* clocks.c */

void agent_read_clocks(struct agent_clocks *clocks);
/*
 * Says and counts that the machine slept, or that its clock was set, since they were read. Returns whether the epoch is
 * to end for that: at most once in an epoch's length, as programs may fight over the clock.
 */
bool agent_clocks_cut_epoch(struct agent *a);

/* files.c: makes a folder, with mode 0700, that has further ones. Returns 0, or negative errno with a sentence. */
int agent_make_folder(const char *path, struct error *error);

/* metrics.c: writes the metrics as Prometheus reads them. Returns as serve_metrics_write(). */
int agent_write_metrics(const struct agent *a, FILE *out);

/* host_share.c: returns whether the host is among a share of all on the day, in UTC, of a time in ns since 1970. */
bool agent_host_is_chosen(double share, const char *host, uint64_t ns);

/* services.c */

/* The part of an epoch's profile that one service has in one container, or outside of containers. */
struct agent_service {
	const struct profile *profile; /* with the facts of the whole one */
	const char *name;
	const char *container; /* "": none */
	uint64_t *left;        /* its values; one who fails sets it to those that are not handed over */
};

/*
 * Hands over each service's part of a profile, while goes_on, given the same argument, says so. Sets *left to the sum
 * of the values that were not handed over, for want of time, or memory, or as take failed, with a negative errno.
 * Begins with the service of the process at *from, whatever their number, and sets it to the one for which there was no
 * time, so that the next epoch begins there. Returns 0, or -ENOMEM, or the first one of these.
 */
int agent_each_service(const struct profile *p, uint32_t *from,
		       int (*take)(void *arg, const struct agent_service *service), bool (*goes_on)(void *arg),
		       void *arg, uint64_t *left);

/* samples.c */

/* Takes the samples of the epoch from the kernel where its tables are half full. Returns 0, or negative errno after a
 * report. */
int agent_hold(struct agent *a);
/*
 * Takes the samples so far into the profile of the part's epoch; forget: as of session_end_epoch(). Returns as
 * agent_hold().
 */
int agent_take_samples(struct agent_part *part, bool forget);
/* Says in a profile what it is: its account, and when it began, in ns since 1970. Returns 0 or negative errno. */
int agent_describe(struct agent_part *part, const struct session_account *account, uint64_t begin_ns,
		   struct profile *profile);
/* Adds samples to the profile of the epoch, and to those that clients wait for. arg: the part. Returns 0 or negative
 * errno. */
int agent_keep_samples(const struct profile *profile, void *arg);

/* pulled.c: the profiles that clients wait for. */

/* Adds samples of a part to them. One that cannot take them is lost: its client gets an error at the next turn. */
void agent_add_to_pulled(const struct agent_part *part, const struct profile *profile);
/* Drops one. */
void agent_remove_pulled(struct agent *a, size_t i);
/* Drops all: nobody will be answered. */
void agent_drop_pulled(struct agent *a);

/* cost.c */

/* Returns the CPU time in seconds that the processes of the sinks have taken, by what they say themselves. */
double agent_sinks_used_s(const struct agent *a);
/* Returns the CPU time in seconds that all processes have taken in the epoch that goes on. */
double agent_epoch_used_s(const struct agent *a);
/* Lowers the rate if the epoch takes more CPU time than it may. Returns as agent_hold(). */
int agent_limit_cost(struct agent *a);
/*
 * An epoch has ended, and was handed on: changes the rate of the next one if it took too much, or so little that it may
 * be higher. Returns as agent_hold().
 */
int agent_adapt_rate(struct agent *a);

#endif
