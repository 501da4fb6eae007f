// SPDX-License-Identifier: Apache-2.0
/*
 * Discovery's functions, run in a helper process (helper.h), which opens and parses the files that a process maps, its
 * memory, and what container runtimes wrote. Each function takes and returns what the function that it is named after
 * does. When the helper gives no answer, *error says so, with the path that the helper was opening.
 */
#ifndef DISCOVERY_ASK_H
#define DISCOVERY_ASK_H

#include "base/error.h"
#include "discovery/discovery.h"
#include "container/container.h"
#include "helper/helper.h"

/*
 * As discovery_runtimes(). Returns DISCOVERY_PENDING when the answer is not there yet: ask for the same some
 * milliseconds later. life: number of the program that the PID runs, as in struct helper_subject. many: true in a pass
 * over many processes (discovery_memo_begin).
 */
enum discovery_result discovery_ask_runtimes(pid_t pid, uint64_t life, bool many, struct discovery_python *out,
					     size_t room, size_t *count, struct error *error);
/*
 * As discovery_ask_runtimes(), but waits for the answer. Returns DISCOVERY_PENDING only when a signal that ends a run
 * is pending, and DISCOVERY_UNSUPPORTED instead of DISCOVERY_LATER. unmapped_s: for how long it waits for a process
 * that maps no executable file.
 */
enum discovery_result discovery_wait_runtimes(pid_t pid, bool many, double unmapped_s, struct discovery_python *out,
					      size_t room, size_t *count, struct error *error);
/*
 * Longest such wait, for a process that somebody named; others are not waited for. exec and exit take microseconds, and
 * seconds only where a file system does not answer.
 */
#define DISCOVERY_UNMAPPED_S 1.0

/* As discovery_validate(); also -EIO when the helper did not answer in time. */
int discovery_ask_validate(const struct discovery_python *python, struct error *error);

/* As discovery_mapped_file(). */
int discovery_ask_mapped_file(pid_t pid, uint64_t start, uint64_t end, enum discovery_mapped *what, uint64_t *id);

/*
 * Returns a number of the control groups that a process is in, equal for those that are in the same ones, in *id: a
 * hash of what /proc tells, which is not looked at. Returns 0 or negative errno.
 */
int discovery_group_of(pid_t pid, uint64_t *id);
/* As container_find_by_pid(). */
int discovery_ask_container_of(pid_t pid, struct container *out);
/* Most containers that one pattern means. */
#define DISCOVERY_CONTAINERS_MAX 100
/* Longest wait for an answer before a run. */
#define DISCOVERY_PATIENCE_S 5.0
/* As container_find(); out has room for DISCOVERY_CONTAINERS_MAX. Waits patience_s at most. */
int discovery_ask_container_find(const char *query, double patience_s, struct container_found *out, size_t *count,
				 struct error *error);
/* As container_count_names(). */
int discovery_ask_container_names(struct container_names *out);

/* As scan_read_cmdline(). Returns 0, or negative errno when it is not known, with "" in buf. */
int discovery_ask_cmdline(pid_t pid, char *buf, size_t size);

/* Makes remote_read() read through a helper from now on. */
void discovery_ask_memory(void);

/* How helpers answer: rows of the table in cli/services.c. */
helper_service discovery_serve_runtimes, discovery_serve_validate, discovery_serve_mapped_file;
helper_service discovery_serve_container_of, discovery_serve_container_find, discovery_serve_container_names;
helper_service discovery_serve_cmdline, discovery_serve_memory;

#endif
