// SPDX-License-Identifier: Apache-2.0
/* The flame graph: callers above what they call, as wide as their time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "output/output.h"
#include "profile/tree.h"
#include "top/view_internal.h"

/* Lines that are not the graph's: the head, the heading, the last line. */
#define LINES_AROUND 5

/* The nodes of the path that are still there. */
struct way {
	uint32_t at[TOP_FLAME_DEPTH + 1];
	size_t depth;
};

static bool is_at(const struct profile_tree_node *node, const struct top_flame_node *wanted)
{
	return node->kind == wanted->kind && node->what == wanted->what;
}

/* Finds the path in a tree, and cuts off what is not in it any more. */
static void find_way(struct top_flame *flame, const struct profile_tree *tree, struct way *way)
{
	way->at[0] = 0;
	way->depth = 0;
	while (way->depth < flame->depth) {
		uint32_t child = tree->nodes[way->at[way->depth]].first_child;

		while (child != PROFILE_TREE_NONE && !is_at(&tree->nodes[child], &flame->path[way->depth]))
			child = tree->nodes[child].next_sibling;
		if (child == PROFILE_TREE_NONE)
			break;
		way->at[++way->depth] = child;
	}
	flame->depth = way->depth;
	if (flame->zoomed > flame->depth)
		flame->zoomed = flame->depth;
}

static void step_to(struct top_flame *flame, const struct profile_tree *tree, uint32_t node)
{
	flame->path[flame->depth++] =
		(struct top_flame_node){.kind = tree->nodes[node].kind, .what = tree->nodes[node].what};
}

/* Moves to a sibling. */
static void step_aside(struct top_flame *flame, const struct profile_tree *tree, const struct way *way, bool right)
{
	uint32_t now = way->at[way->depth], child, before = PROFILE_TREE_NONE;

	if (flame->depth <= flame->zoomed)
		return;
	child = tree->nodes[way->at[way->depth - 1]].first_child;
	for (; child != now; child = tree->nodes[child].next_sibling)
		before = child;
	child = right ? tree->nodes[now].next_sibling : before;
	if (child == PROFILE_TREE_NONE)
		return;
	flame->depth--;
	step_to(flame, tree, child);
}

int top_flame_move(struct top_flame *flame, const struct profile *profile, enum top_flame_step step)
{
	struct profile_tree tree;
	struct way way;
	int err = profile_tree_build(profile, false, &tree);

	if (err)
		return err;
	find_way(flame, &tree, &way);
	if (step == TOP_FLAME_CALLER && flame->depth) {
		flame->depth--;
		if (flame->zoomed > flame->depth)
			flame->zoomed = flame->depth;
	} else if (step == TOP_FLAME_CALLED) {
		uint32_t child = tree.nodes[way.at[way.depth]].first_child;

		if (child != PROFILE_TREE_NONE && flame->depth < TOP_FLAME_DEPTH)
			step_to(flame, &tree, child);
	} else if (step == TOP_FLAME_LEFT || step == TOP_FLAME_RIGHT) {
		step_aside(flame, &tree, &way, step == TOP_FLAME_RIGHT);
	}
	profile_tree_free(&tree);
	return 0;
}

/* Returns the name of a node, which the caller frees; NULL without memory. */
static char *name_of(const struct profile *p, const struct profile_tree_node *node)
{
	switch (node->kind) {
	case PROFILE_TREE_PARENT:
		return output_parent_label(p, node->what);
	case PROFILE_TREE_PROCESS:
		return output_process_label(p, node->what);
	case PROFILE_TREE_THREAD:
		return strdup(profile_string(p, profile_thread_at(p, node->what)->name));
	case PROFILE_TREE_CONTAINER:
		return strdup(node->what ? profile_string(p, node->what) : "[host]");
	case PROFILE_TREE_FRAME:
		return output_short_name(p, node->what);
	default:
		return strdup("all");
	}
}

/* Returns a function's name without that of its class or of the function around it; NULL: it has no more. */
static const char *own_name(const struct profile *p, const struct profile_tree_node *node)
{
	const struct profile_frame *frame = node->kind == PROFILE_TREE_FRAME ? profile_frame_at(p, node->what) : NULL;
	const char *dot = frame && frame->kind == PROFILE_PYTHON ? strrchr(profile_string(p, frame->name), '.') : NULL;

	return dot ? dot + 1 : NULL;
}

/* A part of a line. */
struct cell {
	uint32_t node;
	uint64_t start; /* in samples from the left */
};

struct graph {
	struct top_drawing *d;
	const struct profile_tree *tree;
	const struct way *way;
	uint64_t whole; /* samples of the whole width */
	struct cell *cells, *next;
	size_t count;
};

static size_t column_of(const struct graph *g, uint64_t samples)
{
	return (size_t)((double)samples / (double)g->whole * (double)g->d->columns + 0.5);
}

/* Writes a cell, which is a bar and then the name as far as it fits. */
static int write_cell(const struct graph *g, const struct cell *cell, size_t from, size_t columns, FILE *out)
{
	const struct profile_tree_node *node = &g->tree->nodes[cell->node];
	char *name = name_of(g->d->facts->all, node), *text = name ? text_printable(name) : NULL;
	size_t width;

	free(name);
	if (text && text_width(text) >= columns && own_name(g->d->facts->all, node)) {
		free(text);
		text = text_printable(own_name(g->d->facts->all, node));
	}
	if (!text)
		return -ENOMEM;
	text[text_fit(text, columns - 1)] = '\0';
	width = text_width(text);
	fprintf(out, "%s%s%*s", from ? "|" : " ", text, (int)(columns - 1 - width), "");
	free(text);
	return 0;
}

/* Returns the style of a cell: files differ in colour. */
static enum top_style style_of(const struct graph *g, uint32_t node)
{
	const struct profile_tree_node *at = &g->tree->nodes[node];
	const char *file;
	uint32_t hash = 0;

	if (node == g->way->at[g->way->depth])
		return TOP_CHOSEN;
	if (at->kind != PROFILE_TREE_FRAME)
		return TOP_CELL;
	file = profile_string(g->d->facts->all, profile_frame_at(g->d->facts->all, at->what)->file);
	for (; *file; file++)
		hash = hash * 31 + (unsigned char)*file;
	return (enum top_style)(TOP_CELL + hash % (TOP_CELLS_END - TOP_CELL));
}

/* Draws the cells of a line, which are in their order from the left. */
static void draw_cells(struct graph *g)
{
	struct top_drawing *d = g->d;
	struct top_span *spans = calloc(g->count, sizeof(*spans));
	size_t size, at = 0, nr_spans = 0;
	char *text = NULL;
	FILE *out = open_memstream(&text, &size);

	for (size_t i = 0; out && spans && i < g->count && !d->err; i++) {
		size_t from = column_of(g, g->cells[i].start);
		size_t end = column_of(g, g->cells[i].start + g->tree->nodes[g->cells[i].node].total);

		if (end <= from)
			continue;
		fprintf(out, "%*s", (int)(from - at), "");
		d->err = write_cell(g, &g->cells[i], from, end - from, out);
		at = end;
		spans[nr_spans++] = (struct top_span){from, end - from, style_of(g, g->cells[i].node)};
	}
	if (!out || fclose(out) || !spans)
		d->err = -ENOMEM;
	if (!d->err)
		top_add(d, TOP_PLAIN, "%s", text);
	free(text);
	if (d->err) {
		free(spans);
		return;
	}
	d->out->lines[d->out->count - 1].spans = spans;
	d->out->lines[d->out->count - 1].nr_spans = nr_spans;
}

/* Goes on to what the cells' functions call: those that are wide enough to be seen. */
static void descend(struct graph *g)
{
	struct cell *cells = g->cells;
	size_t count = 0;

	for (size_t i = 0; i < g->count; i++) {
		uint64_t start = g->cells[i].start;
		uint32_t child = g->tree->nodes[g->cells[i].node].first_child;

		for (; child != PROFILE_TREE_NONE; child = g->tree->nodes[child].next_sibling) {
			uint64_t end = start + g->tree->nodes[child].total;

			if (column_of(g, end) > column_of(g, start))
				g->next[count++] = (struct cell){child, start};
			start = end;
		}
	}
	g->count = count;
	g->cells = g->next;
	g->next = cells;
}

static void draw_rows(struct graph *g)
{
	const struct top_choice *c = g->d->choice;
	const struct top_flame *flame = &c->flame;

	for (size_t depth = 0; g->count && !g->d->err && depth < c->scroll + g->d->lines - LINES_AROUND; depth++) {
		if (depth <= flame->zoomed) {
			g->whole = g->tree->nodes[g->way->at[depth]].total;
			g->cells[0] = (struct cell){g->way->at[depth], 0};
			g->count = 1;
		}
		if (depth >= c->scroll)
			draw_cells(g);
		descend(g);
	}
}

static void draw_heading(struct top_drawing *d, const struct profile_tree *tree, uint32_t node)
{
	const struct profile_tree_node *at = &tree->nodes[node];
	const struct profile *p = d->facts->all;
	const struct profile_frame *frame = at->kind == PROFILE_TREE_FRAME ? profile_frame_at(p, at->what) : NULL;
	char *label = name_of(p, at), numbers[128], fitted[4096];
	double freq = d->facts->freq;
	size_t width;

	if (!label) {
		d->err = -ENOMEM;
		return;
	}
	snprintf(numbers, sizeof(numbers), "last %.0f s: %.1f %%, %.2f s, %.2f s self: ", d->facts->all_s,
		 top_percent(at->total, tree->nodes[0].total), (double)at->total / freq, (double)at->self / freq);
	width = strlen(numbers);
	if (frame && frame->file)
		top_fit_place(profile_string(p, frame->name), profile_string(p, frame->file), "",
			      d->columns > width ? d->columns - width : 0, fitted, sizeof(fitted));
	else
		top_fit_place(label, "", "", d->columns > width ? d->columns - width : 0, fitted, sizeof(fitted));
	top_add(d, TOP_HEAD, "%s%s", numbers, fitted);
	free(label);
}

static void keep_in_sight(struct top_choice *c, size_t room)
{
	if (c->scroll > c->flame.depth)
		c->scroll = c->flame.depth;
	if (c->flame.depth >= c->scroll + room)
		c->scroll = c->flame.depth - room + 1;
}

void top_draw_flame(struct top_drawing *d)
{
	struct top_flame *flame = &d->choice->flame;
	struct profile_tree tree = {0};
	struct way way = {.depth = 0};
	struct graph g = {.d = d,
			  .tree = &tree,
			  .way = &way,
			  .count = 1,
			  .cells = calloc(d->columns + 1, sizeof(*g.cells)),
			  .next = calloc(d->columns + 1, sizeof(*g.next))};

	d->err = g.cells && g.next ? profile_tree_build(d->facts->all, false, &tree) : -ENOMEM;
	if (!d->err) {
		find_way(flame, &tree, &way);
		keep_in_sight(d->choice, d->lines - LINES_AROUND);
		draw_heading(d, &tree, way.at[way.depth]);
	}
	if (!d->err && tree.nodes[0].total)
		draw_rows(&g);
	else if (!d->err)
		top_add(d, TOP_PLAIN, "no samples yet");
	free(g.cells);
	free(g.next);
	profile_tree_free(&tree);
}
