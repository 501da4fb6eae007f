// SPDX-License-Identifier: Apache-2.0
/* Reads perf's records of executable mappings (PERF_RECORD_MMAP2) from the buffer of each CPU. */
#include "kernel/mappings.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/limits.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/siphash.h"

/*
 * Pages of each CPU's buffer, a power of two: room for 4,000 records. The start of a program makes some 5, and programs
 * with a JIT may map as much without any start: 20,000 records a second leave 0.4 s until they are read. It is as much
 * as the kernel lets a user without CAP_IPC_LOCK have (kernel.perf_event_mlock_kb, 516 for each CPU).
 */
#define BUFFER_PAGES     128
#define BUFFER_PAGES_MIN 16
/* Most pages of all buffers, on machines with more than 64 CPUs. */
#define ALL_PAGES 8192
/* The reader is woken by so many bytes. */
#define WAKE_BYTES (32 * 1024)

/* A buffer with less free room than this may have had no room for a record. */
#define ROOM_FOR_ANY (2 * PATH_MAX)

struct kernel_mappings {
	struct perf_buffer *buffer;
	void (*visit)(const struct kernel_mapping *mapping, void *arg);
	void *arg;
	/* The mapping that was read last and has not been handed out: see take(). */
	struct kernel_mapping last;
	bool has_last;
	size_t consumed;       /* bytes of one buffer, in one go */
	bool lost_is_reported; /* in this go */
	/* What the kernel says of each buffer when it is asked, which it can from Linux 6.0 on; NULL before. */
	uint64_t *lost_of_buffer;
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

/* Returns a hash of the file name that follows the record: nobody can choose a name that passes for another one. */
static uint64_t hash_path(const struct mmap2_record *record)
{
	const char *path = (const char *)(record + 1);

	return siphash(siphash_process_key(), path, strnlen(path, record->header.size - sizeof(*record)));
}

static void hand_out_last(struct kernel_mappings *m)
{
	if (m->has_last)
		m->visit(&m->last, m->arg);
	m->has_last = false;
}

static bool is_same(const struct kernel_mapping *a, const struct kernel_mapping *b)
{
	return a->pid == b->pid && a->start == b->start && a->size == b->size && a->offset == b->offset &&
	       !memcmp(&a->file, &b->file, sizeof(a->file));
}

/*
 * Where a program maps one place over and over, only the last mapping can still be seen: looking at each, which takes
 * some 50 us, would leave others unread.
 */
static void take(struct kernel_mappings *m, const struct kernel_mapping *mapping)
{
	if (m->has_last && !is_same(&m->last, mapping))
		hand_out_last(m);
	m->last = *mapping;
	m->has_last = true;
}

static enum bpf_perf_event_ret on_record(void *ctx, int cpu, struct perf_event_header *header)
{
	const struct mmap2_record *record = (const void *)header;
	struct kernel_mappings *m = ctx;

	(void)cpu;
	m->consumed += header->size;
	if (header->type == PERF_RECORD_LOST && header->size >= sizeof(struct lost_record)) {
		m->lost_is_reported = true;
		if (!m->lost_of_buffer)
			m->lost += ((const struct lost_record *)header)->lost;
	} else if (header->type == PERF_RECORD_MMAP2 && header->size >= sizeof(*record) && record->ino) {
		const struct kernel_mapping mapping = {
			.pid = (pid_t)record->pid,
			.start = record->addr,
			.size = record->len,
			.offset = record->pgoff,
			.file = {record->maj, record->min, record->ino, record->ino_generation, hash_path(record)},
		};

		take(m, &mapping);
	}
	return LIBBPF_PERF_EVENT_CONT;
}

/* Returns NULL with errno set: EINVAL for an attribute that the kernel does not know. */
static struct perf_buffer *open_buffer(int events_map, struct perf_event_attr *attr, struct kernel_mappings *m)
{
	int cpus = libbpf_num_possible_cpus();
	size_t pages = BUFFER_PAGES;
	struct perf_buffer *buffer;

	while (cpus > 0 && pages > BUFFER_PAGES_MIN && pages * (size_t)cpus > ALL_PAGES)
		pages /= 2;
	/* The user's other perf events may have used up the limit. */
	while (!(buffer = perf_buffer__new_raw(events_map, pages, attr, on_record, m, NULL)) && errno == EPERM &&
	       pages > BUFFER_PAGES_MIN)
		pages /= 2;
	return buffer;
}

struct kernel_mappings *kernel_mappings_new(int events_map, bool at_once,
					    void (*visit)(const struct kernel_mapping *mapping, void *arg), void *arg)
{
	struct kernel_mappings *m = calloc(1, sizeof(*m));
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.read_format = PERF_FORMAT_LOST,
		.mmap = 1, /* executable mappings; mmap_data would be the others */
		.mmap2 = 1,
		.watermark = 1,
		.wakeup_watermark = at_once ? 1 : WAKE_BYTES,
	};

	if (!m)
		return NULL;
	m->visit = visit;
	m->arg = arg;
	m->buffer = open_buffer(events_map, &attr, m);
	if (!m->buffer && errno == EINVAL) {
		attr.read_format = 0;
		m->buffer = open_buffer(events_map, &attr, m);
	} else if (m->buffer) {
		m->lost_of_buffer = calloc(perf_buffer__buffer_cnt(m->buffer), sizeof(*m->lost_of_buffer));
	}
	if (m->buffer && (m->lost_of_buffer || !attr.read_format))
		return m;
	kernel_mappings_free(m);
	return NULL;
}

void kernel_mappings_free(struct kernel_mappings *m)
{
	if (!m)
		return;
	perf_buffer__free(m->buffer);
	free(m->lost_of_buffer);
	free(m);
}

int kernel_mappings_fd(const struct kernel_mappings *m)
{
	return perf_buffer__epoll_fd(m->buffer);
}

/*
 * Asks the kernel, whose record of a loss comes with the next mapping on that CPU: the Python that was not heard of may
 * have been the last one.
 */
static void ask_lost(struct kernel_mappings *m, size_t i)
{
	struct {
		uint64_t value, lost;
	} answer;

	if (read(perf_buffer__buffer_fd(m->buffer, i), &answer, sizeof(answer)) != sizeof(answer))
		return;
	m->lost += answer.lost - m->lost_of_buffer[i];
	m->lost_of_buffer[i] = answer.lost;
}

int kernel_mappings_consume(struct kernel_mappings *m)
{
	for (size_t i = 0; i < perf_buffer__buffer_cnt(m->buffer); i++) {
		size_t size;
		void *memory;
		int err;

		m->consumed = 0;
		m->lost_is_reported = false;
		err = perf_buffer__consume_buffer(m->buffer, i);
		hand_out_last(m);
		if (err < 0 && err != -EINTR)
			return err;
		if (m->lost_of_buffer && perf_buffer__buffer(m->buffer, (int)i, &memory, &size) == 0 &&
		    (m->lost_is_reported || m->consumed + ROOM_FOR_ANY > size))
			ask_lost(m, i);
	}
	return 0;
}

uint64_t kernel_mappings_lost(const struct kernel_mappings *m)
{
	return m->lost;
}
