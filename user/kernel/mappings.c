// SPDX-License-Identifier: Apache-2.0
/* Reads perf's records of executable mappings (PERF_RECORD_MMAP2) from the buffer of each CPU. */
#include "kernel/mappings.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>

/* Pages of each CPU's buffer, a power of two: room for 500 records; the start of a program makes some 5. */
#define BUFFER_PAGES 16
#define WAKE_BYTES   (BUFFER_PAGES * 4096 / 2)

struct kernel_mappings {
	struct perf_buffer *buffer;
	void (*visit)(const struct kernel_mapping *mapping, void *arg);
	void *arg;
	uint64_t lost;
};

/* PERF_RECORD_MMAP2 without a build-id (include/uapi/linux/perf_event.h); the file's name follows. */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	uint32_t prot, flags;
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
};

/* Returns the FNV-1a hash of the file name that follows the record. */
static uint64_t hash_path(const struct mmap2_record *record)
{
	const char *path = (const char *)(record + 1), *end = (const char *)record + record->header.size;
	uint64_t hash = 0xcbf29ce484222325;

	for (; path < end && *path; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3;
	return hash;
}

static enum bpf_perf_event_ret on_record(void *ctx, int cpu, struct perf_event_header *header)
{
	const struct mmap2_record *record = (const void *)header;
	struct kernel_mappings *m = ctx;

	(void)cpu;
	if (header->type == PERF_RECORD_LOST && header->size >= sizeof(struct lost_record)) {
		m->lost += ((const struct lost_record *)header)->lost;
	} else if (header->type == PERF_RECORD_MMAP2 && header->size >= sizeof(*record) && record->ino) {
		struct kernel_mapping mapping = {
			.pid = (pid_t)record->pid,
			.start = record->addr,
			.size = record->len,
			.offset = record->pgoff,
			.file = {record->maj, record->min, record->ino, record->ino_generation, hash_path(record)},
		};

		m->visit(&mapping, m->arg);
	}
	return LIBBPF_PERF_EVENT_CONT;
}

struct kernel_mappings *kernel_mappings_new(int events_map,
					    void (*visit)(const struct kernel_mapping *mapping, void *arg), void *arg)
{
	struct kernel_mappings *m = calloc(1, sizeof(*m));
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1, /* executable mappings; mmap_data would be the others */
		.mmap2 = 1,
		.watermark = 1,
		.wakeup_watermark = WAKE_BYTES,
	};

	if (!m)
		return NULL;
	m->visit = visit;
	m->arg = arg;
	m->buffer = perf_buffer__new_raw(events_map, BUFFER_PAGES, &attr, on_record, m, NULL);
	if (!m->buffer) {
		free(m);
		return NULL;
	}
	return m;
}

void kernel_mappings_free(struct kernel_mappings *m)
{
	if (!m)
		return;
	perf_buffer__free(m->buffer);
	free(m);
}

int kernel_mappings_fd(const struct kernel_mappings *m)
{
	return perf_buffer__epoll_fd(m->buffer);
}

int kernel_mappings_consume(struct kernel_mappings *m)
{
	int n = perf_buffer__consume(m->buffer);

	return n < 0 && n != -EINTR ? n : 0;
}

uint64_t kernel_mappings_lost(const struct kernel_mappings *m)
{
	return m->lost;
}
