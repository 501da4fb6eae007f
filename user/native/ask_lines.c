// SPDX-License-Identifier: Apache-2.0
#include "native/ask_lines.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/elf_file.h"
#include "native/debug_cache.h"
#include "native/debug_file.h"
#include "native/fetched.h"
#include "native/mapped.h"

#define SLICE_S 0.005
/* Files whose information stays open. */
#define KEPT_MAX 4

struct lines_question {
	struct native_source source;
	uint64_t base;
	uint32_t count, pad;
	uint32_t pcs[NATIVE_PLACES_MAX];
};
_Static_assert(sizeof(struct lines_question) <= HELPER_QUESTION_MAX, "a question holds all places");

/* What a helper keeps from one question to the next: reading the information of CPython takes a tenth of a second. */
struct kept {
	struct native_identity of;
	struct native_lines *lines; /* NULL: the place is free */
	bool is_fetched;            /* its bytes are in the file in memory, which the next fetched file overwrites */
	uint64_t used;              /* number of the look-up that used it last */
};

static struct kept kept[KEPT_MAX];
static uint64_t look_ups;

static struct native_lines *find_kept(const struct native_identity *of)
{
	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (!kept[i].lines || memcmp(&kept[i].of, of, sizeof(*of)) != 0)
			continue;
		kept[i].used = ++look_ups;
		return kept[i].lines;
	}
	return NULL;
}

/* Returns the place that was used longest ago, or a free one. */
static struct kept *find_oldest(void)
{
	struct kept *oldest = &kept[0];

	for (size_t i = 1; i < KEPT_MAX; i++) {
		if (oldest->lines && (!kept[i].lines || kept[i].used < oldest->used))
			oldest = &kept[i];
	}
	return oldest;
}

static void close_kept(struct kept *one)
{
	native_lines_close(one->lines);
	one->lines = NULL;
}

static size_t kept_bytes(void)
{
	size_t bytes = 0;

	for (size_t i = 0; i < KEPT_MAX; i++)
		bytes += kept[i].lines ? native_lines_bytes(kept[i].lines) : 0;
	return bytes;
}

/* Opens the information of a file: where it is too large beside what is kept, without that. */
static int open_and_keep(const struct native_source *source, struct elf_file *elf)
{
	struct kept *place = find_oldest();
	struct elf_file *shared;
	int err;

	native_debug_open_shared(elf, source->pid, source->mapped.path, &shared);
	close_kept(place);
	err = native_lines_open(elf, shared, NATIVE_LINES_BYTES_MAX - kept_bytes(), &place->lines);
	if (err == -EFBIG && kept_bytes()) {
		for (size_t i = 0; i < KEPT_MAX; i++)
			close_kept(&kept[i]);
		err = native_lines_open(elf, shared, NATIVE_LINES_BYTES_MAX, &place->lines);
	}
	place->of = source->mapped.file;
	place->is_fetched = source->fetched_size != 0;
	place->used = ++look_ups;
	elf_file_free(shared);
	return err;
}

static bool has_information(struct elf_file *elf)
{
	struct elf_section section;

	return !elf_file_section(elf, ".debug_info", &section) && !elf_file_section(elf, ".debug_line", &section);
}

/* Closes what was read in the file in memory, of another file. */
static void close_fetched(void)
{
	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (kept[i].lines && kept[i].is_fetched)
			close_kept(&kept[i]);
	}
}

static int open_fetched(const struct native_source *source)
{
	struct elf_file *elf;
	int err;

	close_fetched();
	err = native_fetched_open(source->fetched, source->fetched_size, &elf);
	if (err)
		return err;
	err = has_information(elf) ? open_and_keep(source, elf) : -ENOENT;
	elf_file_free(elf);
	return err;
}

/* The information is in the file itself, or in the one for debuggers that has its symbols. */
static int open_lines(const struct native_source *source)
{
	const struct native_identity *of = &source->mapped.file;
	struct elf_file *elf, *debug;
	int err;

	if (source->fetched_size)
		return open_fetched(source);
	err = native_open_mapped(source->pid, &source->mapped, &elf);
	if (err)
		return err;
	debug = has_information(elf) ? elf : native_debug_find(of, elf, source->pid, source->mapped.path);
	err = debug && has_information(debug) ? open_and_keep(source, debug) : -ENOENT;
	native_debug_trim();
	elf_file_free(elf);
	return err;
}

static int find_lines(const struct lines_question *q, struct native_lines_found *out)
{
	struct native_lines *lines = native_is_vdso(&q->source.mapped) ? NULL : find_kept(&q->source.mapped.file);
	int err = native_is_vdso(&q->source.mapped) ? -ENOENT : lines ? 0 : open_lines(&q->source);

	if (err)
		return err;
	lines = lines ?: find_kept(&q->source.mapped.file);
	for (out->places = 0; out->places < q->count && out->count + NATIVE_INLINED_MAX <= NATIVE_LINES_MAX;
	     out->places++) {
		int count = native_lines_find(lines, q->base + q->pcs[out->places], &out->lines[out->count]);

		if (count < 0)
			return count;
		for (int i = 0; i < count; i++)
			out->lines[out->count++].place = out->places;
	}
	return 0;
}

int native_serve_lines(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	struct native_lines_found *out = answer;
	uint64_t begin = helper_own_cpu_ns();
	struct lines_question q;
	int err;

	(void)state;
	memset(&q, 0, sizeof(q));
	if (question_size < offsetof(struct lines_question, pcs) || question_size > sizeof(q))
		return -EINVAL;
	memcpy(&q, question, question_size);
	q.source.mapped.path[sizeof(q.source.mapped.path) - 1] = '\0';
	if (!q.count || q.count > NATIVE_PLACES_MAX || q.source.fetched_size > NATIVE_BUILD_ID_MAX ||
	    question_size != offsetof(struct lines_question, pcs) + q.count * sizeof(q.pcs[0]))
		return -EINVAL;
	out->file = q.source.mapped.file;
	out->places = out->count = 0;
	err = find_lines(&q, out);
	out->cpu_ns = helper_own_cpu_ns() - begin;
	*size = offsetof(struct native_lines_found, lines) + out->count * sizeof(out->lines[0]);
	return err;
}

static bool is_sound(struct native_lines_found *out, size_t size, uint32_t asked)
{
	if (size < offsetof(struct native_lines_found, lines) || out->count > NATIVE_LINES_MAX ||
	    size != offsetof(struct native_lines_found, lines) + out->count * sizeof(out->lines[0]) || !out->places ||
	    out->places > asked)
		return false;
	for (uint32_t i = 0; i < out->count; i++) {
		struct native_line *line = &out->lines[i];

		if (line->place >= out->places || (i && line->place < out->lines[i - 1].place) || line->line < 0)
			return false;
		line->function[sizeof(line->function) - 1] = '\0';
		line->file[sizeof(line->file) - 1] = '\0';
	}
	return true;
}

int native_ask_lines(const struct native_source *source, uint64_t base, const uint32_t *pcs, uint32_t count,
		     struct native_lines_found *out)
{
	struct lines_question q;
	size_t size = 0;
	int err;

	memset(&q, 0, sizeof(q));
	q.source = *source;
	q.base = base;
	q.count = count < NATIVE_PLACES_MAX ? count : NATIVE_PLACES_MAX;
	memcpy(q.pcs, pcs, q.count * sizeof(*pcs));
	err = helper_ask(native_serve_lines, (struct helper_subject){source->pid, source->life}, &q,
			 offsetof(struct lines_question, pcs) + q.count * sizeof(*pcs), out, sizeof(*out), &size,
			 SLICE_S);
	if (err)
		return err;
	if (size >= sizeof(out->file) && memcmp(&out->file, &source->mapped.file, sizeof(out->file)) != 0)
		return -EINPROGRESS;
	return is_sound(out, size, q.count) ? 0 : -EPROTO;
}
