// SPDX-License-Identifier: Apache-2.0
#include "native/ask_ahead.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf_file.h"
#include "base/procfs.h"
#include "base/remote.h"
#include "native/ahead.h"
#include "native/mapped.h"

#define SLICE_S 0.005

struct ahead_question {
	struct native_source source;
	uint64_t base;
	uint32_t count, pad;
	struct native_stop stops[NATIVE_STOPS_MAX];
};
_Static_assert(sizeof(struct ahead_question) <= HELPER_QUESTION_MAX, "a question holds all instructions");

static size_t read_file(void *arg, uint64_t address, uint8_t *out, size_t size)
{
	ssize_t n = elf_file_read(arg, address, out, size);

	return n < 0 ? 0 : (size_t)n;
}

static size_t read_memory(void *arg, uint64_t address, uint8_t *out, size_t size)
{
	const pid_t *pid = arg;

	return remote_read(*pid, address, out, size) ? 0 : size;
}

static void take(const struct ahead_rows *rows, uint64_t base, struct native_ahead_rows *out)
{
	for (size_t i = 0; i < rows->count && out->count < NATIVE_AHEAD_ROWS_MAX; i++) {
		const struct ahead_row *row = &rows->rows[i];

		if (row->start >= base && row->end - base < PYBPF_NATIVE_NO_PC)
			out->rows[out->count++] = (struct native_ahead_row){(uint32_t)(row->start - base),
									    (uint32_t)(row->end - base), row->rule};
	}
}

static int make_rows(const struct ahead_code *code, uint64_t base, const struct native_stop *stops, uint32_t count,
		     struct native_ahead_rows *out)
{
	struct ahead_rows rows = {.count = 0};
	int err = 0;

	for (uint32_t i = 0; i < count && !err; i++)
		err = ahead_add_rows(code, base + stops[i].pc, stops[i].is_exact, &rows);
	take(&rows, base, out);
	free(rows.rows);
	return err;
}

int native_make_ahead(const struct native_source *source, uint64_t base, const struct native_stop *stops,
		      uint32_t count, struct native_ahead_rows *out)
{
	pid_t pid = procfs_task(source->pid, NULL) ?: source->pid;
	struct elf_file *elf;
	int err;

	out->file = source->mapped.file;
	out->count = out->pad = 0;
	if (native_is_made(&source->mapped))
		return make_rows(&(struct ahead_code){read_memory, &pid}, base, stops, count, out);
	err = native_open_mapped(source->pid, &source->mapped, &elf);
	if (err)
		return err;
	err = make_rows(&(struct ahead_code){read_file, elf}, base, stops, count, out);
	elf_file_free(elf);
	return err;
}

int native_serve_ahead(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	struct native_ahead_rows *out = answer;
	uint64_t begin = helper_own_cpu_ns();
	struct ahead_question q;
	int err;

	(void)state;
	memset(&q, 0, sizeof(q));
	if (question_size < offsetof(struct ahead_question, stops) || question_size > sizeof(q))
		return -EINVAL;
	memcpy(&q, question, question_size);
	q.source.mapped.path[sizeof(q.source.mapped.path) - 1] = '\0';
	if (q.count > NATIVE_STOPS_MAX ||
	    question_size != offsetof(struct ahead_question, stops) + q.count * sizeof(q.stops[0]))
		return -EINVAL;
	err = native_make_ahead(&q.source, q.base, q.stops, q.count, out);
	out->cpu_ns = helper_own_cpu_ns() - begin;
	*size = offsetof(struct native_ahead_rows, rows) + out->count * sizeof(out->rows[0]);
	return err;
}

static bool is_sound(const struct native_ahead_rows *out, size_t size)
{
	if (size < offsetof(struct native_ahead_rows, rows) || out->count > NATIVE_AHEAD_ROWS_MAX ||
	    size != offsetof(struct native_ahead_rows, rows) + out->count * sizeof(out->rows[0]))
		return false;
	for (uint32_t i = 0; i < out->count; i++) {
		if (out->rows[i].start >= out->rows[i].end || out->rows[i].end >= PYBPF_NATIVE_NO_PC)
			return false;
	}
	return true;
}

int native_ask_ahead(const struct native_source *source, uint64_t base, const struct native_stop *stops, uint32_t count,
		     struct native_ahead_rows *out)
{
	struct ahead_question q;
	size_t size = 0;
	int err;

	memset(&q, 0, sizeof(q));
	q.source = *source;
	q.base = base;
	q.count = count;
	memcpy(q.stops, stops, count * sizeof(*stops));
	err = helper_ask(native_serve_ahead, (struct helper_subject){source->pid, source->life}, &q,
			 offsetof(struct ahead_question, stops) + count * sizeof(*stops), out, sizeof(*out), &size,
			 SLICE_S);
	if (err)
		return err;
	if (size >= sizeof(out->file) && memcmp(&out->file, &source->mapped.file, sizeof(out->file)) != 0)
		return -EINPROGRESS;
	return is_sound(out, size) ? 0 : -EPROTO;
}
