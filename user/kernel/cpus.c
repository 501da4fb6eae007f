// SPDX-License-Identifier: Apache-2.0
/*
 * Notices CPUs that came online during the run, and those that were offline meanwhile, as all but one are while a
 * machine is suspended: the kernel takes their events away for good.
 */
#include "kernel/cpus.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/siphash.h"
#include "kernel/internal.h"
#include "kernel/opener.h"

/* Room for a list of CPUs. */
#define LIST_SIZE 4096
/* Interval between looks at the list of CPUs. */
#define LOOK_S 1.0
/* Checks of all events in a row, one at each look: two that see the same tell that an event has stopped. */
#define CHECKS 2
/* Interval between such rows, which interrupt each CPU twice: a CPU may be offline between two looks at the list. */
#define CHECKS_S 10.0
/* Differences between clocks that are read one after the other are shorter, and suspensions longer. */
#define SLEPT_NS 100000000

/* Reads one of the kernel's lists of CPUs, such as "0-3,8-11". Returns its length, or a negative number. */
static ssize_t read_list(const char *path, char *list, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, list, size - 1);

	if (fd >= 0)
		close(fd);
	list[n > 0 ? n : 0] = '\0';
	return n;
}

int kernel_present_cpus(void)
{
	int possible = libbpf_num_possible_cpus();
	char list[LIST_SIZE], *last = list;
	unsigned long number;

	if (possible < 0 || read_list("/sys/devices/system/cpu/present", list, sizeof(list)) <= 0)
		return possible;
	for (char *c = list; *c; c++) {
		if ((*c == '-' || *c == ',') && c[1])
			last = c + 1;
	}
	number = strtoul(last, NULL, 10) + 1;
	return number < (unsigned long)possible ? (int)number : possible;
}

/* Returns a hash of the list of CPUs that are online, or 0 if it cannot be read. */
static uint64_t hash_online(void)
{
	char list[LIST_SIZE];
	ssize_t n = read_list("/sys/devices/system/cpu/online", list, sizeof(list));

	return n > 0 ? siphash(siphash_process_key(), list, (size_t)n) : 0;
}

static uint64_t slept_ns(void)
{
	uint64_t monotonic = clock_ns(CLOCK_MONOTONIC), all = clock_ns(CLOCK_BOOTTIME);

	return all > monotonic ? all - monotonic : 0;
}

/* Returns whether CPUs may have come or gone since the last call. */
static bool have_changed(struct kernel_cpus *cpus)
{
	struct kernel_cpus before = *cpus;

	cpus->online_hash = hash_online();
	cpus->slept_ns = slept_ns();
	return cpus->online_hash != before.online_hash || cpus->slept_ns > before.slept_ns + SLEPT_NS;
}

/* Opens what records mappings where it is not open. Returns on how many CPUs, or negative errno. */
static int reopen_mappings(struct kernel *k)
{
	int cpus = libbpf_num_possible_cpus(), count = 0, fds[2];

	for (int i = 0; i < cpus; i++) {
		int err = kernel_mappings_lacks(k->mappings, i) ? kernel_ask_opener(k, KERNEL_OPEN_MAPPINGS, i, fds)
								: -ENODEV;

		err = err ?: kernel_mappings_add(k->mappings, i, fds[0]);
		if (err && err != -ENODEV && err != -ENXIO)
			return err;
		count += !err;
	}
	return count;
}

/* Likewise, what samples. */
static int reopen_sampler(struct kernel *k)
{
	int count = 0, fds[2];

	for (int i = 0; i < k->sampler.count; i++) {
		int err = kernel_sampler_lacks(k, i) ? kernel_ask_opener(k, KERNEL_OPEN_SAMPLER, i, fds) : -ENODEV;

		if (err && err != -ENODEV && err != -ENXIO)
			return err;
		if (!err)
			kernel_sampler_add(k, i, fds);
		count += !err;
	}
	/* They have the rate that was asked for at the begin. */
	if (count)
		kernel_vary_rate(k);
	return count;
}

static void check(struct kernel *k)
{
	int mappings = reopen_mappings(k), sampler = reopen_sampler(k), err = mappings < 0 ? mappings : sampler;

	if (err < 0 && err != -EPIPE)
		log_warn("cannot open events on CPUs that came online: %s; trying again", strerror(-err));
	if (sampler > 0)
		log_warn("CPUs came online, or were offline for a while: they are sampled from now on, which may be "
			 "some seconds late");
}

void kernel_follow_cpus(struct kernel *k, double now)
{
	struct kernel_cpus *cpus = &k->cpus;

	if (now < cpus->next_look || !k->opener.pid)
		return;
	cpus->next_look = now + LOOK_S;
	if (have_changed(cpus) || now >= cpus->next_checks)
		cpus->checks = 0;
	if (cpus->checks == CHECKS)
		return;
	if (++cpus->checks == CHECKS)
		cpus->next_checks = now + CHECKS_S;
	check(k);
}
