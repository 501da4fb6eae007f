// SPDX-License-Identifier: Apache-2.0
/*
 * Saves the memory that the walk of one thread reads, for tests without that process (tests/unit/saved_memory.h):
 *
 *	build/save-memory PID FILE <what the process says of itself
 *
 * On stdin: a line with the thread's pthread_self() in hexadecimal, then its frames, leaf first, as
 * "NAME TAB FILE TAB LINE". The process is not stopped: it is read until two saves in a row are the same.
 * Exits with 1 when nothing could be saved, and with 3 when the walk found something else than the process says (the
 * file is written then, too). tools/gen/save-memories runs it for every Python of the machine.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "discovery/discovery.h"
#include "base/remote.h"
#include "saved_memory.h"

/* A thread that spins on one line has a few positions: enough attempts to meet one of them twice in a row. */
#define ATTEMPTS    1000
#define PAUSE_US    1000
#define SAID_MAX    (64 * 1024)
#define READS_MAX   (1u << 20)
#define BYTES_MAX   (64u << 20)
#define OFFSET_STEP 8

struct recording {
	pid_t pid;
	struct saved_range *reads;
	uint8_t **bytes;
	size_t count, total;
};

static void recording_clear(struct recording *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->bytes[i]);
	free((void *)r->bytes);
	free(r->reads);
	*r = (struct recording){.pid = r->pid};
}

static int record_read(void *source, uint64_t addr, void *dst, size_t size)
{
	struct recording *r = source;
	struct saved_range *reads;
	uint8_t **bytes, *copy;
	int err = remote_read(r->pid, addr, dst, size);

	if (err || !size)
		return err;
	if (r->count >= READS_MAX || r->total + size > BYTES_MAX)
		return -E2BIG;
	reads = realloc(r->reads, (r->count + 1) * sizeof(*reads));
	if (reads)
		r->reads = reads;
	bytes = reads ? (uint8_t **)realloc((void *)r->bytes, (r->count + 1) * sizeof(*bytes)) : NULL;
	if (bytes)
		r->bytes = bytes;
	copy = bytes ? malloc(size) : NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, dst, size);
	r->reads[r->count] = (struct saved_range){.addr = addr, .size = size};
	r->bytes[r->count++] = copy;
	r->total += size;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct saved_range *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

/* Which ranges were read, adjacent and overlapping ones made one; returns how many. */
static size_t merge(const struct recording *r, struct saved_range *out)
{
	size_t n = 0;

	memcpy(out, r->reads, r->count * sizeof(*out));
	qsort(out, r->count, sizeof(*out), by_address);
	for (size_t i = 0; i < r->count; i++) {
		uint64_t end = out[i].addr + out[i].size;

		if (n && out[i].addr <= out[n - 1].addr + out[n - 1].size) {
			if (end > out[n - 1].addr + out[n - 1].size)
				out[n - 1].size = end - out[n - 1].addr;
		} else {
			out[n++] = out[i];
		}
	}
	return n;
}

static int write_ranges(const struct recording *r, struct saved_header *header, FILE *out)
{
	struct saved_range *ranges = calloc(r->count + 1, sizeof(*ranges));
	uint8_t *bytes = calloc(1, r->total + 1);
	size_t n;

	if (!ranges || !bytes) {
		free(ranges);
		free(bytes);
		return -ENOMEM;
	}
	n = merge(r, ranges);
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < r->count; j++) {
			uint64_t inside = r->reads[j].addr - ranges[i].addr;

			if (r->reads[j].addr >= ranges[i].addr && inside < ranges[i].size)
				memcpy(bytes + inside, r->bytes[j], r->reads[j].size);
		}
		fwrite(&ranges[i], sizeof(ranges[i]), 1, out);
		fwrite(bytes, ranges[i].size, 1, out);
	}
	header->ranges = (uint32_t)n;
	free(ranges);
	free(bytes);
	return 0;
}

/* The shortest beginning of _PyRuntime that gives the process's layout. */
static uint32_t debug_offsets(const struct discovery_python *python, uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX])
{
	struct layout_build build;
	struct error error;

	if (remote_read(python->pid, python->runtime_addr, bytes, LAYOUT_DEBUG_OFFSETS_MAX) ||
	    !layout_has_debug_offsets(bytes, LAYOUT_DEBUG_OFFSETS_MAX))
		return 0;
	for (uint32_t size = OFFSET_STEP; size <= LAYOUT_DEBUG_OFFSETS_MAX; size += OFFSET_STEP) {
		if (layout_from_debug_offsets(bytes, size, &build, &error))
			continue;
		build.layout.debug_build = python->debug_build;
		if (!memcmp(&build.layout, &python->build.layout, sizeof(build.layout)))
			return size;
	}
	return 0;
}

/* Makes one save in memory, which the caller frees. Returns 0 or negative errno. */
static int save(const struct discovery_python *python, uint64_t thread_id, const char *said, char **file, size_t *size,
		char **seen)
{
	struct saved_header header = {
		.magic = SAVED_MAGIC,
		.version = SAVED_VERSION,
		.major = (uint16_t)python->version_major,
		.minor = (uint16_t)python->version_minor,
		.debug_build = python->debug_build,
		.said_size = (uint32_t)strlen(said),
		.interp_head = python->interp_head_addr,
		.tstate_current = python->tstate_current_addr,
		.code_type = python->code_type_addr,
		.thread_id = thread_id,
	};
	struct pybpf_runtime proc = {.interp_head = header.interp_head,
				     .tstate_current = header.tstate_current,
				     .code_type = header.code_type};
	uint8_t offsets[LAYOUT_DEBUG_OFFSETS_MAX];
	struct recording recording = {.pid = python->pid};
	struct walk_memory memory = {.read = record_read, .source = &recording};
	size_t seen_size;
	FILE *out = open_memstream(seen, &seen_size);
	int err = -ENOMEM;

	if (!out)
		return err;
	err = saved_print(&memory, &python->build.layout, &proc, thread_id, out);
	fclose(out);
	out = err ? NULL : open_memstream(file, size);
	if (!err && !out)
		err = -ENOMEM;
	if (!err) {
		header.offsets_size = debug_offsets(python, offsets);
		fwrite(&header, sizeof(header), 1, out);
		fwrite(offsets, header.offsets_size, 1, out);
		fwrite(said, header.said_size, 1, out);
		err = write_ranges(&recording, &header, out);
		fclose(out);
		memcpy(*file, &header, sizeof(header));
	}
	recording_clear(&recording);
	return err;
}

/* Does the file give what the process gave? */
static bool replays(const struct discovery_python *python, const char *file, size_t size, const char *seen)
{
	struct saved_memory saved;
	struct walk_memory memory = {.read = saved_read, .source = &saved};
	struct error error;
	char *again = NULL;
	size_t again_size;
	bool same = false;
	FILE *out;

	if (saved_parse((const uint8_t *)file, size, &saved, &error)) {
		fprintf(stderr, "save-memory: what was saved can't be read: %s\n", error.text);
		return false;
	}
	out = open_memstream(&again, &again_size);
	if (out) {
		int err = saved_print(&memory, &saved.layout, &saved.proc, saved.header.thread_id, out);

		fclose(out);
		same = !err && !strcmp(again, seen) &&
		       !memcmp(&saved.layout, &python->build.layout, sizeof(saved.layout));
	}
	if (!same)
		fprintf(stderr, "save-memory: what was saved gives\n%sand the process gave\n%s", again ? again : "",
			seen);
	free(again);
	saved_free(&saved);
	return same;
}

static int save_twice(const struct discovery_python *python, uint64_t thread_id, const char *said, const char *path)
{
	char *before = NULL, *file = NULL, *seen = NULL;
	size_t before_size = 0, size = 0;
	bool same = false;
	int err = 0;
	FILE *out;

	for (int i = 0; i < ATTEMPTS && !same && !err; i++) {
		free(before);
		free(seen);
		before = file;
		before_size = size;
		file = seen = NULL;
		err = save(python, thread_id, said, &file, &size, &seen);
		same = !err && before && size == before_size && !memcmp(file, before, size);
		if (!same)
			usleep(PAUSE_US);
	}
	free(before);
	if (err || !same) {
		fprintf(stderr, "save-memory: process %d: %s\n", python->pid,
			err == -ENOENT ? "no interpreter has that thread"
			: err          ? strerror(-err)
				       : "no two saves in a row were the same; does its stack change?");
		free(file);
		free(seen);
		return 1;
	}
	if (!replays(python, file, size, seen)) {
		free(file);
		free(seen);
		return 1;
	}
	out = fopen(path, "wbe");
	if (!out || fwrite(file, size, 1, out) != 1 || fclose(out)) {
		fprintf(stderr, "save-memory: %s: %s\n", path, strerror(errno));
		err = 1;
	} else if (strcmp(seen, said) != 0) {
		fprintf(stderr, "save-memory: process %d says\n%sand the walk found\n%s", python->pid, said, seen);
		err = 3;
	}
	free(file);
	free(seen);
	return err;
}

int main(int argc, char **argv)
{
	static char said[SAID_MAX];
	static struct discovery_python python;
	struct discovery *discovery = discovery_new();
	uint64_t thread_id;
	struct error error;
	char *end;
	size_t n, count;
	long pid;

	pid = argc == 3 ? strtol(argv[1], &end, 10) : 0;
	if (pid <= 0 || *end) {
		fprintf(stderr, "usage: save-memory PID FILE <what the process says of itself\n");
		return 2;
	}
	n = fread(said, 1, sizeof(said) - 1, stdin);
	said[n] = '\0';
	thread_id = strtoull(said, &end, 16);
	if (end == said || *end != '\n') {
		fprintf(stderr, "save-memory: the first line on stdin is no thread's pthread_self()\n");
		return 2;
	}
	if (!discovery)
		return 1;
	if (discovery_runtimes(discovery, (pid_t)pid, &python, 1, &count, &error) ||
	    discovery_validate(&python, &error)) {
		fprintf(stderr, "save-memory: process %ld: %s\n", pid, error.text);
		return 1;
	}
	discovery_free(discovery);
	return save_twice(&python, thread_id, end + 1, argv[2]);
}
