// SPDX-License-Identifier: Apache-2.0
/* Runs of the kernel side's pages: which are free, and which programs may still read. */
#ifndef SESSION_NATIVE_PAGES_H
#define SESSION_NATIVE_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pybpf_native.h"

struct kernel;

struct native_run {
	uint32_t first, count;
	double free_at; /* CLOCK_MONOTONIC seconds: not to be used before */
};

struct native_pages {
	struct kernel *kernel;
	struct native_run *runs; /* in order of first */
	size_t nr_runs, room;
	uint64_t used;   /* pages */
	uint64_t writes; /* of pages, since the start */
};

void native_pages_init(struct native_pages *p, struct kernel *kernel);
void native_pages_free(struct native_pages *p);

/* Takes a run. now: CLOCK_MONOTONIC seconds. Returns 0, -E2BIG when there is no room, or another negative errno. */
int native_pages_take(struct native_pages *p, uint32_t count, double now, uint32_t *first);
/* Returns whether a run of this many can be taken of what has been given back. now: CLOCK_MONOTONIC seconds. */
bool native_pages_have_room(const struct native_pages *p, uint32_t count, double now);
/* A run of pages. */
struct native_page_range {
	uint32_t first, count;
};

/*
 * Chooses pages for a run of so many that are free, or would be without these tables, so that as few pages of
 * them as possible are among these. Returns 0; -ENOENT when there are never so many beside each other, or -ENOMEM.
 */
int native_pages_choose(const struct native_pages *p, const struct native_page_range *tables, size_t nr_tables,
			uint32_t count, struct native_page_range *chosen);
/* Gives it back: a program that has read where it is may read it for some microseconds more. */
void native_pages_give(struct native_pages *p, uint32_t first, uint32_t count, double now);

/* Reads a page. Returns 0 or negative errno. */
int native_pages_read(const struct native_pages *p, uint32_t number, struct pybpf_native_page *out);
/* Writes rows from a page on, whose first is a page's first. Returns 0 or negative errno. */
int native_pages_write_rows(struct native_pages *p, uint32_t first, const struct pybpf_native_row *rows, size_t count);
/* Writes a list with its head. Returns 0 or negative errno. */
int native_pages_write_mappings(struct native_pages *p, uint32_t first, uint64_t generation,
				const struct pybpf_native_mapping *mappings, size_t count);

#endif
