// SPDX-License-Identifier: Apache-2.0
/* Builds the call tree of a profile. */
#include "profile/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/intern.h"
#include "profile/parents.h"

/* Frames with the same key are merged. */
struct frame_key {
	uint32_t kind, name, file;
	int32_t line, end_line, column, end_column;
	uint32_t frame; /* the first frame with this key; not part of the key */
};

/* Nodes with the same key are one node. */
struct node_key {
	uint32_t parent, kind, what;
};

struct builder {
	const struct profile *p;
	struct intern keys; /* node_key; the indices are those of the nodes */
	uint32_t *merged;   /* frame -> the first frame that it was merged with */
	uint32_t *nodes;    /* stack -> its node below the current root; PROFILE_TREE_NONE: not known yet */
	uint32_t *path;     /* the stack and its ancestors, up to one whose node is known */
	size_t path_room;
	uint32_t root;    /* the root for which nodes[] is valid */
	uint32_t *filled; /* stacks that have an entry in nodes[] */
	uint32_t nr_filled;
};

static int merge_frames(struct builder *b, bool by_line)
{
	uint32_t count = profile_frame_count(b->p);
	struct intern keys;
	int err = 0;

	intern_init(&keys, sizeof(struct frame_key), offsetof(struct frame_key, frame));
	for (uint32_t i = 0; i < count && !err; i++) {
		const struct profile_frame *frame = profile_frame_at(b->p, i);
		struct frame_key key = {
			.kind = frame->kind,
			.name = frame->name,
			.file = frame->file,
			.line = PROFILE_NO_LINE,
			.frame = i,
		};
		bool fresh;
		uint32_t at;

		if (by_line) {
			key.line = frame->line;
			key.end_line = frame->end_line;
			key.column = frame->column;
			key.end_column = frame->end_column;
		}
		at = intern_add(&keys, &key, &fresh);

		if (at == INTERN_NONE)
			err = -ENOMEM;
		else
			b->merged[i] = ((struct frame_key *)intern_item(&keys, at))->frame;
	}
	intern_free(&keys);
	return err;
}

/* Finds or makes the parent's child of that kind. Returns PROFILE_TREE_NONE without memory. */
static uint32_t node_on(struct builder *b, uint32_t parent, enum profile_tree_kind kind, uint32_t what)
{
	struct node_key key = {.parent = parent, .kind = kind, .what = what};
	bool fresh;

	return intern_add(&b->keys, &key, &fresh);
}

/* Finds or makes the nodes of those that started a process. Returns the last one, or PROFILE_TREE_NONE. */
static uint32_t parents_on(struct builder *b, uint32_t node, uint32_t process)
{
	const struct profile_parents *parents = profile_get_parents(b->p);
	uint32_t chain[PROFILE_PARENTS_MAX];
	size_t count = profile_parents_chain(parents, process, chain);

	for (size_t i = 0; i < count && node != PROFILE_TREE_NONE; i++) {
		uint32_t same = profile_find_process(b->p, &profile_parents_at(parents, chain[i])->process);

		node = same == PROFILE_NONE ? node_on(b, node, PROFILE_TREE_PARENT, chain[i])
					    : node_on(b, node, PROFILE_TREE_PROCESS, same);
	}
	return node;
}

static uint32_t root_of(struct builder *b, const struct profile_sample *sample)
{
	unsigned roots = profile_roots(b->p);
	uint32_t node = 0;

	if (roots & PROFILE_ROOT_CONTAINER)
		node = node_on(b, node, PROFILE_TREE_CONTAINER, profile_process_at(b->p, sample->process)->container);
	if (roots & PROFILE_ROOT_PARENTS && node != PROFILE_TREE_NONE)
		node = parents_on(b, node, sample->process);
	if (roots & PROFILE_ROOT_PROCESS && node != PROFILE_TREE_NONE)
		node = node_on(b, node, PROFILE_TREE_PROCESS, sample->process);
	if (roots & PROFILE_ROOT_THREAD && sample->thread != PROFILE_NONE && node != PROFILE_TREE_NONE)
		node = node_on(b, node, PROFILE_TREE_THREAD, sample->thread);
	return node;
}

/* Changes the current root, and clears the nodes of stacks that were known for another root. */
static void turn_to_root(struct builder *b, uint32_t root)
{
	if (b->root == root)
		return;
	for (uint32_t i = 0; i < b->nr_filled; i++)
		b->nodes[b->filled[i]] = PROFILE_TREE_NONE;
	b->nr_filled = 0;
	b->root = root;
}

/* Finds or makes the stack's node below the builder's root. Returns PROFILE_TREE_NONE without memory. */
static uint32_t node_of(struct builder *b, uint32_t stack)
{
	uint32_t node = b->root, s = stack;
	size_t n = 0;

	for (; s != PROFILE_ROOT && b->nodes[s] == PROFILE_TREE_NONE; s = profile_stack_at(b->p, s)->parent) {
		if (array_reserve(&b->path, &b->path_room, n + 1, sizeof(*b->path)))
			return PROFILE_TREE_NONE;
		b->path[n++] = s;
	}
	if (s != PROFILE_ROOT)
		node = b->nodes[s];
	while (n-- > 0 && node != PROFILE_TREE_NONE) {
		s = b->path[n];
		node = node_on(b, node, PROFILE_TREE_FRAME, b->merged[profile_stack_at(b->p, s)->frame]);
		b->nodes[s] = node;
		b->filled[b->nr_filled++] = s;
	}
	return node;
}

struct placed {
	uint32_t root, stack;
	uint64_t value;
};

static int by_root(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->root != y->root)
		return x->root < y->root ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

static int largest_first(const void *a, const void *b, void *nodes)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct profile_tree_node *x = (struct profile_tree_node *)nodes + i;
	const struct profile_tree_node *y = (struct profile_tree_node *)nodes + j;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return i < j ? -1 : i > j;
}

/* Computes totals, depths and the order of siblings from the self values. */
static int finish(struct profile_tree *tree)
{
	uint32_t *order = calloc(tree->count, sizeof(*order));
	struct profile_tree_node *nodes = tree->nodes;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < tree->count; i++) {
		order[i] = i;
		nodes[i].total = nodes[i].self;
		nodes[i].first_child = nodes[i].next_sibling = PROFILE_TREE_NONE;
		nodes[i].depth = i ? nodes[nodes[i].parent].depth + 1 : 0;
		if (nodes[i].depth > tree->depth)
			tree->depth = nodes[i].depth;
	}
	for (uint32_t i = tree->count; i-- > 1;)
		nodes[nodes[i].parent].total += nodes[i].total;
	qsort_r(order + 1, tree->count - 1, sizeof(*order), largest_first, nodes);
	for (uint32_t i = tree->count; i-- > 1;) {
		struct profile_tree_node *node = &nodes[order[i]], *parent = &nodes[node->parent];

		node->next_sibling = parent->first_child;
		parent->first_child = order[i];
	}
	free(order);
	return 0;
}

/* Makes nodes of the keys, each without a value. */
static int make_nodes(const struct intern *keys, struct profile_tree *tree)
{
	tree->nodes = calloc(keys->count, sizeof(*tree->nodes));
	if (!tree->nodes)
		return -ENOMEM;
	tree->count = keys->count;
	for (uint32_t i = 0; i < keys->count; i++) {
		const struct node_key *key = intern_item(keys, i);

		tree->nodes[i].parent = key->parent;
		tree->nodes[i].kind = key->kind;
		tree->nodes[i].what = key->what;
	}
	return 0;
}

/* Finds the root of each sample, and returns the samples sorted by root; NULL without memory. */
static struct placed *place(struct builder *b, const struct profile_sample *samples, size_t count)
{
	struct placed *placed = calloc(count ? count : 1, sizeof(*placed));

	for (size_t i = 0; i < count && placed; i++) {
		placed[i] = (struct placed){root_of(b, &samples[i]), samples[i].stack, samples[i].value};
		if (placed[i].root == PROFILE_TREE_NONE) {
			free(placed);
			placed = NULL;
		}
	}
	if (placed)
		qsort(placed, count, sizeof(*placed), by_root);
	return placed;
}

int profile_tree_build(const struct profile *p, bool by_line, struct profile_tree *tree)
{
	uint32_t frames = profile_frame_count(p), stacks = profile_stack_count(p);
	struct builder b = {.p = p};
	struct profile_sample *samples = NULL;
	struct placed *placed = NULL;
	size_t count;
	int err;

	memset(tree, 0, sizeof(*tree));
	intern_init(&b.keys, sizeof(struct node_key), sizeof(struct node_key));
	b.merged = calloc(frames ? frames : 1, sizeof(*b.merged));
	b.nodes = malloc(stacks * sizeof(*b.nodes));
	b.filled = malloc(stacks * sizeof(*b.filled));
	err = !b.merged || !b.nodes || !b.filled ? -ENOMEM : merge_frames(&b, by_line);
	err = err ?: profile_by_roots(p, &samples, &count);
	if (err)
		goto done;
	memset(b.nodes, 0xff, stacks * sizeof(*b.nodes));
	err = -ENOMEM;
	if (node_on(&b, PROFILE_TREE_NONE, PROFILE_TREE_ALL, 0) != 0)
		goto done;
	placed = place(&b, samples, count);
	if (!placed)
		goto done;
	/* From here on, placed[i].stack holds a node. */
	for (size_t i = 0; i < count; i++) {
		turn_to_root(&b, placed[i].root);
		placed[i].stack = node_of(&b, placed[i].stack);
		if (placed[i].stack == PROFILE_TREE_NONE)
			goto done;
	}
	err = make_nodes(&b.keys, tree);
	for (size_t i = 0; i < count && !err; i++)
		tree->nodes[placed[i].stack].self += placed[i].value;
	err = err ?: finish(tree);
done:
	intern_free(&b.keys);
	free(b.merged);
	free(b.nodes);
	free(b.filled);
	free(b.path);
	free(samples);
	free(placed);
	if (err)
		profile_tree_free(tree);
	return err;
}

void profile_tree_free(struct profile_tree *tree)
{
	free(tree->nodes);
	memset(tree, 0, sizeof(*tree));
}
