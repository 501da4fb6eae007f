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
#include "kernel/internal.h"
#include "kernel/opener.h"

/* Room for a list of CPUs, which is a page at most. */
#define LIST_SIZE 4096
/* Interval between looks at the list of CPUs. */
#define LOOK_S 1.0
/* Checks of all events in a row, one at each look: an event that did not advance between two checks has stopped. */
#define CHECKS 2
/* Interval between such rows, which interrupt each CPU twice: a CPU may be offline between two looks at the list. */
#define CHECKS_S 10.0
/* Longer than the time between two reads of clocks, shorter than any suspension. */
#define SLEPT_NS 100000000

/*
 * Reads one of the kernel's lists of CPUs, such as "0-3,8-11". Returns the last number, or negative errno; *set: a bit
 * for each.
 */
static int read_set(const char *path, struct kernel_cpu_set *set)
{
	char list[LIST_SIZE], *c = list;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read(fd, list, sizeof(list) - 1);
	unsigned long last = 0;

	if (fd >= 0)
		close(fd);
	memset(set, 0, sizeof(*set));
	if (n <= 0)
		return n ? (int)n : -ENODATA;
	list[n] = '\0';
	while (*c >= '0' && *c <= '9') {
		unsigned long first = strtoul(c, &c, 10);

		last = *c == '-' ? strtoul(c + 1, &c, 10) : first;
		if (last >= KERNEL_CPUS_MAX)
			return -E2BIG;
		for (unsigned long i = first; i <= last; i++)
			set->bits[i / 64] |= UINT64_C(1) << i % 64;
		c += *c == ',';
	}
	return (int)last;
}

static bool is_in(const struct kernel_cpu_set *set, int cpu)
{
	return cpu < KERNEL_CPUS_MAX && set->bits[cpu / 64] >> cpu % 64 & 1;
}

int kernel_present_cpus(void)
{
	struct kernel_cpu_set present;
	int last = read_set("/sys/devices/system/cpu/present", &present);

	return last < 0 ? libbpf_num_possible_cpus() : last + 1;
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

	/* Where the list cannot be read, all are tried. */
	if (read_set("/sys/devices/system/cpu/online", &cpus->online) < 0)
		memset(&cpus->online, 0xff, sizeof(cpus->online));
	cpus->slept_ns = slept_ns();
	return memcmp(&cpus->online, &before.online, sizeof(before.online)) ||
	       cpus->slept_ns > before.slept_ns + SLEPT_NS;
}

/*
 * Asks for an event that a CPU lacks. Returns 1 with its descriptors, 0 if the CPU is offline, or negative errno.
 */
static int reopen(struct kernel *k, enum kernel_opener_what what, int number, int cpu, int fds[2])
{
	int err = is_in(&k->cpus.online, cpu) ? kernel_ask_opener(k, what, number, fds) : -ENODEV;

	return err == -ENODEV || err == -ENXIO ? 0 : err < 0 ? err : 1;
}

/* Opens what records mappings where it is not open. Returns on how many CPUs, or negative errno. */
static int reopen_mappings(struct kernel *k)
{
	int cpus = libbpf_num_possible_cpus(), count = 0, fds[2];

	for (int i = 0; i < cpus; i++) {
		int opened = kernel_mappings_lacks(k->mappings, i) ? reopen(k, KERNEL_OPEN_MAPPINGS, i, i, fds) : 0;

		if (opened > 0)
			opened = kernel_mappings_add(k->mappings, i, fds[0]) ?: 1;
		if (opened < 0)
			return opened;
		count += opened;
	}
	return count;
}

/* Likewise, what samples. */
static int reopen_sampler(struct kernel *k)
{
	int count = 0, fds[2];

	for (int i = 0; i < k->sampler.count; i++) {
		int cpu = k->sampler.attached[i].cpu;
		int opened = kernel_sampler_lacks(k, i) ? reopen(k, KERNEL_OPEN_SAMPLER, i, cpu, fds) : 0;

		if (opened < 0)
			return opened;
		if (opened)
			kernel_sampler_add(k, i, fds);
		count += opened;
	}
	/* They have the rate that was asked for at the start. */
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
		log_warn(
			"CPUs came online, or back online: they are sampled from now on; up to some seconds of samples "
			"there are missing");
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
