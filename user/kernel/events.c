// SPDX-License-Identifier: Apache-2.0
/* The ring buffer of stacks, code objects and times, and the refusal of new stacks. */
#include "kernel/events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "base/host.h"
#include "base/log.h"
#include "kernel/internal.h"

int kernel_open_events(struct kernel *k, int (*take)(void *arg, void *record, size_t size), void *arg)
{
	int err;

	k->events = ring_buffer__new(bpf_map__fd(k->skel->maps.events), take, arg, NULL);
	if (k->events)
		return 0;
	err = -errno;
	log_error("cannot map the ring buffer: %s%s", strerror(-err), host_advise(err));
	return err;
}

int kernel_get_events_fd(const struct kernel *k)
{
	return ring_buffer__epoll_fd(k->events);
}

int kernel_consume_events(struct kernel *k)
{
	int n = ring_buffer__consume(k->events);

	return n < 0 && n != -EINTR ? n : 0;
}

void kernel_refuse_new_stacks(struct kernel *k, bool refuse)
{
	k->skel->bss->stacks_refused = refuse;
}

void kernel_refuse_times(struct kernel *k, bool refuse)
{
	k->skel->bss->times_full = refuse;
}

uint64_t kernel_get_given_back(const struct kernel *k)
{
	return k->skel->bss->memory_given_back;
}

uint64_t kernel_get_memory_unsent(const struct kernel *k)
{
	return k->skel->bss->memory_unsent;
}

uint64_t kernel_get_first_sample_ns(const struct kernel *k)
{
	return k->skel->bss->first_sample_ns;
}
