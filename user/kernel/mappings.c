// SPDX-License-Identifier: Apache-2.0
/* Reads perf's records of executable mappings (PERF_RECORD_MMAP2) from the buffer of each CPU. */
#include "kernel/mappings.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/siphash.h"
#include "kernel/perf_event.h"

/*
 * Pages of each CPU's buffer, a power of two: room for 4,000 records. The start of a program makes some 5, and programs
 * with a JIT may map as much without any start: 20,000 records a second leave 0.4 s until they are read. It is as much
 * as the kernel lets a user without CAP_IPC_LOCK have (kernel.perf_event_mlock_kb, 516 for each CPU).
 */
#define BUFFER_PAGES     128
#define BUFFER_PAGES_MIN 16
/* Most pages of all buffers, on machines with more than 64 CPUs. */
#define ALL_PAGES 8192
/* Number of bytes that wake the reader. */
#define WAKE_BYTES (32 * 1024)

/* A buffer with less free room than this may have had no room for a record. */
#define ROOM_FOR_ANY (2 * PATH_MAX)

/* A CPU's buffer, and what the kernel said of it when it was asked last. */
struct cpu {
	struct kernel_perf_buffer buffer; /* zeroed while the CPU is offline */
	uint64_t enabled_ns, lost;
};

struct kernel_mappings {
	struct perf_event_attr attr;
	struct cpu *cpus;
	int nr_cpus;
	size_t pages; /* of a buffer */
	int epoll_fd;
	void *copy; /* room for a record in one piece */
	void (*visit)(const struct kernel_mapping *mapping, void *arg);
	void *arg;
	/* The mapping that was read last and has not been handed out: see take(). */
	struct kernel_mapping last;
	bool has_last;
	bool lost_is_reported; /* in this go */
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

/* Returns whether the kernel says how many records it has lost when it is asked, as it does from Linux 6.0 on. */
static bool tells_lost(const struct kernel_mappings *m)
{
	return m->attr.read_format & PERF_FORMAT_LOST;
}

static void on_record(const struct perf_event_header *header, void *arg)
{
	const struct mmap2_record *record = (const void *)header;
	struct kernel_mappings *m = arg;

	if (header->type == PERF_RECORD_LOST && header->size >= sizeof(struct lost_record)) {
		m->lost_is_reported = true;
		if (!tells_lost(m))
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
}

static void close_cpu(struct cpu *cpu)
{
	kernel_perf_unmap(&cpu->buffer);
	*cpu = (struct cpu){0};
}

int kernel_mappings_open(struct kernel_mappings *m, int cpu)
{
	int fd = kernel_perf_open(&m->attr, cpu);

	if (fd == -EINVAL && tells_lost(m)) {
		m->attr.read_format &= ~(uint64_t)PERF_FORMAT_LOST;
		fd = kernel_perf_open(&m->attr, cpu);
	}
	return fd;
}

int kernel_mappings_add(struct kernel_mappings *m, int cpu, int fd)
{
	struct epoll_event readable = {.events = EPOLLIN};
	struct cpu *added = &m->cpus[cpu];
	int err;

	/* The user's other perf events may have used up the limit. */
	while ((err = kernel_perf_map(&added->buffer, fd, m->pages)) == -EPERM && m->pages > BUFFER_PAGES_MIN)
		m->pages /= 2;
	if (err) {
		close(fd);
		return err;
	}
	if (!epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, fd, &readable))
		return 0;
	err = -errno;
	close_cpu(added);
	return err;
}

/* Opens the buffer of each CPU that is online. Returns 0 or negative errno. */
static int open_cpus(struct kernel_mappings *m)
{
	int err = 0, count = 0;

	for (int i = 0; i < m->nr_cpus && !err; i++) {
		int fd = kernel_mappings_open(m, i);

		if (fd == -ENODEV || fd == -ENXIO)
			continue;
		err = fd < 0 ? fd : kernel_mappings_add(m, i, fd);
		count++;
	}
	return err ?: count ? 0 : -ENODEV;
}

static size_t choose_pages(int cpus)
{
	size_t pages = BUFFER_PAGES;

	while (pages > BUFFER_PAGES_MIN && pages * (size_t)cpus > ALL_PAGES)
		pages /= 2;
	return pages;
}

struct kernel_mappings *kernel_mappings_new(bool at_once,
					    void (*visit)(const struct kernel_mapping *mapping, void *arg), void *arg)
{
	int cpus = libbpf_num_possible_cpus(), err;
	struct kernel_mappings *m = cpus < 0 ? NULL : calloc(1, sizeof(*m));

	if (cpus < 0)
		errno = -cpus;
	if (!m)
		return NULL;
	*m = (struct kernel_mappings){
		.attr =
			{
				.size = sizeof(m->attr),
				.type = PERF_TYPE_SOFTWARE,
				.config = PERF_COUNT_SW_DUMMY,
				.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_LOST,
				.mmap = 1, /* executable mappings; mmap_data would be the others */
				.mmap2 = 1,
				.watermark = 1,
				.wakeup_watermark = at_once ? 1 : WAKE_BYTES,
			},
		.cpus = calloc((size_t)cpus, sizeof(*m->cpus)),
		.nr_cpus = cpus,
		.pages = choose_pages(cpus),
		.epoll_fd = epoll_create1(EPOLL_CLOEXEC),
		.copy = malloc(KERNEL_PERF_RECORD_MAX),
		.visit = visit,
		.arg = arg,
	};
	err = m->epoll_fd < 0 ? -errno : m->cpus && m->copy ? open_cpus(m) : -ENOMEM;
	if (!err)
		return m;
	kernel_mappings_free(m);
	errno = -err;
	return NULL;
}

void kernel_mappings_free(struct kernel_mappings *m)
{
	if (!m)
		return;
	for (int i = 0; m->cpus && i < m->nr_cpus; i++)
		close_cpu(&m->cpus[i]);
	if (m->epoll_fd >= 0)
		close(m->epoll_fd);
	free(m->cpus);
	free(m->copy);
	free(m);
}

int kernel_mappings_fd(const struct kernel_mappings *m)
{
	return m->epoll_fd;
}

/* What the kernel says of a CPU's event. */
struct answer {
	uint64_t value, enabled_ns, lost; /* lost: records, from Linux 6.0 on */
};

/* Returns whether the kernel has answered. */
static bool ask(const struct kernel_mappings *m, const struct cpu *cpu, struct answer *answer)
{
	size_t size = tells_lost(m) ? sizeof(*answer) : offsetof(struct answer, lost);

	return read(cpu->buffer.fd, answer, size) == (ssize_t)size;
}

/*
 * Asks the kernel, whose record of a loss comes with the next mapping on that CPU: the Python that was not heard of may
 * have been the last one.
 */
static void ask_lost(struct kernel_mappings *m, struct cpu *cpu)
{
	struct answer answer;

	if (!ask(m, cpu, &answer))
		return;
	m->lost += answer.lost - cpu->lost;
	cpu->lost = answer.lost;
}

static void consume(struct kernel_mappings *m, struct cpu *cpu)
{
	size_t consumed;

	m->lost_is_reported = false;
	consumed = kernel_perf_read(&cpu->buffer, m->copy, on_record, m);
	hand_out_last(m);
	if (tells_lost(m) && (m->lost_is_reported || consumed + ROOM_FOR_ANY > cpu->buffer.size))
		ask_lost(m, cpu);
}

void kernel_mappings_consume(struct kernel_mappings *m)
{
	for (int i = 0; i < m->nr_cpus; i++) {
		if (m->cpus[i].buffer.head)
			consume(m, &m->cpus[i]);
	}
}

bool kernel_mappings_lacks(struct kernel_mappings *m, int i)
{
	struct cpu *cpu = &m->cpus[i];
	struct answer answer;

	if (!cpu->buffer.head)
		return true;
	if (!ask(m, cpu, &answer))
		return false;
	if (answer.enabled_ns != cpu->enabled_ns) {
		cpu->enabled_ns = answer.enabled_ns;
		return false;
	}
	consume(m, cpu);
	close_cpu(cpu);
	m->lost++;
	return true;
}

uint64_t kernel_mappings_lost(const struct kernel_mappings *m)
{
	return m->lost;
}
