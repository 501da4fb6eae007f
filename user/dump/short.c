// SPDX-License-Identifier: Apache-2.0
/* Prints a snapshot so that many threads fit on a screen: what is the same only once, and a line for each function. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/print.h"

/* Columns of a line with names of threads, and of them what says how many more there are. */
#define NAMES_WIDTH    80
#define AND_MORE_WIDTH 15

/* Threads that are printed as one. */
struct group {
	char *text; /* what they do, and their stack: the key */
	uint32_t first, last;
	uint32_t count;
};

struct groups {
	const struct dump_process *process, *before;
	struct intern table; /* struct group */
	uint32_t *next;      /* of each thread the next one of its group */
	uint32_t *order;     /* of the groups */
};

/* Returns what the thread does and its stack, as printed; the caller frees it. NULL without memory. */
static char *tell(const struct groups *g, const struct dump_thread *thread)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	dump_print_doing(g->process, g->before, thread, out);
	dump_print_thread_stack(g->process, thread, DUMP_SHORT, out);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static int add_thread(struct groups *g, uint32_t i)
{
	struct group fresh = {.text = tell(g, &g->process->threads[i]), .first = i, .last = i}, *group;
	bool is_fresh = false;
	uint32_t at = fresh.text ? intern_add(&g->table, &fresh, &is_fresh) : INTERN_NONE;

	if (!is_fresh)
		free(fresh.text);
	if (at == INTERN_NONE)
		return -ENOMEM;
	group = intern_item(&g->table, at);
	if (!is_fresh)
		g->next[group->last] = i;
	group->last = i;
	group->count++;
	return 0;
}

/* Prints as many of the threads as have room in a line. */
static void print_names(const struct groups *g, const struct group *group, FILE *out)
{
	size_t used = 2;
	uint32_t i = group->first, printed = 0;

	fputs("  ", out);
	for (; printed < group->count; printed++, i = g->next[i]) {
		const struct dump_thread *thread = &g->process->threads[i];
		char *name = text_printable(thread->name);
		size_t width = (size_t)snprintf(NULL, 0, ", %d \"\"", thread->tid) + text_width(name ?: "");
		bool fits = !printed || used + width <= NAMES_WIDTH - AND_MORE_WIDTH;

		if (fits)
			fprintf(out, "%s%d \"%s\"", printed ? ", " : "", thread->tid, name ?: "");
		used += width;
		free(name);
		if (!fits)
			break;
	}
	if (printed < group->count)
		fprintf(out, " and %" PRIu32 " more", group->count - printed);
	fputc('\n', out);
}

static void print_group(const struct groups *g, const struct group *group, FILE *out)
{
	const char *stack = strchr(group->text, '\n');

	if (group->count == 1) {
		dump_print_thread_name(&g->process->threads[group->first], out);
		fputs(group->text, out);
		return;
	}
	fprintf(out, "%" PRIu32 " threads: %.*s\n", group->count, (int)(stack - group->text), group->text);
	print_names(g, group, out);
	fputs(stack + 1, out);
}

static int compare_groups(const void *a, const void *b, void *arg)
{
	const struct groups *g = arg;
	const struct group *x = intern_item(&g->table, *(const uint32_t *)a);
	const struct group *y = intern_item(&g->table, *(const uint32_t *)b);

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->first < y->first ? -1 : 1;
}

static int group_threads(struct groups *g)
{
	g->next = calloc(g->process->count + 1, sizeof(*g->next));
	g->order = calloc(g->process->count + 1, sizeof(*g->order));
	if (!g->next || !g->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->process->count; i++) {
		if (add_thread(g, i))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < g->table.count; i++)
		g->order[i] = i;
	qsort_r(g->order, g->table.count, sizeof(*g->order), compare_groups, g);
	return 0;
}

void dump_print_short(const struct dump_process *process, const struct dump_process *before, FILE *out)
{
	struct groups g = {
		.process = process, .before = before, .table = INTERN_INIT(sizeof(struct group), INTERN_TEXT)};
	int err = group_threads(&g);

	fputs(err ? "\n(no memory for the threads)\n" : "\n", out);
	for (uint32_t i = 0; i < g.table.count; i++) {
		if (!err)
			print_group(&g, intern_item(&g.table, g.order[i]), out);
	}
	for (uint32_t i = 0; i < g.table.count; i++)
		free(((struct group *)intern_item(&g.table, i))->text);
	intern_free(&g.table);
	free(g.next);
	free(g.order);
}
