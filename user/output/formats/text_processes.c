// SPDX-License-Identifier: Apache-2.0
/* A table of processes by their samples: flat, or each below the one that started it. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "output/amount.h"
#include "output/formats/text_table.h"
#include "profile/parents.h"
#include "base/intern.h"
#include "base/text.h"

/* Rows; of more processes, small ones with the same name are added up, and those that are still too many counted. */
#define ROWS_MAX 20
/* Where processes are more than rows: how many have rows of their own, and their least share in percent. */
#define OWN_ROWS  10
#define OWN_SHARE 1.0
/* The width of the column of names; a longer name shifts the columns behind it, where it is not shortened. */
#define NAME_WIDTH 40
/* The columns that a terminal keeps for names, before it has none for the column "self". */
#define NAME_ROOM 24
/* Columns that a level is indented by. */
#define INDENT 2

struct node {
	struct profile_process process; /* tells it from others */
	uint32_t index;                 /* among the processes; PROFILE_NONE: it has no samples */
	uint32_t parent;                /* among those that started others; PROFILE_NONE: none of them */
	uint32_t above;                 /* the node of who started it, which has a smaller index; PROFILE_NONE: none */
	uint32_t depth;
	uint64_t self, total; /* total: with all that are below it */
	uint32_t members;     /* processes that the row is of; 0: it is in another row */
	uint32_t below;       /* nodes that it has started */
	uint32_t first, next; /* the first of these, and the next one with the same parent, by their total */
	bool shown;
	char *label;
};

struct tree {
	const struct text_table *table;
	struct intern nodes;               /* struct node */
	uint32_t *order;                   /* nodes with members, by their total */
	uint32_t rows;                     /* of them */
	uint32_t first;                    /* the first node without one above it */
	bool is_tree, contained, has_self; /* has_self: there is room for that column */
};

static struct node *node_at(const struct tree *t, uint32_t index)
{
	return intern_item(&t->nodes, index);
}

/* Returns the node of a process, which is added if there is none yet; PROFILE_NONE: no memory. */
static uint32_t add_node(struct tree *t, const struct profile_process *process, uint32_t above)
{
	const struct node node = {.process = *process,
				  .index = PROFILE_NONE,
				  .parent = PROFILE_NONE,
				  .above = above,
				  .depth = above == PROFILE_NONE ? 0 : node_at(t, above)->depth + 1,
				  .members = 1,
				  .first = PROFILE_NONE,
				  .next = PROFILE_NONE};
	bool fresh;
	uint32_t i = intern_add(&t->nodes, &node, &fresh);

	if (i != INTERN_NONE && fresh && above != PROFILE_NONE)
		node_at(t, above)->below++;
	return i;
}

/* Adds a process, below those that started it. Returns 0 or -ENOMEM. */
static int add_process(struct tree *t, uint32_t process)
{
	const struct profile *p = t->table->profile;
	const struct profile_parents *parents = profile_get_parents(p);
	uint32_t chain[PROFILE_PARENTS_MAX], above = PROFILE_NONE, own;
	size_t count = t->is_tree ? profile_parents_chain(parents, process, chain) : 0;

	for (size_t i = 0; i < count; i++) {
		above = add_node(t, &profile_parents_at(parents, chain[i])->process, above);
		if (above == PROFILE_NONE)
			return -ENOMEM;
		node_at(t, above)->parent = chain[i];
	}
	own = add_node(t, profile_process_at(p, process), above);
	if (own == PROFILE_NONE)
		return -ENOMEM;
	node_at(t, own)->index = process;
	return 0;
}

/* Adds up the samples of each process, and of those below it. */
static void add_samples(struct tree *t)
{
	const struct profile *p = t->table->profile;
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);

	for (size_t i = 0; i < count; i++) {
		const struct profile_process *process = profile_process_at(p, samples[i].process);

		if (samples[i].stack != PROFILE_ROOT)
			node_at(t, intern_find(&t->nodes, process))->self += samples[i].value;
	}
	for (uint32_t i = t->nodes.count; i-- > 0;) {
		struct node *node = node_at(t, i);

		node->total += node->self;
		if (node->above != PROFILE_NONE)
			node_at(t, node->above)->total += node->total;
	}
}

/* Rows first, by their total. */
static int by_total(const void *a, const void *b, void *arg)
{
	const struct tree *t = arg;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct node *x = node_at(t, i), *y = node_at(t, j);

	if (!x->members != !y->members)
		return x->members ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return i < j ? -1 : i > j;
}

static void sort(struct tree *t)
{
	qsort_r(t->order, t->rows, sizeof(*t->order), by_total, t);
	while (t->rows && !node_at(t, t->order[t->rows - 1])->members)
		t->rows--;
}

/* Those that are added up: they have the same name and were started by the same one. */
struct alike {
	struct alike_key {
		uint32_t above, name, container;
	} key;
	uint32_t node; /* the first one, whose row it is */
};

/* Adds up small processes that have started no other and have the same name. Returns 0 or -ENOMEM. */
static int add_up_alike(struct tree *t)
{
	struct intern alike;
	int err = 0;

	intern_init(&alike, sizeof(struct alike), sizeof(struct alike_key));
	for (uint32_t i = 0; i < t->rows && !err; i++) {
		struct node *node = node_at(t, t->order[i]), *first;
		const struct alike one = {.key = {node->above, node->process.name, node->process.container},
					  .node = t->order[i]};
		bool fresh;
		uint32_t at;

		if (node->below || (i < OWN_ROWS && output_text_percent(node->total, t->table->all) >= OWN_SHARE))
			continue;
		at = intern_add(&alike, &one, &fresh);
		if (at == INTERN_NONE)
			err = -ENOMEM;
		if (err || fresh)
			continue;
		first = node_at(t, ((const struct alike *)intern_item(&alike, at))->node);
		first->self += node->self;
		first->total += node->total;
		first->members++;
		node->members = 0;
	}
	intern_free(&alike);
	sort(t);
	return err;
}

/* Chooses the rows with the largest totals, which those that started them have at least, and links all. */
static void link_rows(struct tree *t)
{
	t->first = PROFILE_NONE;
	for (uint32_t i = t->rows; i-- > 0;) {
		struct node *node = node_at(t, t->order[i]);
		uint32_t *first = node->above == PROFILE_NONE ? &t->first : &node_at(t, node->above)->first;

		node->next = *first;
		*first = t->order[i];
		node->shown = i < ROWS_MAX;
	}
}

/* Returns 0 or -ENOMEM. */
static int collect(struct tree *t)
{
	const struct profile *p = t->table->profile;
	int err = 0;

	for (uint32_t i = 0; i < profile_process_count(p) && !err; i++)
		err = add_process(t, i);
	t->order = err ? NULL : calloc((size_t)t->nodes.count + 1, sizeof(*t->order));
	if (!t->order)
		return -ENOMEM;
	add_samples(t);
	t->rows = t->nodes.count;
	for (uint32_t i = 0; i < t->rows; i++)
		t->order[i] = i;
	sort(t);
	if (t->rows > ROWS_MAX)
		err = add_up_alike(t);
	if (!err)
		link_rows(t);
	return err;
}

/* Returns "NAME (PID)", or "NAME (N processes)", which the caller frees. NULL: no memory. */
static char *name_of(const struct tree *t, const struct node *node)
{
	const struct profile *p = t->table->profile;
	char *label;

	if (node->members == 1)
		return node->index == PROFILE_NONE ? output_parent_label(p, node->parent)
						   : output_process_label(p, node->index);
	return asprintf(&label, "%s (%" PRIu32 " processes)", profile_string(p, node->process.name), node->members) < 0
		       ? NULL
		       : label;
}

static size_t indent_of(const struct node *node)
{
	return node->depth * INDENT;
}

/* Makes the labels of the rows, in at most room columns; 0: any number. Returns 0 or -ENOMEM. */
static int make_labels(struct tree *t, size_t room, size_t *width)
{
	*width = strlen("process");
	for (uint32_t i = 0; i < t->rows; i++) {
		struct node *node = node_at(t, t->order[i]);
		size_t limit = room > indent_of(node) ? room - indent_of(node) : 1, n;
		char *name = node->shown ? name_of(t, node) : NULL;

		node->label = name ? output_text_printed(name, room ? limit : 0) : NULL;
		free(name);
		if (!node->shown)
			continue;
		if (!node->label)
			return -ENOMEM;
		n = indent_of(node) + text_width(node->label);
		if (n > *width && (n <= NAME_WIDTH || room))
			*width = n;
	}
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int write_node(const struct tree *t, const struct node *node, size_t width, size_t room, FILE *out)
{
	const struct text_table *table = t->table;
	const struct profile_measure measure = profile_get_measure(table->profile);
	const uint32_t container = node->process.container;
	size_t used = indent_of(node) + text_width(node->label);
	char amount[OUTPUT_AMOUNT_MAX];
	char *name = container ? output_text_printed(profile_string(table->profile, container),
						     room > width + INDENT ? room - width - INDENT : room)
			       : NULL;

	if (container && !name)
		return -ENOMEM;
	if (t->has_self)
		fprintf(out, "%*s  ", table->width, output_amount(&measure, node->self, amount));
	fprintf(out, "%*s %6.1f%%  %*s%s", table->width, output_amount(&measure, node->total, amount),
		output_text_percent(node->total, table->all), (int)indent_of(node), "", node->label);
	if (name)
		fprintf(out, "%*s%s", (int)(used < width ? width - used : 0) + INDENT, "", name);
	fputc('\n', out);
	free(name);
	return 0;
}

static void write_head(const struct tree *t, size_t width, size_t room, FILE *out)
{
	static const char started[] = ", below the one that started it";

	if (t->has_self)
		fprintf(out, "%*s  ", t->table->width, "self");
	if (t->is_tree)
		fprintf(out, "%*s", t->table->width, "total");
	else
		output_text_measure(t->table, out);
	if (t->contained)
		fprintf(out, " %7s  %-*s  %.*s\n", "share", (int)width, "process",
			(int)(room > width + INDENT ? room - width - INDENT : strlen("container")), "container");
	else if (t->is_tree && (!room || strlen("process") + strlen(started) <= room))
		fprintf(out, " %7s  process%s\n", "share", started);
	else
		fprintf(out, " %7s  process\n", "share");
}

/* Writes the rows, each before those below it. Returns 0 or -ENOMEM. */
static int write_rows(struct tree *t, FILE *out)
{
	const size_t self = (size_t)t->table->width + strlen("  ");
	size_t used = (size_t)t->table->width + strlen("  100.0%  "), room, width;
	uint32_t i = t->first;
	int err;

	t->has_self = t->is_tree && (!t->table->options.width || t->table->options.width >= used + self + NAME_ROOM);
	room = output_text_room(t->table, used + (t->has_self ? self : 0));
	for (uint32_t k = 0; k < t->rows; k++)
		t->contained |= node_at(t, t->order[k])->shown && node_at(t, t->order[k])->process.container;
	err = make_labels(t, t->contained ? room * 3 / 5 : room, &width);
	if (!err)
		write_head(t, width, room, out);
	while (i != PROFILE_NONE && !err) {
		const struct node *node = node_at(t, i);

		if (node->shown)
			err = write_node(t, node, width, room, out);
		i = node->first;
		while (i == PROFILE_NONE && node->next == PROFILE_NONE && node->above != PROFILE_NONE)
			node = node_at(t, node->above);
		i = i == PROFILE_NONE ? node->next : i;
	}
	return err;
}

int output_text_processes(const struct text_table *table, FILE *out)
{
	struct tree t = {.table = table, .is_tree = profile_roots(table->profile) & PROFILE_ROOT_PARENTS};
	uint32_t more = 0;
	int err;

	intern_init(&t.nodes, sizeof(struct node), sizeof(struct profile_process));
	err = collect(&t) ?: write_rows(&t, out);
	for (uint32_t i = 0; i < t.nodes.count; i++) {
		const struct node *node = node_at(&t, i);

		more += node->shown ? 0 : node->members;
		free(node->label);
	}
	if (!err && more)
		fprintf(out, "and %" PRIu32 " process%s more\n", more, text_es(more));
	fputc('\n', out);
	free(t.order);
	intern_free(&t.nodes);
	return err;
}
