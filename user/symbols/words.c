// SPDX-License-Identifier: Apache-2.0
/* Reads the tuples of names and constants of a code object. */
#include "symbols/words.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "symbols/objects/string_read.h"

/* Most items of a tuple that are read; the names of the longest module of the standard library are some 700. */
#define ITEMS_MAX 1024
/* Longest word: longer strings are mostly put together from several of the source. */
#define WORD_MAX 40

struct reader {
	const struct walk_memory *memory;
	const struct pybpf_layout *layout;
	uint64_t code;
	uint64_t text_type; /* of co_name, which is a string */
	FILE *out;
};

static bool read_word(const struct reader *r, uint64_t addr, uint64_t *out)
{
	return !r->memory->read(r->memory->source, addr, out, sizeof(*out));
}

/* Returns whether it is one word of ASCII; what else a source may write otherwise. */
static bool is_word(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)text[i]) && text[i] != '_')
			return false;
	}
	return len && len <= WORD_MAX && !isdigit((unsigned char)text[0]);
}

static void take(const struct reader *r, char kind, char *text)
{
	/* A variable of the compiler's own. */
	if (text[0] == '.')
		return;
	/* "import a.b" has one name. */
	for (char *next = text, *part; kind == PYSYM_WORD_NAME && (part = strsep(&next, ".")) && next;) {
		if (is_word(part))
			fprintf(r->out, "%c%s%c", kind, part, 0);
		text = next;
	}
	if (is_word(text))
		fprintf(r->out, "%c%s%c", kind, text, 0);
}

/* Takes the strings of the tuple that the field points to. */
static void read_tuple(const struct reader *r, uint32_t field, char kind)
{
	/* ob_size follows an object's header. */
	uint32_t size_at = cpython_header_size(r->layout),
		 items_at = size_at + cpython_facts(r->layout)->objects->tuple_items;
	uint64_t tuple, count, items[ITEMS_MAX], type;

	if (!read_word(r, r->code + field, &tuple) || !read_word(r, tuple + size_at, &count))
		return;
	count = count < ITEMS_MAX ? count : ITEMS_MAX;
	if (r->memory->read(r->memory->source, tuple + items_at, items, count * sizeof(items[0])))
		return;
	for (uint64_t i = 0; i < count; i++) {
		char *text;

		/* Names are strings. */
		if (kind == PYSYM_WORD_STRING &&
		    (!read_word(r, items[i] + r->layout->code_type, &type) || type != r->text_type))
			continue;
		text = pysym_read_string(r->memory, r->layout, items[i]);
		if (text)
			take(r, kind, text);
		free(text);
	}
}

static void read_words(const struct reader *r)
{
	const struct pybpf_layout *l = r->layout;
	const struct cpython_code *code = cpython_facts(l)->code;
	uint32_t first = cpython_header_size(l);

	read_tuple(r, first + code->names, PYSYM_WORD_NAME);
	read_tuple(r, first + code->consts, PYSYM_WORD_STRING);
	read_tuple(r, code->varnames ? first + code->varnames : cpython_localsplusnames(l), PYSYM_WORD_NAME);
}

char *pysym_words_read(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t code, uint32_t sig,
		       size_t *size)
{
	struct reader r = {.memory = memory, .layout = layout, .code = code};
	struct walk_code before, after;
	char *words = NULL;
	bool whole;

	if (walk_read_code(memory, layout, code, sig & PYBPF_SIG_TEXTS, &before) || before.sig != sig ||
	    !read_word(&r, before.name + layout->code_type, &r.text_type))
		return NULL;
	r.out = open_memstream(&words, size);
	if (!r.out)
		return NULL;
	read_words(&r);
	whole = !fclose(r.out);
	if (whole && !walk_read_code(memory, layout, code, sig & PYBPF_SIG_TEXTS, &after) && after.sig == sig)
		return words;
	free(words);
	return NULL;
}
