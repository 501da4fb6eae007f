// SPDX-License-Identifier: Apache-2.0
/* Prints the greenlets of a thread that do not run, and writes them as JSON. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/print.h"

/* Addresses that are printed of greenlets that are alike. */
#define ADDRESSES 4

static bool are_alike(const struct dump_greenlet *a, const struct dump_greenlet *b)
{
	return a->tid == b->tid && a->stack == b->stack && !a->is_main && !b->is_main && !strcmp(a->class, b->class);
}

static void print_alike(const struct dump_process *process, const struct dump_greenlet *first, size_t count,
			enum dump_style style, FILE *out)
{
	if (count > 1)
		fprintf(out, "  %zu greenlets of class ", count);
	else
		fputs(first->is_main ? "  Main greenlet of class " : "  Greenlet of class ", out);
	text_print(first->class, out);
	for (size_t i = 0; i < count && i < ADDRESSES; i++)
		fprintf(out, "%s%#" PRIx64, i ? ", " : " at ", first[i].object);
	fputs(count > ADDRESSES ? ", ...\n" : "\n", out);
	dump_print_stack(process, NULL, first->stack, style, 4, out);
}

void dump_print_greenlets(const struct dump_process *process, const struct dump_thread *thread, enum dump_style style,
			  FILE *out)
{
	const struct dump_greenlets *all = &process->greenlets;
	size_t end;

	for (size_t i = 0; i < all->count; i = end) {
		end = i + 1;
		if (all->items[i].tid != thread->tid)
			continue;
		while (end < all->count && are_alike(&all->items[i], &all->items[end]))
			end++;
		print_alike(process, &all->items[i], end - i, style, out);
	}
}

void dump_print_greenlets_left_out(const struct dump_process *process, FILE *out)
{
	const struct dump_greenlets *all = &process->greenlets;

	if (all->changed)
		fprintf(out, "Not shown: %" PRIu64 " greenlet%s that could not be read, or changed at each attempt\n",
			all->changed, all->changed == 1 ? "" : "s");
	if (all->beyond)
		fputs("Not shown: greenlets beyond the first 8192, or in memory beyond the first GiB\n", out);
}

void dump_write_greenlets(const struct dump_process *process, const struct dump_thread *thread, struct json *j)
{
	const struct dump_greenlets *all = &process->greenlets;

	json_begin_array(j, "greenlets");
	for (size_t i = 0; i < all->count; i++) {
		if (all->items[i].tid != thread->tid)
			continue;
		json_begin_object(j, NULL);
		json_uint(j, "id", all->items[i].object);
		json_string(j, "class", all->items[i].class);
		json_bool(j, "main", all->items[i].is_main);
		dump_write_frames(process, NULL, all->items[i].stack, j);
		json_end_object(j);
	}
	json_end_array(j);
}
