// SPDX-License-Identifier: Apache-2.0
#include "native/jitdump.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* "JiTD" as a number; written by a machine of the other order of bytes it is another one. */
#define MAGIC 0x4a695444

struct header {
	uint32_t magic, version, total_size, machine, pad, pid;
	uint64_t timestamp, flags;
};

enum {
	LOAD = 0,
	MOVE = 1
};

struct record {
	uint32_t id, total_size;
	uint64_t timestamp;
};

/* Behind it are the name, with its end, and the code. */
struct load {
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
};

struct move {
	uint32_t pid, tid;
	uint64_t vma, from, to, size, index;
};

struct reader {
	FILE *in;
	uint32_t nr_records; /* read so far */
	off_t first, at;     /* of the first record, and of the next one */
};

static bool take(struct reader *r, void *out, size_t size)
{
	return fread(out, size, 1, r->in) == 1;
}

/* Reads the head of the next record. Returns whether there is one. */
static bool next(struct reader *r, struct record *out)
{
	if (r->nr_records++ == NATIVE_JITDUMP_MAX || fseeko(r->in, r->at, SEEK_SET) || !take(r, out, sizeof(*out)) ||
	    out->total_size < sizeof(*out))
		return false;
	r->at += out->total_size;
	return true;
}

/* Reads what lies behind the head of a record with code. Returns whether it is all there. */
static bool take_load(struct reader *r, struct load *out, char name[NATIVE_SYMBOL_MAX])
{
	size_t length = 0;
	int c = 0;

	if (!take(r, out, sizeof(*out)))
		return false;
	while (length < NATIVE_SYMBOL_MAX - 1 && (c = getc(r->in)) > 0)
		name[length++] = (char)c;
	name[length] = '\0';
	return c != EOF;
}

static bool is_wanted(const struct native_named *named, size_t count, uint64_t start, uint64_t size)
{
	size_t i = native_count_below(named, count, start);

	return i < count && named[i].address - start < size;
}

/* Code has another address now. Its name is in the record that it was loaded by, which is before this one. */
static void follow_move(struct reader *r, const struct move *move, struct native_named *named, size_t count)
{
	struct reader before = {.in = r->in, .nr_records = r->nr_records, .first = r->first, .at = r->first};
	char name[NATIVE_SYMBOL_MAX];
	struct record record;
	struct load load;

	while (before.at < r->at && next(&before, &record)) {
		if (record.id != LOAD)
			continue;
		if (!take_load(&before, &load, name))
			break;
		if (load.index == move->index) {
			native_give_name(named, count, move->to, move->size, name);
			break;
		}
	}
	r->nr_records = before.nr_records;
}

static bool begin(struct reader *r, FILE *in)
{
	struct header header;

	*r = (struct reader){.in = in};
	if (!take(r, &header, sizeof(header)) || header.magic != MAGIC || header.total_size < sizeof(header))
		return false;
	r->first = r->at = header.total_size;
	return true;
}

void native_jitdump_find(FILE *in, struct native_named *named, size_t count)
{
	char name[NATIVE_SYMBOL_MAX];
	struct record record;
	struct reader r;
	union {
		struct load load;
		struct move move;
	} body;

	/* It may grow meanwhile. */
	for (bool goes_on = begin(&r, in); goes_on && next(&r, &record);) {
		if (record.id == LOAD) {
			goes_on = take_load(&r, &body.load, name);
			if (goes_on)
				native_give_name(named, count, body.load.address, body.load.size, name);
		} else if (record.id == MOVE) {
			goes_on = take(&r, &body.move, sizeof(body.move));
			if (goes_on && is_wanted(named, count, body.move.to, body.move.size))
				follow_move(&r, &body.move, named, count);
		}
	}
}
