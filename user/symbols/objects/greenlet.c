// SPDX-License-Identifier: Apache-2.0
#include "symbols/objects/greenlet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/procfs.h"
#include "cpython/facts.h"

/* Most memory that is searched: some 0.3 s. */
#define SEARCH_MAX (1ull << 30)
#define CHUNK      (256u * 1024)
#define PAGE       4096

/* greenlet.h, from the end of the object's header on: weakreflist, dict, pimpl. */
#define OBJECT_IMPL 16
#define STACK_WORDS 5 /* StackState: stack_start, stack_stop, stack_copy, stack_saved, stack_prev */
#define ARGS_WORDS  2 /* SwitchingArgs */

static bool has_contexts(const struct pybpf_layout *l)
{
	return cpython_facts(l)->threads->has_contexts;
}

/* Returns whether frames are objects themselves. */
static bool has_frame_objects(const struct pybpf_layout *l)
{
	return cpython_facts(l)->frame->kind == CPYTHON_LOCALS_OF_OBJECT;
}

static bool get(const struct walk_memory *m, uint64_t at, void *dst, size_t size)
{
	return at && !m->read(m->source, at, dst, size);
}

/* The file of greenlet's C code, in which the tables of its virtual functions are. */
struct search {
	const struct walk_memory *memory;
	uint64_t begin, end;           /* of that file's mappings */
	uint64_t code_begin, code_end; /* of the one with functions */
	uint64_t table, no_table;      /* the last address that was a table, and that was not */
	uint64_t searched;
	bool beyond;
	greenlet_take *take;
	void *arg;
	uint64_t words[CHUNK / sizeof(uint64_t)];
};

static int find_code(const struct procfs_map *map, void *arg)
{
	static const char name[] = "_greenlet.";
	const char *slash = strrchr(map->path, '/');
	struct search *s = arg;

	if (!slash || strncmp(slash + 1, name, sizeof(name) - 1) != 0 || !strstr(slash, ".so"))
		return 0;
	s->begin = s->begin ?: map->start;
	s->end = map->end;
	if (map->executable) {
		s->code_begin = map->start;
		s->code_end = map->end;
	}
	return 0;
}

static bool is_within(uint64_t at, uint64_t begin, uint64_t end)
{
	return at >= begin && at < end;
}

/* Returns whether there is a table of functions. Stacks have many addresses of the functions themselves. */
static bool is_table(struct search *s, uint64_t at)
{
	uint64_t function;

	if (at % sizeof(uint64_t) || !is_within(at, s->begin, s->end) || is_within(at, s->code_begin, s->code_end) ||
	    at == s->no_table)
		return false;
	if (at == s->table)
		return true;
	if (get(s->memory, at, &function, sizeof(function)) && is_within(function, s->code_begin, s->code_end)) {
		s->table = at;
		return true;
	}
	s->no_table = at;
	return false;
}

static int search_chunk(struct search *s, uint64_t at, size_t size)
{
	int err = 0;

	if (!get(s->memory, at, s->words, size))
		return 0;
	for (size_t i = 0; i < size / sizeof(uint64_t) && !err; i++) {
		if (is_table(s, s->words[i]))
			err = s->take(s->arg, at + i * sizeof(uint64_t));
	}
	return err;
}

static int search_map(const struct procfs_map *map, void *arg)
{
	struct search *s = arg;
	int err = 0;

	if (!map->readable || !map->writable || map->inode || !strncmp(map->path, "[stack", 6))
		return 0;
	for (uint64_t at = map->start; at < map->end && !err; at += CHUNK) {
		uint64_t left = map->end - at;

		s->beyond = s->searched >= SEARCH_MAX;
		if (s->beyond)
			return 1;
		s->searched += CHUNK;
		err = search_chunk(s, at, left < CHUNK ? left : CHUNK);
	}
	return err;
}

int greenlet_search(pid_t pid, const struct walk_memory *memory, greenlet_take *take, void *arg, bool *beyond)
{
	struct search *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	*beyond = false;
	if (!s)
		return err;
	s->memory = memory;
	s->take = take;
	s->arg = arg;
	err = procfs_each_map(pid, find_code, s);
	if (!err)
		err = s->begin ? procfs_each_map(pid, search_map, s) : -ENOENT;
	*beyond = s->beyond;
	if (s->beyond)
		err = 0;
	free(s);
	return err;
}

/* Returns whether the type of the object, whose address goes to *type, has that name. */
static bool is_of_type(const struct walk_memory *m, const struct pybpf_layout *l, uint64_t object, const char *name)
{
	uint64_t type, at;
	char text[16];

	return object && object % 8 == 0 && get(m, object + l->code_type, &type, sizeof(type)) &&
	       get(m, type + cpython_header_size(l) + PYBPF_TYPE_NAME, &at, sizeof(at)) &&
	       get(m, at, text, strlen(name) + 1) && !memcmp(text, name, strlen(name) + 1);
}

/* Finds the object whose C++ part this is: from 3.0 on the first field, before one of the last. */
static bool find_object(const struct walk_memory *m, const struct pybpf_layout *l, struct greenlet *g)
{
	for (size_t i = 1; i < GREENLET_WORDS; i++) {
		uint64_t impl;

		if (g->words[i] % 8 == 0 &&
		    get(m, g->words[i] + cpython_header_size(l) + OBJECT_IMPL, &impl, sizeof(impl)) &&
		    impl == g->impl) {
			g->object = g->words[i];
			return true;
		}
	}
	return false;
}

/*
 * Returns the word of PythonState._top_frame. Before it stand the table of virtual functions, from 3.0 on the object,
 * ExceptionState, SwitchingArgs, StackState, and where Python has contexts PythonStateContext._context (TGreenlet.hpp
 * of greenlet 3.5, greenlet_greenlet.hpp of 2.0).
 */
static size_t top_frame_at(const struct pybpf_layout *l, const struct greenlet *g)
{
	return 1 + (g->words[1] == g->object) + cpython_facts(l)->threads->greenlet_words + ARGS_WORDS + STACK_WORDS +
	       has_contexts(l);
}

/* Takes the fields of StackState, which are before those of PythonState: the context, if there is one, and the frame.
 */
static bool take_stack(const struct pybpf_layout *l, size_t frame, struct greenlet *g)
{
	const uint64_t *w = g->words + frame - has_contexts(l) - STACK_WORDS;

	g->stack_start = w[0];
	g->stack_copy = w[2];
	g->stack_saved = w[3];
	g->is_main = w[1] == UINT64_MAX;
	return w[0] && w[0] < w[1] && w[3] <= w[1] - w[0] && !w[2] == !w[3];
}

/* From 3.11 on: current_frame, datastack_chunk, datastack_top and datastack_limit, behind some others. */
static bool take_data_stack(const struct walk_memory *m, size_t frame, uint64_t current, struct greenlet *g)
{
	uint64_t header[2];

	for (size_t i = frame + 1; i + 3 < GREENLET_WORDS; i++) {
		const uint64_t *w = g->words + i;

		if (w[0] != current)
			continue;
		memcpy(g->data_stack, w + 1, sizeof(g->data_stack));
		return w[1] < w[2] && w[2] <= w[3] && get(m, w[1], header, sizeof(header)) && w[1] + header[1] == w[3];
	}
	return false;
}

/* Memory as it is while the greenlet runs. */
struct overlay {
	const struct walk_memory *below;
	const struct greenlet *greenlet;
	struct {
		uint64_t at, value;
	} fields[8];
	size_t nr_fields;
};

/* Copies what is in both ranges from the second one's bytes, at `copy`. */
static int put(const struct walk_memory *below, uint64_t addr, void *dst, size_t size, uint64_t at, uint64_t copy,
	       size_t copied)
{
	uint64_t begin = addr > at ? addr : at, end = addr + size < at + copied ? addr + size : at + copied;

	if (begin >= end)
		return 0;
	return below->read(below->source, copy + (begin - at), (char *)dst + (begin - addr), end - begin);
}

static int read_overlay(void *source, uint64_t addr, void *dst, size_t size)
{
	const struct overlay *o = source;
	const struct greenlet *g = o->greenlet;
	int err = o->below->read(o->below->source, addr, dst, size);

	err = err ?: put(o->below, addr, dst, size, g->stack_start, g->stack_copy, g->stack_saved);
	for (size_t i = 0; i < o->nr_fields && !err; i++) {
		uint64_t at = o->fields[i].at;

		if (at >= addr && at + sizeof(uint64_t) <= addr + size)
			memcpy((char *)dst + (at - addr), &o->fields[i].value, sizeof(uint64_t));
	}
	return err;
}

static bool has_cframe(const struct pybpf_layout *l)
{
	return l->tstate_cframe != PYBPF_NO_OFFSET;
}

/* Takes the frames: an object to 3.10; from 3.11 on that object's frame, and how much of the data stack is used. */
static bool take_frames(const struct walk_memory *m, const struct pybpf_layout *l, size_t at, struct greenlet *g)
{
	const struct overlay stack = {.below = m, .greenlet = g};
	uint64_t current;

	g->frame = g->words[at];
	g->cframe = has_cframe(l) ? g->words[at + 1] : 0;
	if (has_frame_objects(l))
		return true;
	g->exc_info = g->words[at - 1 - STACK_WORDS - ARGS_WORDS - cpython_facts(l)->threads->greenlet_words];
	if (!get(m, g->frame + cpython_header_size(l) + PYBPF_FRAME_FRAME, &g->frame, sizeof(g->frame)) ||
	    !take_data_stack(m, at, g->frame, g))
		return false;
	return !g->cframe || (!read_overlay((void *)&stack, g->cframe + l->cframe_frame, &current, sizeof(current)) &&
			      current == g->frame);
}

static bool read_class(const struct walk_memory *m, const struct pybpf_layout *l, struct greenlet *g)
{
	uint64_t type, at;
	size_t size;

	memset(g->class, 0, sizeof(g->class));
	if (!get(m, g->object + l->code_type, &type, sizeof(type)) ||
	    !get(m, type + cpython_header_size(l) + PYBPF_TYPE_NAME, &at, sizeof(at)))
		return false;
	/* The end of a page may be the end of what can be read. */
	size = PAGE - at % PAGE;
	if (!get(m, at, g->class, size < sizeof(g->class) - 1 ? size : sizeof(g->class) - 1))
		return false;
	if (size < sizeof(g->class) - 1 && strnlen(g->class, size) == size)
		get(m, at + size, g->class + size, sizeof(g->class) - 1 - size);
	return g->class[0] != '\0';
}

static bool read_impl(const struct walk_memory *m, const struct pybpf_layout *l, uint64_t object, struct greenlet *out)
{
	*out = (struct greenlet){.object = object};
	return object % 8 == 0 &&
	       get(m, object + cpython_header_size(l) + OBJECT_IMPL, &out->impl, sizeof(out->impl)) &&
	       get(m, out->impl, out->words, sizeof(out->words));
}

/* Returns the word of MainGreenlet._self, which is behind its PythonState; 0: it is no main greenlet's part. */
static size_t self_at(const struct pybpf_layout *l, const struct greenlet *g)
{
	size_t frame = top_frame_at(l, g), stack_stop = frame - has_contexts(l) - STACK_WORDS + 1;

	for (size_t i = frame + 1; i + 1 < GREENLET_WORDS && g->words[stack_stop] == UINT64_MAX; i++) {
		if (g->words[i] == g->object)
			return i;
	}
	return 0;
}

/*
 * Returns whether the thread lives whose main greenlet this is: _thread_state, behind _self, has main_greenlet as its
 * first field. When the thread ends it is taken away, and the C stack may be another thread's by now.
 */
static bool has_thread(const struct walk_memory *m, const struct greenlet *g, size_t self)
{
	uint64_t main;

	return get(m, g->words[self + 1], &main, sizeof(main)) && main == g->object;
}

/* Likewise of any greenlet: behind its PythonState it names the main one. */
static bool is_of_living_thread(const struct walk_memory *m, const struct pybpf_layout *l, const struct greenlet *g)
{
	size_t self = self_at(l, g);
	struct greenlet main;

	if (self)
		return has_thread(m, g, self);
	for (size_t i = top_frame_at(l, g) + 1; i < GREENLET_WORDS; i++) {
		if (!read_impl(m, l, g->words[i], &main))
			continue;
		self = self_at(l, &main);
		if (self)
			return has_thread(m, &main, self);
	}
	return false;
}

bool greenlet_read(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t impl,
		   struct greenlet *out)
{
	size_t frame;

	*out = (struct greenlet){.impl = impl};
	if (!get(memory, impl, out->words, sizeof(out->words)) || !find_object(memory, layout, out))
		return false;
	frame = top_frame_at(layout, out);
	return is_of_type(memory, layout, out->words[frame], "frame") && take_stack(layout, frame, out) &&
	       take_frames(memory, layout, frame, out) && read_class(memory, layout, out) &&
	       is_of_living_thread(memory, layout, out);
}

static void set_field(struct overlay *o, uint64_t at, uint64_t value)
{
	o->fields[o->nr_fields].at = at;
	o->fields[o->nr_fields++].value = value;
}

int greenlet_walk(const struct walk_memory *memory, const struct pybpf_layout *layout,
		  const struct pybpf_runtime *runtime, uint64_t thread_id, const struct walk_known_states *states,
		  const struct greenlet *greenlet, struct walk_stack *out)
{
	struct overlay o = {.below = memory, .greenlet = greenlet};
	const struct walk_memory as_it_runs = {.read = read_overlay, .source = &o};
	struct walk_known_states first = {.count = 1, .exact = true};
	struct pybpf_runtime place = *runtime;
	uint64_t tstate = states->tstates[0];

	first.tstates[0] = tstate;
	place.tstate_current = 0;
	place.asyncio = (struct pybpf_asyncio){.loaded = false};
	set_field(&o, tstate + layout->tstate_frame,
		  !has_frame_objects(layout) && has_cframe(layout) ? greenlet->cframe : greenlet->frame);
	if (has_cframe(layout) && has_frame_objects(layout))
		set_field(&o, tstate + layout->tstate_cframe, greenlet->cframe);
	for (size_t i = 0; layout->tstate_datastack_top && i < 3; i++)
		set_field(&o, tstate + layout->tstate_datastack_top - 8 + 8 * i, greenlet->data_stack[i]);
	if (layout->tstate_exc_info && greenlet->exc_info)
		set_field(&o, tstate + layout->tstate_exc_info, greenlet->exc_info);
	if (layout->tstate_executor)
		set_field(&o, tstate + layout->tstate_executor, 0);
	return walk_known_thread(&as_it_runs, layout, &place, thread_id, &first, 0, greenlet->stack_start, out);
}
