// SPDX-License-Identifier: Apache-2.0
/* Perf events of one CPU, and the buffers of their records. */
#ifndef KERNEL_PERF_EVENT_H
#define KERNEL_PERF_EVENT_H

#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Opens an event of whatever runs on the CPU. Returns its descriptor, which is closed when a program is executed, or
 * negative errno; -ENODEV or -ENXIO: the CPU is offline.
 */
int kernel_perf_open(const struct perf_event_attr *attr, int cpu);

/* The buffer of an event's records. Filled with zeros, it stands for no buffer. */
struct kernel_perf_buffer {
	struct perf_event_mmap_page *head; /* the memory that the kernel shares: a page, then the records */
	size_t size;                       /* of the records, in bytes */
	int fd;                            /* the event's */
};

/*
 * Makes a buffer of `pages` pages, a power of two, for the event's records, and takes over its descriptor. Returns 0,
 * or negative errno; -EPERM: the user's limit of such memory (kernel.perf_event_mlock_kb).
 */
int kernel_perf_map(struct kernel_perf_buffer *buffer, int fd, size_t pages);
void kernel_perf_unmap(struct kernel_perf_buffer *buffer);

/* Largest record: its size is a uint16_t. */
#define KERNEL_PERF_RECORD_MAX 65536

/*
 * Calls visit for each record that waits; one that lies across the buffer's end is copied to `copy`, of
 * KERNEL_PERF_RECORD_MAX bytes. Returns their bytes.
 */
size_t kernel_perf_read(struct kernel_perf_buffer *buffer, void *copy,
			void (*visit)(const struct perf_event_header *record, void *arg), void *arg);

#endif
