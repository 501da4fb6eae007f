/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Hashes the whole contents of a code object's texts, of any length: its name, its path, its line table. */
#ifndef PYBPF_WALK_TEXT_H
#define PYBPF_WALK_TEXT_H

#include "walk_context.h"

/* Stands for the hash of a text that cannot be read. */
#define WALK_TEXT_UNREADABLE (~0ULL)
/* Bytes of the header of a string or a bytes object, from its length on; no known build has a larger one. */
#define WALK_TEXT_HEADER 64
/* Most bytes of a text. Memory that says more is not a text: another object may have it by now. */
#define WALK_TEXT_MAX (4u << 20)
/* A step that reads WALK_READ bytes takes as long as about this many other steps. */
#define WALK_READ_STEPS 3

/* Hashes the words from..to of the buffer. */
WALK_ONCE __u64 walk_hash_words(const struct walk *w, __u64 hash, __u32 from, __u32 to)
{
	if (!w)
		return 0;
	for (__u32 i = from; i < to && i < WALK_READ / 8; i++)
		hash = walk_mix(hash, w->read[i & (WALK_READ / 8 - 1)]);
	return hash;
}

/* Hashes size bytes of the buffer, from offset begin on. */
static __always_inline void walk_text_add(struct walk *w, struct walk_text *text, __u32 begin, __u32 size)
{
	__u32 end = begin + size;

	/* The first and the last word may hold bytes that are not of the text. */
	w->read[(begin / 8) & (WALK_READ / 8 - 1)] &= ~0ULL << (8 * (begin & 7));
	if (end & 7)
		w->read[(end / 8) & (WALK_READ / 8 - 1)] &= (1ULL << (8 * (end & 7))) - 1;
	text->hash = walk_hash_words(w, text->hash, begin / 8, (end + 7) / 8);
	text->addr += size;
	text->left -= size;
}

static __always_inline void walk_text_unreadable(struct walk *w, struct walk_text *text)
{
	w->steps += WALK_FAULT_STEPS;
	text->hash = WALK_TEXT_UNREADABLE;
	text->left = 0;
}

/*
 * Reads the head of an object at addr, a multiple of 8: its header, and the part of the text behind it that is on the
 * same page, because the next page may not be mapped. Returns the number of bytes, or 0 when they cannot be read.
 */
static __always_inline __u32 walk_text_head(struct walk *w, __u64 addr, __u32 size)
{
	__u64 room = WALK_PAGE_MASK + 1 - (addr & WALK_PAGE_MASK);

	if (room > size || room < WALK_TEXT_HEADER)
		room = size;
	return walk_read(w, w->read, (__u32)room, addr) ? 0 : (__u32)room;
}

/*
 * Begins the hash of a text of size bytes. Its first bytes are in the buffer: at offset begin of the head bytes that
 * were read from addr.
 */
static __always_inline void walk_text_begin(struct walk *w, struct walk_text *text, __u64 addr, __u32 head, __u32 begin,
					    __u64 size)
{
	__u64 first = head - begin;

	text->hash = walk_mix(text->hash, size);
	text->addr = addr + begin;
	text->left = size;
	walk_text_add(w, text, begin, (__u32)(first < size ? first : size));
}

/*
 * Begins the hash of a text that a pointer leads to: an instance of a subclass of str has it there
 * (PyUnicodeObject.data).
 */
static __always_inline void walk_text_elsewhere(struct walk_text *text, __u64 addr, __u64 size)
{
	text->hash = walk_mix(text->hash, size);
	text->addr = addr;
	text->left = size;
}

/* Begins the hash of a string: its characters and their kind, without its own hash and its interned state. */
static __always_inline void walk_text_string(struct walk *w, const struct pybpf_layout *l, enum walk_text_part part,
					     __u64 string)
{
	struct walk_text *text = &w->texts[part];
	__u64 addr = string + l->str_length, size;
	__u32 head = walk_text_head(w, addr, WALK_STRING_HEAD), begin = l->str_ascii_data - l->str_length, shape = 0;
	int elsewhere = 0;

	size = w->read[0];
	if (l->string_kind != PYBPF_STR_BYTES) {
		shape = (__u32)(w->read[((l->str_state - l->str_length) & (WALK_TEXT_HEADER - 1)) / 8] >>
				(l->str_kind_shift + 8 * ((l->str_state - l->str_length) & 4)));
		shape &= 7 | 8 | 16; /* kind:3, compact:1, ascii:1 */
		size *= shape & 7;
		elsewhere = !(shape & 8);
		if (elsewhere || !(shape & 16))
			begin = l->str_compact_data - l->str_length;
	}
	text->hash = shape;
	if (!head || begin > WALK_TEXT_HEADER || size > WALK_TEXT_MAX)
		walk_text_unreadable(w, text);
	else if (elsewhere)
		walk_text_elsewhere(text, w->read[(begin & (WALK_TEXT_HEADER - 1)) / 8], size);
	else
		walk_text_begin(w, text, addr, head, begin, size);
}

static __always_inline void walk_text_lines(struct walk *w, const struct pybpf_layout *l, __u64 lines)
{
	struct walk_text *text = &w->texts[WALK_TEXT_LINES];
	__u64 addr = lines + l->bytes_size;
	__u32 head = walk_text_head(w, addr, WALK_LINES_HEAD), begin = l->bytes_data - l->bytes_size;

	text->hash = 0;
	if (!head || begin > WALK_TEXT_HEADER || w->read[0] > WALK_TEXT_MAX)
		walk_text_unreadable(w, text);
	else
		walk_text_begin(w, text, addr, head, begin, w->read[0]);
}

static __always_inline void walk_texts_clear(struct walk *w)
{
	for (int i = 0; i < WALK_TEXTS; i++) {
		w->texts[i].hash = 0;
		w->texts[i].left = 0;
	}
}

/* Returns whether all of each text is hashed. */
static __always_inline int walk_texts_done(const struct walk *w)
{
	return !(w->texts[WALK_TEXT_NAME].left | w->texts[WALK_TEXT_PATH].left | w->texts[WALK_TEXT_LINES].left);
}

/* Hashes the next bytes of the first text that is not done. Returns 1 when all texts are done. */
static __always_inline int walk_texts_more(struct walk *w)
{
	struct walk_text *text = &w->texts[WALK_TEXT_LINES];
	__u32 size = WALK_READ;

	if (w->texts[WALK_TEXT_NAME].left)
		text = &w->texts[WALK_TEXT_NAME];
	else if (w->texts[WALK_TEXT_PATH].left)
		text = &w->texts[WALK_TEXT_PATH];
	if (text->left < size)
		size = (__u32)text->left;
	w->steps += WALK_READ_STEPS;
	if (walk_read(w, w->read, size, text->addr))
		walk_text_unreadable(w, text);
	else
		walk_text_add(w, text, 0, size);
	return walk_texts_done(w);
}

#endif
