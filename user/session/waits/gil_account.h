// SPDX-License-Identifier: Apache-2.0
/* What a run with --mode=gil says at its end of the GIL and its holders. */
#ifndef SESSION_GIL_ACCOUNT_H
#define SESSION_GIL_ACCOUNT_H

#include <stdint.h>

/* Holders that are named at the end of a run. */
#define SESSION_GIL_HOLDERS 5
/* Longest name of a place, "function (file:line)", with its NUL. */
#define SESSION_GIL_WHERE 256

/* A place in a program, and what it did to the GIL. */
struct session_gil_place {
	char where[SESSION_GIL_WHERE];
	uint64_t count, ns, longest_ns;
};

struct session_gil_account {
	uint64_t waits, longest_ns;                            /* for the GIL, whoever held it */
	struct session_gil_place holders[SESSION_GIL_HOLDERS]; /* the time they blocked others, longest first */
	uint64_t nr_holders;                                   /* places in all */
	struct session_gil_place unknown;                      /* waits whose holder is not known */
	struct session_gil_place nobody; /* waits while nobody held it: the next holder did not run yet */
	struct session_gil_place asleep; /* sleeps with the GIL, and the place of the longest of them */
	uint64_t queued_ns;              /* holders waited for a CPU */
	uint64_t throttled_ns;           /* their control group had used up its quota */
	/*
	 * Estimated by samples: CPU time of holders in all, and of it that in other code than the interpreter's, in the
	 * kernel, and in code of which neither is known.
	 */
	uint64_t held_ns, held_elsewhere_ns, held_kernel_ns, held_unknown_ns;
	uint64_t free_threaded; /* processes of such builds */
	uint64_t unrecognized;  /* processes of builds whose waits are not told */
};

#endif
