// SPDX-License-Identifier: Apache-2.0
#include "kernel/sampler.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "kernel/internal.h"

/* So far the rate goes up and down; in JITTER_TICKS ticks the timer then passes through several of its own periods. */
#define JITTER_SHARE 0.05
#define JITTER_TICKS 64
#define JITTER_MIN_S 1.0

static int open_event(enum kernel_source source, int cpu, unsigned freq)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.freq = 1,
		.sample_freq = freq,
		/* An idle CPU runs nobody's Python; without this its timer would wake it for nothing. */
		.exclude_idle = 1,
	};
	int fd;

	if (source == KERNEL_SOURCE_CYCLES) {
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
	} else {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int kernel_probe_source(enum kernel_source source)
{
	int fd = open_event(source, 0, 1);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int attach_cpu(struct kernel *k, int cpu)
{
	struct kernel_sampler *sampler = &k->sampler;
	int fd = open_event(k->options.source, cpu, sampler->freq), err;
	struct bpf_link *link;

	/* Offline: nothing runs there. */
	if (fd == -ENODEV || fd == -ENXIO)
		return 0;
	if (fd < 0) {
		log_error("cannot open a perf event of %u Hz on CPU %d: %s; see `pybpf doctor`", sampler->freq, cpu,
			  strerror(-fd));
		return fd;
	}
	link = bpf_program__attach_perf_event(kernel_get_sampler_program(k), fd);
	if (!link) {
		err = -errno;
		log_error("cannot attach the sampler to the perf event on CPU %d: %s; see `pybpf doctor`", cpu,
			  strerror(-err));
		close(fd);
		return err;
	}
	sampler->fds[sampler->count] = fd;
	sampler->links[sampler->count++] = link;
	return 0;
}

int kernel_attach_sampler(struct kernel *k, unsigned freq)
{
	int cpus = libbpf_num_possible_cpus(), err = 0, *fds;
	struct bpf_link **links;

	if (cpus < 0)
		return cpus;
	links = calloc((size_t)cpus, sizeof(*links));
	fds = calloc((size_t)cpus, sizeof(*fds));
	if (!links || !fds) {
		free(links);
		free(fds);
		log_error("out of memory while starting");
		return -ENOMEM;
	}
	k->sampler = (struct kernel_sampler){.links = links, .fds = fds, .freq = freq};
	if (k->options.source == KERNEL_SOURCE_AUTO)
		k->options.source =
			kernel_probe_source(KERNEL_SOURCE_CYCLES) ? KERNEL_SOURCE_CPU_CLOCK : KERNEL_SOURCE_CYCLES;
	for (int cpu = 0; cpu < cpus && !err; cpu++)
		err = attach_cpu(k, cpu);
	if (!err && !k->sampler.count) {
		log_error("no CPU could be sampled; see `pybpf doctor`");
		err = -ENODEV;
	}
	k->sampled_cpus = k->sampler.count;
	if (err)
		kernel_detach_sampler(k);
	return err;
}

/* Of [0, 1). */
static double random_share(void)
{
	uint32_t word = 0;

	if (getrandom(&word, sizeof(word), GRND_NONBLOCK) != sizeof(word))
		return 0.5;
	return word / 4294967296.0;
}

double kernel_vary_rate(struct kernel *k)
{
	struct kernel_sampler *sampler = &k->sampler;
	double least = JITTER_TICKS / (double)sampler->freq;
	double seconds = (least > JITTER_MIN_S ? least : JITTER_MIN_S) * (0.75 + 0.5 * random_share());
	double shift = sampler->shift, rate;

	/* Every second rate is as much below as the one before was above, or the other way round. */
	if (!sampler->shift)
		shift = JITTER_SHARE * (2 * random_share() - 1);
	sampler->shift = sampler->shift ? 0 : -shift;
	/* The period under way is given up, which is half of one on average. */
	rate = sampler->freq * (1 + shift) + 0.5 / seconds;
	for (int i = 0; i < sampler->count; i++) {
		/* The CPU clock counts nanoseconds, and the kernel has made a period of its rate
		 * (perf_swevent_init_hrtimer). */
		uint64_t value =
			k->options.source == KERNEL_SOURCE_CYCLES ? (uint64_t)(rate + 0.5) : (uint64_t)(1e9 / rate);

		/* Where it fails (no more than the kernel's highest rate is allowed), the old rate is as good. */
		if (ioctl(sampler->fds[i], PERF_EVENT_IOC_PERIOD, &value))
			log_debug("cannot vary the rate of perf event %d: %s", i, strerror(errno));
	}
	return seconds;
}

void kernel_detach_sampler(struct kernel *k)
{
	struct kernel_sampler *sampler = &k->sampler;

	for (int i = 0; i < sampler->count; i++)
		bpf_link__destroy(sampler->links[i]);
	free(sampler->links);
	free(sampler->fds);
	memset(sampler, 0, sizeof(*sampler));
}

enum kernel_source kernel_get_source(const struct kernel *k)
{
	return k->options.source;
}

int kernel_get_sampled_cpus(const struct kernel *k)
{
	return k->sampled_cpus;
}
