// SPDX-License-Identifier: Apache-2.0
/* Events by name: those that the kernel's software counts, tracepoints, and functions of files (uprobes). */
#ifndef KERNEL_EVENT_H
#define KERNEL_EVENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/sampler.h"

/* Longest name of a tracepoint's category, with its NUL. */
#define KERNEL_CATEGORY_SIZE 64

/* The parts of an event's name. */
struct kernel_event_text {
	char category[KERNEL_CATEGORY_SIZE];
	char path[PATH_MAX];
};

/* All names that kernel_parse_event takes, for messages. */
#define KERNEL_EVENT_NAMES                                                                                             \
	"page-faults, minor-faults, major-faults, context-switches, tracepoint:CATEGORY:NAME or uprobe:PATH:SYMBOL"

/*
 * Fills *event, of kind PYBPF_KIND_EVENTS, by its name, and *text; the event keeps both
 * pointers. A function's offset in the file is left to the caller. period: events per sample. Returns 0, or -EINVAL for
 * an unknown name.
 */
int kernel_parse_event(const char *name, uint64_t period, struct kernel_event_text *text, struct kernel_event *event);

/* Fills *event with the growth of the resident memory of processes, in bytes. held: less what is given back. */
void kernel_choose_memory(bool held, struct kernel_event *event);

/* Tracepoints that kernel_options.held needs besides: where memory is moved, or made resident. */
#define KERNEL_MEMORY_POINTS 2
extern const struct kernel_point {
	const char *category, *name;
} kernel_memory_points[KERNEL_MEMORY_POINTS];
/* Returns whether this kernel has them, and tells each change of memory: 0, or a negative errno with a sentence. */
int kernel_check_memory_points(struct error *error);

#define KERNEL_MOUNT_TRACEFS "mount -t tracefs nodev /sys/kernel/tracing"

/* Returns the folder of the kernel's tracepoints, or NULL where tracefs is not mounted or may not be read. */
const char *kernel_find_tracepoints(void);

/* Returns whether this kernel has the event: 0, or a negative errno with a sentence in *error. */
int kernel_check_event(const struct kernel_event *event, struct error *error);

#endif
