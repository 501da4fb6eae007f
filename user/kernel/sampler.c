// SPDX-License-Identifier: Apache-2.0
#include "kernel/sampler.h"

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

/* So far the rate goes up and down; in JITTER_TICKS ticks the timer then passes through several of its own periods. */
#define JITTER_SHARE 0.05
#define JITTER_TICKS 64
#define JITTER_MIN_S 1.0

static int open_event(enum session_perf_source source, int cpu, unsigned freq)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.freq = 1,
		.sample_freq = freq,
		/* An idle CPU runs nobody's Python; without this its timer would wake it for nothing. */
		.exclude_idle = 1,
	};
	int fd;

	if (source == SESSION_PERF_CYCLES) {
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
	} else {
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
	}
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int session_perf_probe(enum session_perf_source source)
{
	int fd = open_event(source, 0, 1);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int attach_cpu(struct session_perf *perf, const struct bpf_program *program, int cpu, unsigned freq)
{
	int fd = open_event(perf->source, cpu, freq), err;
	struct bpf_link *link;

	/* Offline: nothing runs there. */
	if (fd == -ENODEV || fd == -ENXIO)
		return 0;
	if (fd < 0) {
		log_error("cannot open a perf event of %u Hz on CPU %d: %s; see `pybpf doctor`", freq, cpu,
			  strerror(-fd));
		return fd;
	}
	link = bpf_program__attach_perf_event(program, fd);
	if (!link) {
		err = -errno;
		log_error("cannot attach the sampler to the perf event on CPU %d: %s; see `pybpf doctor`", cpu,
			  strerror(-err));
		close(fd);
		return err;
	}
	perf->fds[perf->count] = fd;
	perf->links[perf->count++] = link;
	return 0;
}

int session_perf_attach(struct session_perf *perf, const struct bpf_program *program, unsigned freq,
			enum session_perf_source source)
{
	int cpus = libbpf_num_possible_cpus(), err = 0, *fds;
	struct bpf_link **links;

	memset(perf, 0, sizeof(*perf));
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
	*perf = (struct session_perf){.links = links, .fds = fds, .freq = freq, .source = source};
	if (source == SESSION_PERF_AUTO)
		perf->source = session_perf_probe(SESSION_PERF_CYCLES) ? SESSION_PERF_CPU_CLOCK : SESSION_PERF_CYCLES;
	for (int cpu = 0; cpu < cpus && !err; cpu++)
		err = attach_cpu(perf, program, cpu, freq);
	if (!err && !perf->count) {
		log_error("no CPU could be sampled; see `pybpf doctor`");
		err = -ENODEV;
	}
	if (err)
		session_perf_detach(perf);
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

double session_perf_jitter(struct session_perf *perf)
{
	double least = JITTER_TICKS / (double)perf->freq;
	double seconds = (least > JITTER_MIN_S ? least : JITTER_MIN_S) * (0.75 + 0.5 * random_share());
	double shift = perf->shift, rate;

	/* Every second rate is as much below as the one before was above, or the other way round. */
	if (!perf->shift)
		shift = JITTER_SHARE * (2 * random_share() - 1);
	perf->shift = perf->shift ? 0 : -shift;
	/* The period under way is given up, which is half of one on average. */
	rate = perf->freq * (1 + shift) + 0.5 / seconds;
	for (int i = 0; i < perf->count; i++) {
		/* The CPU clock counts nanoseconds, and the kernel has made a period of its rate
		 * (perf_swevent_init_hrtimer). */
		uint64_t value = perf->source == SESSION_PERF_CYCLES ? (uint64_t)(rate + 0.5) : (uint64_t)(1e9 / rate);

		/* Where it fails (no more than the kernel's highest rate is allowed), the old rate is as good. */
		if (ioctl(perf->fds[i], PERF_EVENT_IOC_PERIOD, &value))
			log_debug("cannot vary the rate of perf event %d: %s", i, strerror(errno));
	}
	return seconds;
}

void session_perf_detach(struct session_perf *perf)
{
	for (int i = 0; i < perf->count; i++)
		bpf_link__destroy(perf->links[i]);
	free(perf->links);
	free(perf->fds);
	memset(perf, 0, sizeof(*perf));
}
