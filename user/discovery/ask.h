// SPDX-License-Identifier: Apache-2.0
/*
 * Discovery's questions, answered by a helper (foreign.h): files that a process maps, its memory, and what container
 * runtimes wrote are opened and parsed there. Each returns as the function that it is named after; what had no answer
 * is said in *error, with the path that was being opened.
 */
#ifndef DISCOVERY_ASK_H
#define DISCOVERY_ASK_H

#include "base/error.h"
#include "discovery/discovery.h"
#include "container/container.h"

/*
 * As discovery_runtimes(). DISCOVERY_PENDING: to be asked again, some milliseconds later. life: which program of the
 * PID, as in struct foreign_subject. many: this process is one of many that are looked at now (discovery_memo_begin).
 */
enum discovery_result discovery_ask_runtimes(pid_t pid, uint64_t life, bool many, struct discovery_python *out,
					     size_t room, size_t *count, struct error *error);
/* The same, waiting. DISCOVERY_PENDING: a signal that ends a run is pending. */
enum discovery_result discovery_wait_runtimes(pid_t pid, bool many, struct discovery_python *out, size_t room,
					      size_t *count, struct error *error);

/* As discovery_validate(); -EIO where there was no answer in time. */
int discovery_ask_validate(const struct discovery_python *python, struct error *error);

/* As discovery_mapped_file(). */
int discovery_ask_mapped_file(pid_t pid, uint64_t start, uint64_t end, bool *python, uint64_t *id);

/* As container_find_by_pid(). */
int discovery_ask_container_of(pid_t pid, struct container *out);
/* As container_find(). */
int discovery_ask_container_find(const char *query, struct container *out, struct cgroup *group, struct error *error);

/* As scan_read_cmdline(). */
void discovery_ask_cmdline(pid_t pid, char *buf, size_t size);

/* From now on remote_read() asks, too. */
void discovery_ask_memory(void);

#endif
