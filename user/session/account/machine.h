// SPDX-License-Identifier: Apache-2.0
/* How busy the whole machine was during a run, for comparisons of runs (compare/load.c). */
#ifndef SESSION_MACHINE_H
#define SESSION_MACHINE_H

#include "profile/profile.h"

/* Sums since the machine started, in seconds; below 0: unknown. */
struct session_machine {
	double busy_s;   /* CPU time of all programs and of the kernel */
	double stolen_s; /* CPU time that a hypervisor gave to other machines */
	double waited_s; /* time in which some thread waited for a CPU */
};

struct session_machine session_machine_read(void);
/*
 * Puts what was added between two readings into the facts of a profile of CPU samples, others' CPU time without that of
 * its samples. Returns 0 or -ENOMEM.
 */
int session_machine_describe(const struct session_machine *begin, const struct session_machine *end,
			     struct profile *profile);
/* Reads the first line of /proc/stat, and of /proc/pressure/cpu, into *machine. */
void session_machine_parse_stat(const char *text, struct session_machine *machine);
void session_machine_parse_pressure(const char *text, struct session_machine *machine);

#endif
