// SPDX-License-Identifier: Apache-2.0
/* Attaches programs to tracepoints, and reads what a program writes of each task. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "kernel/internal.h"

/* Records that one read of the iterator returns. */
#define READ_RECORDS 512

int kernel_attach_hooks(const struct kernel_hook *hooks, size_t count, struct bpf_link **links)
{
	for (size_t i = 0; i < count; i++) {
		links[i] = bpf_program__attach_trace(hooks[i].program);
		if (!links[i]) {
			int err = -errno;

			log_error("cannot follow %s: %s%s", hooks[i].what, strerror(-err), host_advise(err));
			return err;
		}
	}
	return 0;
}

static int read_records(int fd, char *records, size_t size, void (*visit)(const void *record, void *arg), void *arg)
{
	size_t have = 0;
	ssize_t n;

	do {
		size_t whole;

		n = read(fd, records + have, READ_RECORDS * size - have);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return -errno;
		if (n <= 0)
			continue;
		have += (size_t)n;
		whole = have / size;
		for (size_t i = 0; i < whole; i++)
			visit(records + i * size, arg);
		have -= whole * size;
		memmove(records, records + whole * size, have);
	} while (n);
	return 0;
}

static int report(const char *what, int err)
{
	log_error("cannot iterate over the %s (iter/task): %s%s", what, strerror(-err), host_advise(err));
	return err;
}

int kernel_open_tasks(struct bpf_program *iterator, const char *what)
{
	struct bpf_link *link = bpf_program__attach_iter(iterator, NULL);
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -errno;

	bpf_link__destroy(link);
	return fd < 0 ? report(what, fd) : fd;
}

int kernel_read_tasks(struct bpf_program *iterator, const char *what, size_t size,
		      void (*visit)(const void *record, void *arg), void *arg)
{
	int fd = kernel_open_tasks(iterator, what), err;
	char *records;

	if (fd < 0)
		return fd;
	records = calloc(READ_RECORDS, size);
	err = records ? read_records(fd, records, size, visit, arg) : -ENOMEM;
	close(fd);
	free(records);
	return err ? report(what, err) : 0;
}
