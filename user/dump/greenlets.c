// SPDX-License-Identifier: Apache-2.0
/* Has helpers find and read greenlets. */
#include "dump/greenlets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/procfs.h"
#include "symbols/walk/page_cache.h"

/* Longest wait for the search, through up to 1 GiB, and for those of a question. */
#define SEARCH_PATIENCE_S 4.0
#define PATIENCE_S        2.0
/* Readings, of which two that follow each other have to agree. */
#define ATTEMPTS 4

struct found {
	uint32_t count, beyond;
	struct dump_greenlet_found items[DUMP_GREENLETS_MAX];
};
_Static_assert(sizeof(struct found) <= HELPER_ANSWER_MAX, "an answer holds all greenlets");

struct question {
	struct dump_greenlets_of of;
	uint64_t thread_id;
	struct walk_known_states states;
	uint32_t count, pad;
	struct dump_greenlet_found items[DUMP_GREENLETS_BATCH];
};
_Static_assert(sizeof(struct question) <= HELPER_QUESTION_MAX, "a question holds a batch");

/* A greenlet in an answer, where its frames follow. */
struct packed {
	uint32_t index; /* in the question */
	uint32_t depth, flags;
	uint8_t is_main, changed, pad[2];
	char class[GREENLET_CLASS];
};

struct finding {
	const struct walk_memory *memory;
	const struct pybpf_layout *layout;
	struct found *out;
};

static int take_impl(void *arg, uint64_t impl)
{
	struct finding *f = arg;
	struct greenlet greenlet;

	if (!greenlet_read(f->memory, f->layout, impl, &greenlet))
		return 0;
	if (f->out->count == DUMP_GREENLETS_MAX) {
		f->out->beyond = 1;
		return 1;
	}
	f->out->items[f->out->count++] = (struct dump_greenlet_found){
		.impl = impl, .object = greenlet.object, .stack_start = greenlet.stack_start};
	return 0;
}

static int note_map(const struct procfs_map *map, void *arg)
{
	struct found *found = arg;

	for (uint32_t i = 0; i < found->count && map->writable; i++) {
		struct dump_greenlet_found *item = &found->items[i];

		if (item->stack_start < map->start || item->stack_start >= map->end)
			continue;
		item->map_begin = map->start;
		item->map_end = map->end;
		item->is_first = !strcmp(map->path, "[stack]");
	}
	return 0;
}

int dump_serve_greenlet_search(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct dump_greenlets_of *of = question;
	struct walk_memory memory, cached;
	struct page_cache *cache;
	struct finding finding = {.memory = &cached, .out = answer};
	bool beyond;
	int err;

	(void)state;
	if (question_size != sizeof(*of))
		return -EINVAL;
	finding.layout = &of->layout;
	walk_process_memory(&memory, &of->pid);
	cached = memory;
	cache = page_cache_new(&memory);
	if (cache)
		page_cache_memory(cache, &cached);
	memset(finding.out, 0, offsetof(struct found, items));
	err = greenlet_search(of->pid, &memory, take_impl, &finding, &beyond);
	page_cache_free(cache);
	if (err >= 0)
		err = procfs_each_map(of->pid, note_map, finding.out);
	if (err)
		return err;
	finding.out->beyond = finding.out->beyond || beyond;
	*size = offsetof(struct found, items) + finding.out->count * sizeof(finding.out->items[0]);
	return 0;
}

int dump_find_greenlets(const struct dump_greenlets_of *of, struct dump_greenlet_found **found, size_t *count,
			bool *beyond)
{
	struct found *answer = malloc(sizeof(*answer));
	size_t size = 0;
	int err = -ENOMEM;

	*found = NULL;
	*count = 0;
	if (answer)
		err = helper_call(dump_serve_greenlet_search, (struct helper_subject){.pid = of->pid}, of, sizeof(*of),
				  answer, sizeof(*answer), &size, SEARCH_PATIENCE_S);
	if (!err && (size < offsetof(struct found, items) || answer->count > DUMP_GREENLETS_MAX ||
		     size != offsetof(struct found, items) + answer->count * sizeof(answer->items[0])))
		err = -EPROTO;
	if (!err) {
		*found = malloc(answer->count * sizeof(**found) + 1);
		err = *found ? 0 : -ENOMEM;
	}
	if (!err) {
		memcpy(*found, answer->items, answer->count * sizeof(**found));
		*count = answer->count;
		*beyond = answer->beyond;
	}
	free(answer);
	return err;
}

static bool is_same_stack(const struct walk_stack *a, const struct walk_stack *b)
{
	return a->depth == b->depth && a->flags == b->flags &&
	       !memcmp(a->frames, b->frames, pybpf_kept_frames(a->depth) * sizeof(*a->frames));
}

/* A greenlet that is read. */
struct reading {
	struct greenlet greenlet;
	struct walk_stack stack; /* frames: NULL if it could not be read */
	bool is_done;
	bool is_gone; /* it runs, or has ended */
};

/* Reads the greenlet once. Returns 0, -ENOENT if it is gone, or another negative errno. */
static int read_once(const struct question *q, uint32_t i, const struct walk_memory *memory, struct reading *out)
{
	int err;

	*out = (struct reading){.is_done = false};
	if (!greenlet_read(memory, &q->of.layout, q->items[i].impl, &out->greenlet) ||
	    out->greenlet.object != q->items[i].object || out->greenlet.stack_start < q->items[i].map_begin ||
	    out->greenlet.stack_start >= q->items[i].map_end)
		return -ENOENT;
	err = greenlet_walk(memory, &q->of.layout, &q->of.runtime, q->thread_id, &q->states, &out->greenlet,
			    &out->stack);
	return err == -ENOENT ? -EAGAIN : err;
}

/* Reads it again, unless it is done: it is if it was the same the last time, or cannot change. */
static void read_again(const struct question *q, uint32_t i, const struct walk_memory *memory, struct reading *r)
{
	struct reading now;
	int err = r->is_done ? 0 : read_once(q, i, memory, &now);

	if (r->is_done)
		return;
	now.is_gone = err == -ENOENT;
	now.is_done = now.is_gone ||
		      (!err &&
		       (q->of.stopped || (r->stack.frames && is_same_stack(&now.stack, &r->stack) &&
					  !memcmp(now.greenlet.words, r->greenlet.words, sizeof(now.greenlet.words)))));
	free(r->stack.frames);
	*r = now;
}

/*
 * Reads all, each page once, and then all again: what is the same in two readings of all was so between them. Pages are
 * shared by many greenlets, and a read takes as long as a hundred steps of a walk.
 */
static void read_all(const struct question *q, struct reading *readings)
{
	struct walk_memory own, cached;
	struct page_cache *cache;

	walk_process_memory(&own, &q->of.pid);
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		cached = own;
		cache = page_cache_new(&own);
		if (cache)
			page_cache_memory(cache, &cached);
		for (uint32_t i = 0; i < q->count; i++)
			read_again(q, i, &cached, &readings[i]);
		page_cache_free(cache);
	}
}

/* Adds a greenlet to the answer; one that has no room there counts as changed. */
static size_t pack(const struct reading *r, uint32_t index, uint8_t *out, size_t left)
{
	size_t frames = r->is_done ? pybpf_kept_frames(r->stack.depth) * sizeof(*r->stack.frames) : 0;
	struct packed packed = {.index = index};
	size_t reserve = (DUMP_GREENLETS_BATCH - index) * sizeof(packed);

	if (r->is_gone)
		return 0;
	packed.changed = !r->is_done || frames + reserve > left;
	if (packed.changed) {
		frames = 0;
	} else {
		packed.depth = r->stack.depth;
		packed.flags = r->stack.flags;
		packed.is_main = r->greenlet.is_main;
		memcpy(packed.class, r->greenlet.class, sizeof(packed.class));
		memcpy(out + sizeof(packed), r->stack.frames, frames);
	}
	memcpy(out, &packed, sizeof(packed));
	return sizeof(packed) + frames;
}

int dump_serve_greenlets(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	const struct question *q = question;
	struct reading *readings;

	(void)state;
	if (question_size != sizeof(*q) || q->count > DUMP_GREENLETS_BATCH)
		return -EINVAL;
	readings = calloc(DUMP_GREENLETS_BATCH, sizeof(*readings));
	if (!readings)
		return -ENOMEM;
	read_all(q, readings);
	*size = 0;
	for (uint32_t i = 0; i < q->count; i++) {
		*size += pack(&readings[i], i, (uint8_t *)answer + *size, HELPER_ANSWER_MAX - *size);
		free(readings[i].stack.frames);
	}
	free(readings);
	return 0;
}

/* Takes the greenlets of an answer. Returns as dump_read_greenlets(). */
static int take_answer(const struct question *q, const uint8_t *bytes, size_t size, dump_take_greenlet *take, void *arg)
{
	int err = 0;

	for (size_t at = 0; at < size && !err;) {
		struct dump_greenlet_read read = {.changed = false};
		struct packed packed;
		size_t frames;

		if (size - at < sizeof(packed))
			return -EPROTO;
		memcpy(&packed, bytes + at, sizeof(packed));
		at += sizeof(packed);
		frames = pybpf_kept_frames(packed.depth) * sizeof(*read.stack.frames);
		if (packed.index >= q->count || frames > size - at || !memchr(packed.class, '\0', sizeof(packed.class)))
			return -EPROTO;
		read.changed = packed.changed;
		read.greenlet.object = q->items[packed.index].object;
		read.greenlet.is_main = packed.is_main;
		memcpy(read.greenlet.class, packed.class, sizeof(packed.class));
		read.stack.depth = packed.depth;
		read.stack.flags = packed.flags;
		read.stack.frames = malloc(frames + 1);
		if (!read.stack.frames)
			return -ENOMEM;
		memcpy(read.stack.frames, bytes + at, frames);
		at += frames;
		err = take(arg, &read);
		free(read.stack.frames);
	}
	return err;
}

int dump_read_greenlets(const struct dump_greenlets_of *of, const struct dump_greenlet_found *found, size_t count,
			uint64_t thread_id, const struct walk_known_states *states, dump_take_greenlet *take, void *arg)
{
	struct question *q = calloc(1, sizeof(*q));
	uint8_t *answer = malloc(HELPER_ANSWER_MAX);
	size_t size = 0;
	int err = -ENOMEM;

	if (q && answer) {
		q->of = *of;
		q->thread_id = thread_id;
		q->states = *states;
		q->count = (uint32_t)count;
		memcpy(q->items, found, count * sizeof(*found));
		err = helper_call(dump_serve_greenlets, (struct helper_subject){.pid = of->pid}, q, sizeof(*q), answer,
				  HELPER_ANSWER_MAX, &size, PATIENCE_S);
	}
	if (!err)
		err = take_answer(q, answer, size, take, arg);
	free(q);
	free(answer);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct dump_greenlet *x = a, *y = b;
	int by_class = strcmp(x->class, y->class);

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->is_main != y->is_main)
		return x->is_main ? -1 : 1;
	if (by_class)
		return by_class;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

void dump_greenlets_sort(struct dump_greenlets *greenlets)
{
	if (greenlets->count)
		qsort(greenlets->items, greenlets->count, sizeof(*greenlets->items), compare);
}

void dump_greenlets_free(struct dump_greenlets *greenlets)
{
	free(greenlets->items);
	*greenlets = (struct dump_greenlets){.beyond = false};
}
