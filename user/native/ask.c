// SPDX-License-Identifier: Apache-2.0
#include "native/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/procfs.h"
#include "native/debug_cache.h"
#include "native/fetched.h"
#include "native/functions.h"
#include "native/made.h"
#include "native/mapped.h"
#include "native/table.h"

/* Time that the loop of a run waits for an answer before it goes on with its other work, in seconds. */
#define SLICE_S 0.005

/* Most mappings of code in no file: JITs may make thousands, and libraries have to find room. */
#define MADE_MAX 2048

struct listing {
	pid_t pid;
	struct native_mappings *out;
	uint32_t nr_made;
};

/* Mappings of one file follow each other: it is opened once for all of them. */
static bool take_identity(struct native_mappings *out, struct native_mapped *item)
{
	const struct native_mapped *last = out->count ? &out->items[out->count - 1] : NULL;

	if (!last || last->file.inode != item->file.inode || last->file.dev_major != item->file.dev_major ||
	    last->file.dev_minor != item->file.dev_minor)
		return false;
	item->file = last->file;
	return true;
}

static int list_mapping(const struct procfs_map *map, void *arg)
{
	struct listing *l = arg;
	struct native_mappings *out = l->out;
	struct native_mapped *item = &out->items[out->count];
	size_t length = strlen(map->path);
	struct stat st;
	int fd;

	if (!map->executable || (!map->inode && strcmp(map->path, NATIVE_VDSO) != 0 && !native_is_made_map(map)))
		return 0;
	if (out->count == NATIVE_MAPPED_MAX || (native_is_made_map(map) && ++l->nr_made > MADE_MAX)) {
		out->left_out++;
		return 0;
	}
	if (native_is_made_map(map)) {
		native_describe_made(map, item);
		out->count++;
		return 0;
	}
	memset(item, 0, sizeof(*item));
	item->start = map->start;
	item->end = map->end;
	item->offset = map->offset;
	item->file =
		(struct native_identity){.inode = map->inode, .dev_major = map->dev_major, .dev_minor = map->dev_minor};
	if (map->inode && !take_identity(out, item)) {
		fd = procfs_open_map(l->pid, map);
		if (fd < 0 || fstat(fd, &st)) {
			out->left_out++;
			if (fd >= 0)
				close(fd);
			return 0;
		}
		close(fd);
		native_identify(&st, &item->file);
	}
	memcpy(item->path, map->path + (length < sizeof(item->path) ? 0 : length - sizeof(item->path) + 1),
	       length < sizeof(item->path) ? length : sizeof(item->path) - 1);
	out->count++;
	return 0;
}

int native_list_mappings(pid_t pid, struct native_mappings *out)
{
	/* If the first thread has ended, only others show the mappings. */
	struct listing listing = {.pid = procfs_task(pid, NULL) ?: pid, .out = out};

	memset(out, 0, offsetof(struct native_mappings, items));
	return procfs_each_map(listing.pid, list_mapping, &listing);
}

/* mm_struct.exec_vm: the kernel tells it in two parts (task_mem(), fs/proc/task_mmu.c). Returns 0 or negative errno. */
static int read_code_pages(pid_t pid, uint64_t *pages)
{
	char text[4096];
	ssize_t n = procfs_read_some(pid, "status", text, sizeof(text));
	uint64_t page_kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;

	if (n < 0)
		return (int)n;
	/* In KiB. */
	*pages = (procfs_status_number(text, "\nVmExe:") + procfs_status_number(text, "\nVmLib:")) / page_kib;
	return 0;
}

int native_serve_mappings(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	struct native_mappings *out = answer;
	uint64_t before = 0, after;
	pid_t pid;
	int err;

	(void)state;
	if (question_size != sizeof(pid_t))
		return -EINVAL;
	memcpy(&pid, question, sizeof(pid));
	pid = procfs_task(pid, NULL) ?: pid;
	err = read_code_pages(pid, &before);
	err = err ? err : native_list_mappings(pid, out);
	err = err ? err : read_code_pages(pid, &after);
	if (!err && after != before)
		err = -EAGAIN;
	out->code_pages = before;
	*size = offsetof(struct native_mappings, items) + out->count * sizeof(out->items[0]);
	return err;
}

int native_ask_mappings(pid_t pid, uint64_t life, struct native_mappings *out)
{
	size_t size = 0;
	int err = helper_ask(native_serve_mappings, (struct helper_subject){pid, life}, &pid, sizeof(pid), out,
			     sizeof(*out), &size, SLICE_S);

	if (err)
		return err;
	if (size < offsetof(struct native_mappings, items) || out->count > NATIVE_MAPPED_MAX ||
	    size != offsetof(struct native_mappings, items) + out->count * sizeof(out->items[0]))
		return -EPROTO;
	for (uint32_t i = 0; i < out->count; i++)
		out->items[i].path[sizeof(out->items[i].path) - 1] = '\0';
	return 0;
}

struct rows_question {
	struct native_source source;
	uint64_t first;
	uint64_t flow;
};

/* What a helper keeps from one answer to the next: a large table takes several. */
struct serving {
	bool is_there;
	struct native_file file;
	struct native_table table;
};

static int make_table(struct serving *s, const struct native_source *source, bool flow)
{
	struct elf_file *elf;
	int err = native_open_mapped(source->pid, &source->mapped, &elf);

	native_table_free(&s->table);
	s->is_there = false;
	if (err)
		return err;
	err = native_table_make(elf, flow, &s->table);
	if (!err || err == -ENOENT) {
		native_describe_file(elf, &s->table, &s->file);
		s->file.id = source->mapped.file;
		/* An empty table does not carry the flag. */
		s->file.has_flow |= flow;
		s->is_there = true;
	}
	elf_file_free(elf);
	return err == -ENOENT ? 0 : err;
}

int native_serve_rows(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	static struct serving serving;
	struct native_rows *out = answer;
	uint64_t begin = helper_own_cpu_ns();
	struct rows_question q;
	uint64_t left;
	int err = 0;

	(void)state;
	if (question_size != sizeof(q))
		return -EINVAL;
	memcpy(&q, question, sizeof(q));
	q.source.mapped.path[sizeof(q.source.mapped.path) - 1] = '\0';
	if (!serving.is_there || memcmp(&serving.file.id, &q.source.mapped.file, sizeof(serving.file.id)) != 0 ||
	    (q.flow && !serving.file.has_flow))
		err = make_table(&serving, &q.source, q.flow);
	if (err)
		return err;
	left = q.first < serving.table.count ? serving.table.count - q.first : 0;
	out->file = serving.file;
	out->count = (uint32_t)(left < NATIVE_ROWS_MAX ? left : NATIVE_ROWS_MAX);
	out->pad = 0;
	if (out->count)
		memcpy(out->rows, serving.table.rows + q.first, out->count * sizeof(out->rows[0]));
	out->cpu_ns = helper_own_cpu_ns() - begin;
	*size = offsetof(struct native_rows, rows) + out->count * sizeof(out->rows[0]);
	if (q.first + out->count >= serving.table.count) {
		native_table_free(&serving.table);
		serving.is_there = false;
	}
	return 0;
}

/* The rows are checked where they are used: the kernel side takes any. */
static bool is_sound(const struct native_rows *rows, size_t size)
{
	return size >= offsetof(struct native_rows, rows) && rows->count <= NATIVE_ROWS_MAX &&
	       size == offsetof(struct native_rows, rows) + rows->count * sizeof(rows->rows[0]) &&
	       rows->file.build_id_size <= NATIVE_BUILD_ID_MAX && rows->file.nr_segments <= NATIVE_SEGMENTS_MAX;
}

/*
 * A question about the same process that was given up may have its answer now. Returns -EINPROGRESS for another file's.
 */
static int is_about(const struct native_identity *file, const struct native_source *source)
{
	return memcmp(file, &source->mapped.file, sizeof(*file)) != 0 ? -EINPROGRESS : 0;
}

int native_ask_rows(const struct native_source *source, bool flow, uint64_t first, struct native_rows *out)
{
	struct rows_question q;
	size_t size = 0;
	int err;

	memset(&q, 0, sizeof(q));
	q.source = *source;
	q.first = first;
	q.flow = flow;
	err = helper_ask(native_serve_rows, (struct helper_subject){source->pid, source->life}, &q, sizeof(q), out,
			 sizeof(*out), &size, SLICE_S);
	if (!err && !is_sound(out, size))
		err = -EPROTO;
	if (!err && flow && !out->file.has_flow)
		return -EINPROGRESS;
	return err ? err : is_about(&out->file.id, source);
}

struct names_question {
	struct native_source source;
	uint64_t base;
	uint32_t count, pad;
	uint32_t pcs[NATIVE_NAMES_MAX];
};
_Static_assert(sizeof(struct names_question) <= HELPER_QUESTION_MAX, "a question holds all pcs");

static int find_names_in_fetched(const struct native_source *source, struct native_named *named, uint32_t count)
{
	struct elf_file *elf;
	int err = native_fetched_open(source->fetched, source->fetched_size, &elf);

	if (err)
		return err;
	err = native_find_names(elf, named, count);
	elf_file_free(elf);
	return err;
}

static int find_names(const struct names_question *q, struct native_named *named, uint32_t *is_stripped)
{
	struct elf_file *elf, *debug;
	int err;

	for (uint32_t i = 0; i < q->count; i++)
		named[i].address = q->base + q->pcs[i];
	if (native_is_made(&q->source.mapped)) {
		native_find_made_names(q->source.pid, named, q->count);
		return 0;
	}
	if (q->source.fetched_size)
		return find_names_in_fetched(&q->source, named, q->count);
	err = native_open_mapped(q->source.pid, &q->source.mapped, &elf);
	if (err)
		return err;
	err = native_find_names(elf, named, q->count);
	/* The file's own names are there without it. */
	if (!err && !native_is_vdso(&q->source.mapped) && !elf_file_has_symtab(elf)) {
		debug = native_debug_find(&q->source.mapped.file, elf, q->source.pid, q->source.mapped.path);
		if (debug)
			native_find_names(debug, named, q->count);
		*is_stripped = !debug;
		native_debug_trim();
	}
	elf_file_free(elf);
	return err;
}

/* Addresses in one function follow each other. */
static void write_names(const struct native_named *named, uint32_t count, struct native_name *out)
{
	for (uint32_t i = 0; i < count; i++) {
		if (i && !strcmp(named[i].symbol, named[i - 1].symbol))
			out[i] = out[i - 1];
		else
			out[i].is_demangled = native_demangle(named[i].symbol, out[i].text, sizeof(out[i].text));
		out[i].start = named[i].start;
	}
}

int native_serve_names(void *state, const void *question, size_t question_size, void *answer, size_t *size)
{
	struct native_names *out = answer;
	uint64_t begin = helper_own_cpu_ns();
	struct native_named *named;
	struct names_question q;
	int err;

	(void)state;
	memset(&q, 0, sizeof(q));
	if (question_size < offsetof(struct names_question, pcs) || question_size > sizeof(q))
		return -EINVAL;
	memcpy(&q, question, question_size);
	q.source.mapped.path[sizeof(q.source.mapped.path) - 1] = '\0';
	if (q.count > NATIVE_NAMES_MAX || q.source.fetched_size > NATIVE_BUILD_ID_MAX ||
	    question_size != offsetof(struct names_question, pcs) + q.count * sizeof(q.pcs[0]))
		return -EINVAL;
	named = calloc(q.count + 1u, sizeof(*named));
	if (!named)
		return -ENOMEM;
	out->is_stripped = false;
	err = find_names(&q, named, &out->is_stripped);
	out->file = q.source.mapped.file;
	out->count = q.count;
	write_names(named, q.count, out->names);
	out->cpu_ns = helper_own_cpu_ns() - begin;
	*size = offsetof(struct native_names, names) + q.count * sizeof(out->names[0]);
	free(named);
	return err;
}

int native_ask_names(const struct native_source *source, uint64_t base, const uint32_t *pcs, uint32_t count,
		     struct native_names *out)
{
	struct names_question q;
	size_t size = 0;
	int err;

	memset(&q, 0, sizeof(q));
	q.source = *source;
	q.base = base;
	q.count = count;
	memcpy(q.pcs, pcs, count * sizeof(*pcs));
	err = helper_ask(native_serve_names, (struct helper_subject){source->pid, source->life}, &q,
			 offsetof(struct names_question, pcs) + count * sizeof(*pcs), out, sizeof(*out), &size,
			 SLICE_S);
	if (err)
		return err;
	if (size >= offsetof(struct native_names, names) && is_about(&out->file, source))
		return -EINPROGRESS;
	if (out->count != count || size != offsetof(struct native_names, names) + count * sizeof(out->names[0]))
		return -EPROTO;
	for (uint32_t i = 0; i < count; i++)
		out->names[i].text[NATIVE_NAME_MAX - 1] = '\0';
	return 0;
}
