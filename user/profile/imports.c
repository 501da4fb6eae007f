// SPDX-License-Identifier: Apache-2.0
/* Finds module bodies in stacks, and adds up what they cost. */
#include "profile/imports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"

/* Nodes with the same key are one. */
struct import_key {
	uint32_t parent, file;
};

/* What the frames up to a stack's leaf tell. */
struct place {
	uint32_t node;  /* the innermost module body; 0: none */
	uint32_t frame; /* the innermost function of Python; PROFILE_NONE: none */
};

static bool is_file(const char *file, const char *end)
{
	size_t size = strlen(file), wanted = strlen(end);

	return size >= wanted && strcmp(file + size - wanted, end) == 0 &&
	       (size == wanted || file[size - wanted - 1] == '/');
}

bool profile_is_importlib(const struct profile *p, uint32_t frame)
{
	static const char *const files[] = {
		"<frozen importlib._bootstrap>",
		"<frozen importlib._bootstrap_external>",
		"<frozen zipimport>",
		"importlib/_bootstrap.py",
		"importlib/__init__.py",
		"importlib/_bootstrap_external.py",
		"zipimport.py",
	};
	const struct profile_frame *f = profile_frame_at(p, frame);
	const char *file = profile_string(p, f->file);

	for (size_t i = 0; i < sizeof(files) / sizeof(*files) && f->kind == PROFILE_PYTHON; i++) {
		if (is_file(file, files[i]))
			return strcmp(profile_string(p, f->name), "<module>") != 0;
	}
	return false;
}

bool profile_has_importlib(const struct profile *p)
{
	for (uint32_t i = 0; i < profile_frame_count(p); i++) {
		if (profile_is_importlib(p, i))
			return true;
	}
	return false;
}

/* Returns whether a frame is the body of a module that the frame below it (or PROFILE_NONE) imports. */
static bool is_import(const struct profile *p, uint32_t frame, uint32_t below)
{
	const struct profile_frame *f = profile_frame_at(p, frame);

	if (f->kind != PROFILE_PYTHON || below == PROFILE_NONE || strcmp(profile_string(p, f->name), "<module>") != 0)
		return false;
	if (profile_is_importlib(p, below))
		return true;
	return *profile_string(p, f->file) != '<' &&
	       !is_file(profile_string(p, profile_frame_at(p, below)->file), "runpy.py") &&
	       !is_file(profile_string(p, profile_frame_at(p, below)->file), "<frozen runpy>");
}

static uint32_t node_of(struct intern *keys, uint32_t parent, uint32_t file)
{
	const struct import_key key = {parent, file};
	bool fresh;

	return intern_add(keys, &key, &fresh);
}

/* Finds the places of all stacks. A parent has a smaller index than its children. Returns 0 or -ENOMEM. */
static int find_places(const struct profile *p, struct intern *keys, struct place *places)
{
	places[PROFILE_ROOT] = (struct place){0, PROFILE_NONE};
	for (uint32_t i = 1; i < profile_stack_count(p); i++) {
		const struct profile_stack *stack = profile_stack_at(p, i);
		const struct profile_frame *frame = profile_frame_at(p, stack->frame);

		places[i] = places[stack->parent];
		if (frame->kind != PROFILE_PYTHON)
			continue;
		if (is_import(p, stack->frame, places[i].frame))
			places[i].node = node_of(keys, places[i].node, frame->file);
		if (places[i].node == INTERN_NONE)
			return -ENOMEM;
		places[i].frame = stack->frame;
	}
	return 0;
}

/* Returns the node that has the samples of a stack; 0: they are of no import. INTERN_NONE: no memory. */
static uint32_t node_of_samples(const struct profile *p, struct intern *keys, const struct place *place)
{
	if (place->frame != PROFILE_NONE && profile_is_importlib(p, place->frame))
		return node_of(keys, place->node, 0);
	return place->node;
}

static int largest_first(const void *a, const void *b, void *nodes)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct profile_import *x = (struct profile_import *)nodes + i, *y = (struct profile_import *)nodes + j;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return i < j ? -1 : i > j;
}

/* Adds up the totals and links the children. Returns 0 or -ENOMEM. */
static int finish(struct profile_imports *imports)
{
	uint32_t *order = calloc(imports->count, sizeof(*order));
	struct profile_import *nodes = imports->nodes;

	if (!order)
		return -ENOMEM;
	for (uint32_t i = imports->count; i-- > 0;) {
		order[i] = i;
		nodes[i].total += nodes[i].self;
		nodes[i].first_child = nodes[i].next_sibling = PROFILE_NONE;
		if (i)
			nodes[nodes[i].parent].total += nodes[i].total;
	}
	for (uint32_t i = 1; i < imports->count; i++)
		nodes[i].depth = nodes[nodes[i].parent].depth + 1;
	qsort_r(order + 1, imports->count - 1, sizeof(*order), largest_first, nodes);
	for (uint32_t i = imports->count; i-- > 1;) {
		struct profile_import *node = &nodes[order[i]], *parent = &nodes[node->parent];

		node->next_sibling = parent->first_child;
		parent->first_child = order[i];
	}
	free(order);
	return 0;
}

/* Makes the nodes of the keys. own: the value of each. Returns 0 or -ENOMEM. */
static int make_nodes(const struct intern *keys, const uint64_t *own, struct profile_imports *imports)
{
	imports->nodes = calloc(keys->count, sizeof(*imports->nodes));
	if (!imports->nodes)
		return -ENOMEM;
	imports->count = keys->count;
	for (uint32_t i = 0; i < keys->count; i++) {
		const struct import_key *key = intern_item(keys, i);

		imports->nodes[i].parent = key->parent;
		imports->nodes[i].file = key->file;
		imports->nodes[i].self = i ? own[i] : 0;
	}
	return finish(imports);
}

/* Adds up the samples of the threads that import. nodes: that of each sample. Returns 0 or -ENOMEM. */
static int add_up_threads(const struct profile *p, const uint32_t *nodes, uint64_t *sum)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	bool *import = calloc((size_t)profile_thread_count(p) + 1, sizeof(*import));
	bool known = true;

	if (!import)
		return -ENOMEM;
	for (size_t i = 0; i < count && known; i++) {
		known = samples[i].thread != PROFILE_NONE;
		if (known && nodes[i])
			import[samples[i].thread] = true;
	}
	*sum = 0;
	for (size_t i = 0; i < count && known; i++) {
		if (samples[i].stack != PROFILE_ROOT && import[samples[i].thread])
			*sum += samples[i].value;
	}
	free(import);
	return 0;
}

int profile_imports_build(const struct profile *p, struct profile_imports *imports)
{
	struct place *places = calloc(profile_stack_count(p), sizeof(*places));
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint32_t *nodes = calloc(count + 1, sizeof(*nodes));
	uint64_t *own = NULL;
	struct intern keys;
	int err = places && nodes ? 0 : -ENOMEM;

	*imports = (struct profile_imports){0};
	intern_init(&keys, sizeof(struct import_key), sizeof(struct import_key));
	if (!err && node_of(&keys, PROFILE_NONE, 0) != 0)
		err = -ENOMEM;
	err = err ?: find_places(p, &keys, places);
	for (size_t i = 0; i < count && !err; i++) {
		nodes[i] = node_of_samples(p, &keys, &places[samples[i].stack]);
		if (nodes[i] == INTERN_NONE)
			err = -ENOMEM;
	}
	own = err ? NULL : calloc(keys.count, sizeof(*own));
	if (!own)
		err = -ENOMEM;
	for (size_t i = 0; i < count && !err; i++)
		own[nodes[i]] += samples[i].value;
	err = err ?: make_nodes(&keys, own, imports) ?: add_up_threads(p, nodes, &imports->of_threads);
	if (err)
		profile_imports_free(imports);
	intern_free(&keys);
	free(places);
	free(nodes);
	free(own);
	return err;
}

void profile_imports_free(struct profile_imports *imports)
{
	free(imports->nodes);
	*imports = (struct profile_imports){0};
}
