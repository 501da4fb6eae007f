// SPDX-License-Identifier: Apache-2.0
/* Takes what a value was read from in one call, and reads it from there. */
#include "symbols/objects/py_snapshot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cpython/facts.h"

/* A value of more parts, or bytes, is not held to be of one moment. */
#define MAX_PARTS (1u << 16)
#define MAX_BYTES (16u << 20)
/* Parts of an object are one if no more bytes are between them, and it is no longer than this. */
#define GAP     64
#define LONGEST 512
/* Parts around the last one that are looked at. */
#define NEAR 16
/* How often a value is read that changes: a thousand parts more than once, one of a few parts in a millisecond. */
#define LEAST_TIMES 6
#define MORE_TIMES  512
/* Parts that are kept though they were not needed. */
#define FEW 8

/* The end of an object's header, by the layout of 64-bit CPython 2.7 to 3.15 (Include/object.h). */
struct head {
	uint32_t bits, local; /* of free-threaded builds alone: ob_mutex and its neighbours, ob_ref_local */
	uint64_t refs;        /* ob_refcnt, or ob_ref_shared of free-threaded builds */
	uint64_t type;
};

void py_snapshot_forget(struct py_snapshot *s)
{
	s->nr_parts = 0;
	s->nr_taken = 0;
}

/* Finds an object's link: the lowest bits of a pointer may be a tag. */
static struct py_link *link_to(struct py_snapshot *s, uint64_t addr)
{
	return &s->links[((addr >> 3) * 0x9e3779b97f4a7c15u) >> 53];
}

/* Keeps the pointers among what was read. */
static void keep_links(struct py_snapshot *s, uint64_t addr, const void *bytes, size_t size)
{
	struct py_link link;

	for (size_t i = (0 - addr) % 8; i + 8 <= size; i += 8) {
		memcpy(&link.word, (const uint8_t *)bytes + i, sizeof(link.word));
		link.at = addr + i;
		if (link.word >> 12 && !(link.word >> 56))
			*link_to(s, link.word) = link;
	}
}

/* What is read, in this order, one behind the other. */
struct order {
	struct walk_part *parts;
	size_t count, size;
};

static size_t add(struct order *order, uint64_t addr, size_t size)
{
	order->parts[order->count++] = (struct walk_part){addr, size};
	order->size += size;
	return order->size - size;
}

/* Puts a part, and the pointer to it around it and in between. Returns the offset of the first of these. */
static size_t add_part(struct order *order, struct py_snapshot_part *part)
{
	size_t first = order->size, *offsets = part->offsets;

	if (!part->link.at) {
		offsets[0] = offsets[1] = offsets[2] = add(order, part->part.addr, part->part.size);
		return first;
	}
	add(order, part->link.at, sizeof(part->link.word));
	offsets[0] = add(order, part->part.addr, part->part.size);
	add(order, part->link.at, sizeof(part->link.word));
	offsets[1] = offsets[2] = add(order, part->part.addr, part->part.size);
	add(order, part->link.at, sizeof(part->link.word));
	return first;
}

/* Returns whether the pointer to a part was what it had been, each time. */
static bool is_led_to(const uint8_t *bytes, const struct py_snapshot_part *part)
{
	const size_t word = sizeof(part->link.word), step = word + part->part.size;
	bool same = true;

	for (size_t i = 0; part->link.at && i < 3; i++)
		same = same && !memcmp(bytes + i * step, &part->link.word, word);
	return same;
}

/* Returns whether a part may have been replaced while those before it stayed: the first one does not lead to it. */
static bool is_deep(const struct py_snapshot *s, const struct py_snapshot_part *part)
{
	const struct walk_part *root = &s->parts[0].part;

	return part->link.at && part->link.at - root->addr >= root->size;
}

static bool take(struct py_snapshot *s, const struct walk_memory *memory, struct order *order, size_t *firsts)
{
	bool is_nested = false;

	for (size_t i = 0; i < s->nr_parts; i++) {
		firsts[i] = add_part(order, &s->parts[i]);
		is_nested = is_nested || is_deep(s, &s->parts[i]);
	}
	for (size_t i = s->nr_parts; is_nested && i--;)
		s->parts[i].offsets[2] = add(order, s->parts[i].part.addr, s->parts[i].part.size);
	if (order->size > MAX_BYTES || array_reserve(&s->bytes, &s->bytes_room, order->size, 1) ||
	    walk_read_parts(memory, order->parts, order->count, s->bytes))
		return false;
	for (size_t i = 0; i < s->nr_parts; i++)
		s->parts[i].is_loose = !is_led_to(s->bytes + firsts[i], &s->parts[i]);
	return true;
}

/*
 * Forgets the parts that were not needed the last time. A few are kept: a loop gives its variables the same memory
 * again and again.
 */
static void drop_unused(struct py_snapshot *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_parts; i++) {
		if (s->nr_parts <= FEW || s->parts[i].is_used)
			s->parts[kept++] = s->parts[i];
	}
	for (size_t i = 0; i < kept; i++)
		s->parts[i].is_used = false;
	s->nr_parts = kept;
}

size_t py_snapshot_take(struct py_snapshot *s, const struct walk_memory *memory)
{
	struct order order = {.parts = calloc(6 * s->nr_parts + 1, sizeof(*order.parts))};
	size_t *firsts = calloc(s->nr_parts + 1, sizeof(*firsts));

	drop_unused(s);
	s->near = 0;
	s->has_missed = false;
	s->is_torn = false;
	s->last = (struct py_link){0};
	memset(s->links, 0, sizeof(s->links));
	/* A part may be of memory that is gone. */
	if (!order.parts || !firsts || s->nr_parts > MAX_PARTS || !take(s, memory, &order, firsts))
		s->nr_parts = 0;
	s->nr_taken = s->nr_parts;
	free(firsts);
	free(order.parts);
	return order.size;
}

/*
 * Finds the pointer by which memory was reached: the one to what begins there, or else the last one, since what is
 * farther within an object hangs on the same pointer.
 */
static void follow(struct py_snapshot *s, uint64_t begin)
{
	const struct py_link *link = link_to(s, begin);

	if (link->at && link->word >> 3 == begin >> 3)
		s->last = *link;
}

static bool is_by_last(const struct py_snapshot *s, const struct py_snapshot_part *part)
{
	return part->link.word == s->last.word && part->link.at == s->last.at;
}

/* The next snapshot is to have it. */
static void want(struct py_snapshot *s, uint64_t addr, size_t size)
{
	struct py_snapshot_part *last = s->nr_parts > s->nr_taken ? &s->parts[s->nr_parts - 1] : NULL;
	struct walk_part *part = last && is_by_last(s, last) ? &last->part : NULL;

	s->has_missed = true;
	if (part && addr >= part->addr && addr - part->addr <= part->size + GAP &&
	    addr - part->addr + size <= LONGEST) {
		size_t end = addr - part->addr + size;

		part->size = end > part->size ? end : part->size;
	} else if (!array_reserve(&s->parts, &s->room, s->nr_parts + 1, sizeof(*s->parts))) {
		s->parts[s->nr_parts++] =
			(struct py_snapshot_part){.part = {addr, size}, .link = s->last, .is_used = true};
	}
}

/* Returns the part of the snapshot that has `size` bytes, reached by the last pointer, or NULL. */
static const struct py_snapshot_part *find(struct py_snapshot *s, uint64_t addr, size_t size)
{
	size_t first = s->near < NEAR ? 0 : s->near - NEAR;

	for (size_t i = 0; i < 3 * NEAR; i++) {
		/* The last one first, then those behind it, and those before it. */
		size_t at = first + (s->near - first + i) % (3 * NEAR);
		struct py_snapshot_part *known = at < s->nr_taken ? &s->parts[at] : NULL;
		const struct walk_part *part = known ? &known->part : NULL;

		if (!part || addr < part->addr || addr - part->addr > part->size ||
		    part->size - (addr - part->addr) < size || !is_by_last(s, known))
			continue;
		s->near = at;
		s->is_torn = s->is_torn || known->is_loose;
		known->is_used = true;
		return known;
	}
	return NULL;
}

static const uint8_t *copy_of(const struct py_snapshot *s, const struct py_snapshot_part *part, uint64_t addr,
			      int number)
{
	return s->bytes + part->offsets[number] + (addr - part->part.addr);
}

int py_snapshot_read(struct py_snapshot *s, const struct walk_memory *memory, uint64_t addr, void *dst, size_t size)
{
	const struct py_snapshot_part *part;
	int err = 0;

	follow(s, addr);
	part = find(s, addr, size);
	if (part) {
		memcpy(dst, copy_of(s, part, addr, 0), size);
		for (int i = 1; i < PY_COPIES; i++)
			s->is_torn = s->is_torn || memcmp(dst, copy_of(s, part, addr, i), size) != 0;
	} else {
		err = memory->read(memory->source, addr, dst, size);
		if (!err)
			want(s, addr, size);
	}
	if (!err)
		keep_links(s, addr, dst, size);
	return err;
}

/* Returns whether somebody has a reference to the object. */
static bool lives(const struct pybpf_layout *layout, const struct head *head)
{
	/* Where the count of references was, free memory has the address of more of it, or 0. */
	uint64_t never = cpython_facts(layout)->objects->no_refs;

	/* The lowest 2 bits of ob_ref_shared are its state. */
	if (layout->free_threaded)
		return head->local || head->refs >> 2;
	return head->refs && !(head->refs & never);
}

bool py_snapshot_type(struct py_snapshot *s, const struct walk_memory *memory, const struct pybpf_layout *layout,
		      uint64_t object, uint64_t *type)
{
	struct head heads[PY_COPIES] = {0};
	size_t unused = layout->free_threaded ? 0 : offsetof(struct head, refs), size = sizeof(heads[0]) - unused;
	uint64_t addr = object + cpython_header_size(layout) - size;
	const struct py_snapshot_part *part;
	bool is_there = true;

	if (!object)
		return false;
	follow(s, object);
	part = find(s, addr, size);
	if (part) {
		for (int i = 0; i < PY_COPIES; i++)
			memcpy((uint8_t *)&heads[i] + unused, copy_of(s, part, addr, i), size);
	} else {
		if (memory->read(memory->source, addr, (uint8_t *)&heads[0] + unused, size))
			return false;
		want(s, addr, size);
		heads[1] = heads[2] = heads[0];
	}
	/* References come and go. */
	for (int i = 0; i < PY_COPIES; i++)
		is_there = is_there && heads[i].type == heads[0].type && lives(layout, &heads[i]);
	s->is_torn = s->is_torn || !is_there;
	*type = heads[0].type;
	return is_there;
}

unsigned py_snapshot_worth(const struct py_snapshot *s)
{
	return LEAST_TIMES + MORE_TIMES / (1 + (unsigned)s->nr_parts);
}

bool py_snapshot_holds(const struct py_snapshot *s)
{
	return !s->has_missed && !s->is_torn;
}

void py_snapshot_free(struct py_snapshot *s)
{
	free(s->parts);
	free(s->bytes);
}
