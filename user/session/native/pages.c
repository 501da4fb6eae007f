// SPDX-License-Identifier: Apache-2.0
#include "session/native/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernel/native.h"
#include "native/page.h"

/* Programs read for less than a millisecond, on a machine that is not stopped meanwhile. */
#define STILL_READ_S 1.0

void native_pages_init(struct native_pages *p, struct kernel *kernel)
{
	memset(p, 0, sizeof(*p));
	p->kernel = kernel;
	native_pages_give(p, 0, kernel_count_native_chunks(kernel) * PYBPF_NATIVE_CHUNK_PAGES, -STILL_READ_S);
	p->used = 0;
}

void native_pages_free(struct native_pages *p)
{
	free(p->runs);
}

static void remove_run(struct native_pages *p, size_t i)
{
	memmove(&p->runs[i], &p->runs[i + 1], (p->nr_runs - i - 1) * sizeof(p->runs[0]));
	p->nr_runs--;
}

/* Makes all runs one that lie beside each other and may be used: what has just been given back keeps no others. */
static void join_free(struct native_pages *p, double now)
{
	for (size_t i = 0; i + 1 < p->nr_runs;) {
		struct native_run *run = &p->runs[i], *next = run + 1;

		if (run->first + run->count != next->first || run->free_at > now || next->free_at > now) {
			i++;
			continue;
		}
		run->count += next->count;
		remove_run(p, i + 1);
	}
}

/* A run that finds no memory to be kept is lost. */
static void add_run(struct native_pages *p, const struct native_run *run)
{
	size_t i = 0;

	if (!run->count || array_reserve(&p->runs, &p->room, p->nr_runs + 1, sizeof(*p->runs)))
		return;
	while (i < p->nr_runs && p->runs[i].first < run->first)
		i++;
	memmove(&p->runs[i + 1], &p->runs[i], (p->nr_runs - i) * sizeof(p->runs[0]));
	p->runs[i] = *run;
	p->nr_runs++;
}

void native_pages_give(struct native_pages *p, uint32_t first, uint32_t count, double now)
{
	const struct native_run run = {first, count, now + STILL_READ_S};

	add_run(p, &run);
	p->used -= count;
}

static int take_free(struct native_pages *p, uint32_t count, double now, uint32_t *first)
{
	for (size_t i = 0; i < p->nr_runs; i++) {
		struct native_run *run = &p->runs[i];

		if (run->count < count || run->free_at > now)
			continue;
		*first = run->first;
		run->first += count;
		run->count -= count;
		if (!run->count)
			remove_run(p, i);
		p->used += count;
		return 0;
	}
	return -E2BIG;
}

int native_pages_take(struct native_pages *p, uint32_t count, double now, uint32_t *first)
{
	int err = take_free(p, count, now, first);

	if (err == -E2BIG) {
		join_free(p, now);
		err = take_free(p, count, now, first);
	}
	while (err == -E2BIG) {
		struct native_run more = {kernel_count_native_chunks(p->kernel) * PYBPF_NATIVE_CHUNK_PAGES,
					  PYBPF_NATIVE_CHUNK_PAGES, now};

		err = kernel_add_native_chunk(p->kernel);
		if (err)
			return err;
		add_run(p, &more);
		join_free(p, now);
		err = take_free(p, count, now, first);
	}
	return err;
}

bool native_pages_have_room(const struct native_pages *p, uint32_t count, double now)
{
	uint64_t run = 0;
	uint32_t next = 0;

	for (size_t i = 0; i < p->nr_runs; i++) {
		if (p->runs[i].free_at > now)
			continue;
		run = p->runs[i].first == next ? run + p->runs[i].count : p->runs[i].count;
		next = p->runs[i].first + p->runs[i].count;
		if (run >= count)
			return true;
	}
	return false;
}

struct part {
	struct native_page_range range;
	uint32_t table_pages; /* 0: it is free */
};

static int compare_parts(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->range.first < y->range.first ? -1 : x->range.first > y->range.first;
}

/* Chooses among parts that are in order. */
static int choose(const struct part *parts, size_t nr_parts, uint32_t count, struct native_page_range *chosen)
{
	uint64_t all = 0, taken = 0, least = UINT64_MAX;
	size_t from = 0;

	for (size_t i = 0; i < nr_parts; i++) {
		const struct native_page_range *range = &parts[i].range;

		if (i && parts[i - 1].range.first + parts[i - 1].range.count != range->first) {
			from = i;
			all = taken = 0;
		}
		all += range->count;
		taken += parts[i].table_pages;
		while (all - parts[from].range.count >= count) {
			all -= parts[from].range.count;
			taken -= parts[from].table_pages;
			from++;
		}
		if (all < count || taken >= least)
			continue;
		least = taken;
		*chosen = (struct native_page_range){parts[from].range.first, (uint32_t)all};
	}
	return least == UINT64_MAX ? -ENOENT : 0;
}

int native_pages_choose(const struct native_pages *p, const struct native_page_range *tables, size_t nr_tables,
			uint32_t count, struct native_page_range *chosen)
{
	struct part *parts = calloc(p->nr_runs + nr_tables + 1, sizeof(*parts));
	size_t n = 0;
	int err;

	if (!parts)
		return -ENOMEM;
	for (size_t i = 0; i < p->nr_runs; i++)
		parts[n++] = (struct part){{p->runs[i].first, p->runs[i].count}, 0};
	for (size_t i = 0; i < nr_tables; i++)
		parts[n++] = (struct part){tables[i], tables[i].count};
	qsort(parts, n, sizeof(*parts), compare_parts);
	err = choose(parts, n, count, chosen);
	free(parts);
	return err;
}

static int write_page(struct native_pages *p, uint32_t number, const struct pybpf_native_page *page)
{
	p->writes++;
	return kernel_write_native_page(p->kernel, number, page);
}

int native_pages_read(const struct native_pages *p, uint32_t number, struct pybpf_native_page *out)
{
	return kernel_read_native_page(p->kernel, number, out);
}

int native_pages_write_rows(struct native_pages *p, uint32_t first, const struct pybpf_native_row *rows, size_t count)
{
	struct pybpf_native_page page;
	int err = 0;

	for (uint32_t i = 0; i < native_pages_of_rows(count) && !err; i++) {
		native_page_of_rows(rows, count, i, &page);
		err = write_page(p, first + i, &page);
	}
	return err;
}

int native_pages_write_mappings(struct native_pages *p, uint32_t first, uint64_t generation,
				const struct pybpf_native_mapping *mappings, size_t count)
{
	struct pybpf_native_page page;
	int err = 0;

	for (uint32_t i = 0; i < native_pages_of_mappings(count) && !err; i++) {
		native_page_of_mappings(mappings, count, generation, i, &page);
		err = write_page(p, first + i, &page);
	}
	return err;
}
