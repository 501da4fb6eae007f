// SPDX-License-Identifier: Apache-2.0
/*
 * Opens perf events, and reads their buffers: libbpf reads those only that it has opened itself, which the process that
 * samples may not while it does (kernel/opener.h).
 */
#include "kernel/perf_event.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int kernel_perf_open(const struct perf_event_attr *attr, int cpu)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int kernel_perf_map(struct kernel_perf_buffer *buffer, int fd, size_t pages)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		return -errno;
	*buffer = (struct kernel_perf_buffer){.head = memory, .size = pages * page, .fd = fd};
	return 0;
}

void kernel_perf_unmap(struct kernel_perf_buffer *buffer)
{
	if (!buffer->head)
		return;
	munmap(buffer->head, buffer->size + (size_t)sysconf(_SC_PAGESIZE));
	close(buffer->fd);
	*buffer = (struct kernel_perf_buffer){0};
}

/* Returns the record at the offset, in one piece. */
static const struct perf_event_header *record_at(const struct kernel_perf_buffer *buffer, uint64_t offset, void *copy)
{
	const uint8_t *records = (const uint8_t *)buffer->head + sysconf(_SC_PAGESIZE);
	size_t at = offset & (buffer->size - 1), left = buffer->size - at;
	/* Records are multiples of 8 bytes, as their heads are: a head is never cut. */
	const struct perf_event_header *record = (const void *)(records + at);

	if (record->size <= left)
		return record;
	memcpy(copy, record, left);
	memcpy((uint8_t *)copy + left, records, record->size - left);
	return copy;
}

size_t kernel_perf_read(struct kernel_perf_buffer *buffer, void *copy,
			void (*visit)(const struct perf_event_header *record, void *arg), void *arg)
{
	/* As the kernel asks for it: include/uapi/linux/perf_event.h, data_head. */
	const uint64_t end = __atomic_load_n(&buffer->head->data_head, __ATOMIC_ACQUIRE);
	const uint64_t begin = buffer->head->data_tail;
	uint64_t at = begin;

	while (at < end) {
		const struct perf_event_header *record = record_at(buffer, at, copy);

		at += record->size;
		visit(record, arg);
	}
	__atomic_store_n(&buffer->head->data_tail, at, __ATOMIC_RELEASE);
	return at - begin;
}
