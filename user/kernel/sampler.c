// SPDX-License-Identifier: Apache-2.0
/* Opens perf events, tracepoints and uprobes, attaches the sampler to them, and varies their rate. */
#include "kernel/sampler.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "kernel/event.h"
#include "kernel/internal.h"
#include "kernel/perf_event.h"

struct bpf_program *kernel_get_program(const struct kernel *k, const struct kernel_event *event)
{
	if (event && event->memory)
		return event->category ? k->skel->progs.sample_memory : k->skel->progs.memory_fault;
	if (event && event->category)
		return k->skel->progs.sample_tracepoint;
	if (event && event->path)
		return k->skel->progs.sample_uprobe;
	return k->features.bpf_loop ? k->skel->progs.sample_loop : k->skel->progs.sample_chain;
}

struct bpf_program *kernel_get_sampler_program(const struct kernel *k)
{
	return kernel_get_program(k, k->options.nr_events ? &k->options.events[0] : NULL);
}

static struct kernel_event timer_of(enum kernel_source source)
{
	if (source == KERNEL_SOURCE_CYCLES)
		return (struct kernel_event){.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES};
	return (struct kernel_event){.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CPU_CLOCK};
}

static int open_event(const struct kernel_event *event, int cpu, unsigned freq)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = event->type,
		.config = event->config,
		/* An idle CPU runs nobody's Python; without this its timer would wake it for nothing. */
		.exclude_idle = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
	};

	if (event->period) {
		attr.sample_period = event->period;
	} else {
		attr.freq = 1;
		attr.sample_freq = freq;
	}
	return kernel_perf_open(&attr, cpu);
}

static bool is_offline(int err)
{
	return err == -ENODEV || err == -ENXIO;
}

int kernel_probe_source(enum kernel_source source)
{
	const struct kernel_event timer = timer_of(source);
	int fd = open_event(&timer, 0, 1);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

/* Samples of one kind need no cookie, see kind_of() in bpf/outcome.bpf.h. */
static bool kinds_differ(const struct kernel_options *options)
{
	for (size_t i = 1; i < options->nr_events; i++) {
		if (options->events[i].kind != options->events[0].kind)
			return true;
	}
	return false;
}

static uint64_t period_of(const struct kernel_event *event)
{
	return event->period ?: 1;
}

bool kernel_event_needs_loop(const struct kernel_event_needs *needs)
{
	return needs->tracepoints || needs->functions || needs->memory;
}

int kernel_check_events(const struct kernel *k, struct kernel_event_needs *needs)
{
	*needs = (struct kernel_event_needs){.tracepoint_period = 1};
	for (size_t i = k->options.nr_events; i > 0; i--) {
		const struct kernel_event *event = &k->options.events[i - 1];

		needs->tracepoints |= event->category && !event->memory;
		needs->memory |= event->memory;
		needs->functions |= event->path != NULL;
		if (event->category || event->path)
			needs->tracepoint_period = period_of(event);
	}
	needs->cookies = kinds_differ(&k->options);
	needs->kind = k->options.nr_events ? k->options.events[0].kind : PYBPF_KIND_CPU;
	if (needs->cookies && !k->features.cookies) {
		log_error("samples of several kinds at once need Linux 5.15 or newer");
		return -ENOTSUP;
	}
	if (kernel_event_needs_loop(needs) && !k->features.bpf_loop)
		return kernel_refuse_without_loop("samples of tracepoints, of functions and of memory need",
						  k->options.disabled_features);
	return 0;
}

static int attach_program(struct kernel *k, struct bpf_program *program, uint32_t kind, const char *category,
			  const char *name)
{
	const struct bpf_tracepoint_opts opts = {.sz = sizeof(opts), .bpf_cookie = kind};
	struct kernel_sampler *sampler = &k->sampler;
	struct bpf_link *link =
		bpf_program__attach_tracepoint_opts(program, category, name, k->features.cookies ? &opts : NULL);
	int err;

	if (!link) {
		err = -errno;
		log_error("cannot attach the sampler to tracepoint %s:%s: %s", category, name, strerror(-err));
		return err;
	}
	sampler->attached[sampler->count++] = (struct kernel_attached){.link = link, .fd = -1, .link_fd = -1};
	return 0;
}

static int attach_tracepoint(struct kernel *k, const struct kernel_event *event)
{
	return attach_program(k, kernel_get_program(k, event), event->kind, event->category, event->name);
}

static int attach_function(struct kernel *k, const struct kernel_event *event)
{
	const struct bpf_uprobe_opts opts = {.sz = sizeof(opts), .bpf_cookie = k->features.cookies ? event->kind : 0};
	struct kernel_sampler *sampler = &k->sampler;
	struct bpf_link *link =
		bpf_program__attach_uprobe_opts(kernel_get_program(k, event), -1, event->path, event->offset, &opts);
	int err;

	if (!link) {
		err = -errno;
		log_error("cannot attach the sampler to function %s: %s", event->symbol, strerror(-err));
		return err;
	}
	sampler->attached[sampler->count++] = (struct kernel_attached){.link = link, .fd = -1, .link_fd = -1};
	return 0;
}

/*
 * Opens an event on a CPU and attaches its program. Returns 0 with the link and the event's descriptor, which the link
 * owns; else negative errno: after reporting it, but for a CPU that is offline.
 */
static int attach_on(struct kernel *k, const struct kernel_event *event, int cpu, struct bpf_link **link, int *fd)
{
	const struct bpf_perf_event_opts opts = {.sz = sizeof(opts), .bpf_cookie = event->kind};
	const unsigned freq = k->sampler.freq;
	int err;

	*fd = open_event(event, cpu, freq);
	if (is_offline(*fd))
		return *fd;
	if (*fd < 0) {
		if (event->title)
			log_error("cannot count %s on CPU %d: %s%s", event->title, cpu, strerror(-*fd),
				  host_explain_event_denial(*fd));
		else
			log_error("cannot open a perf event of %u Hz on CPU %d: %s%s%s", freq, cpu, strerror(-*fd),
				  host_explain_event_denial(*fd), host_advise(*fd));
		return *fd;
	}
	*link = bpf_program__attach_perf_event_opts(kernel_get_program(k, event), *fd,
						    k->features.cookies ? &opts : NULL);
	if (*link)
		return 0;
	err = -errno;
	log_error("cannot attach the sampler to the perf event on CPU %d: %s%s", cpu, strerror(-err), host_advise(err));
	close(*fd);
	return err;
}

/* Attaches the program of an event that is counted on each CPU. */
static int attach_cpus(struct kernel *k, const struct kernel_event *event, int cpus)
{
	int count = 0, err = 0;

	for (int cpu = 0; cpu < cpus && !err; cpu++) {
		struct kernel_attached *attached = &k->sampler.attached[k->sampler.count++];

		*attached = (struct kernel_attached){.fd = -1, .link_fd = -1, .event = event, .cpu = cpu};
		err = attach_on(k, event, cpu, &attached->link, &attached->fd);
		count += !err;
		/* Nothing runs on a CPU that is offline. */
		err = is_offline(err) ? 0 : err;
	}
	if (!err && !count) {
		log_error("no CPU could be sampled; see `pybpf doctor`");
		err = -ENODEV;
	}
	if (count > k->sampled_cpus)
		k->sampled_cpus = count;
	return err;
}

/*
 * Attaches what says where memory is touched and moved. The kernel counts page faults on all machines; tracepoints for
 * them are on few others than x86 (exceptions:page_fault_user).
 */
static int attach_memory(struct kernel *k, int cpus)
{
	static const struct kernel_event faults = {
		.title = "page faults",
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_PAGE_FAULTS,
		.period = 1,
		.kind = PYBPF_KIND_EVENTS,
		.memory = true,
	};
	int err = attach_cpus(k, &faults, cpus);

	for (int i = 0; i < KERNEL_MEMORY_POINTS && !err; i++)
		err = attach_program(k, k->skel->progs.memory_mapped, PYBPF_KIND_EVENTS,
				     kernel_memory_points[i].category, kernel_memory_points[i].name);
	return err;
}

static int attach_event(struct kernel *k, const struct kernel_event *event, int cpus)
{
	int err = event->memory && k->options.held ? attach_memory(k, cpus) : 0;

	if (err)
		return err;
	if (event->category)
		return attach_tracepoint(k, event);
	if (event->path)
		return attach_function(k, event);
	return attach_cpus(k, event, cpus);
}

static void choose_events(struct kernel *k)
{
	struct kernel_sampler *sampler = &k->sampler;

	if (k->options.source == KERNEL_SOURCE_AUTO)
		k->options.source =
			kernel_probe_source(KERNEL_SOURCE_CYCLES) ? KERNEL_SOURCE_CPU_CLOCK : KERNEL_SOURCE_CYCLES;
	sampler->timer = timer_of(k->options.source);
	sampler->events = k->options.nr_events ? k->options.events : &sampler->timer;
	sampler->nr_events = k->options.nr_events ?: 1;
}

int kernel_attach_sampler(struct kernel *k, unsigned freq)
{
	int cpus = libbpf_num_possible_cpus(), err = 0;
	struct kernel_sampler *sampler = &k->sampler;

	if (cpus < 0)
		return cpus;
	*sampler = (struct kernel_sampler){.freq = freq, .divisor = 1};
	choose_events(k);
	sampler->attached =
		calloc((sampler->nr_events + 1) * (size_t)cpus + KERNEL_MEMORY_POINTS, sizeof(*sampler->attached));
	if (!sampler->attached) {
		log_error("out of memory while starting");
		return -ENOMEM;
	}
	for (size_t i = 0; i < sampler->nr_events && !err; i++)
		err = attach_event(k, &sampler->events[i], cpus);
	if (err)
		kernel_detach_sampler(k);
	return err;
}

double kernel_vary_rate(struct kernel *k)
{
	struct kernel_sampler *sampler = &k->sampler;
	const double freq = sampler->freq / (double)sampler->divisor;
	double seconds, rate = kernel_draw_rate(&sampler->jitter, freq, clock_s(CLOCK_MONOTONIC), &seconds);

	for (int i = 0; i < sampler->count; i++) {
		const struct kernel_attached *attached = &sampler->attached[i];
		const struct kernel_event *event = attached->event;
		bool is_clock;
		uint64_t value;

		if (!event || event->period || attached->fd < 0)
			continue;
		/* The CPU clock counts nanoseconds, and the kernel has made a period of its rate
		 * (perf_swevent_init_hrtimer). */
		is_clock = event->type == PERF_TYPE_SOFTWARE && event->config == PERF_COUNT_SW_CPU_CLOCK;
		value = is_clock ? (uint64_t)(1e9 / rate) : (uint64_t)fmax(rate + 0.5, 1);
		/* If this fails (the kernel's highest rate is the limit), the event keeps its old rate, which does as
		 * well. */
		if (ioctl(attached->fd, PERF_EVENT_IOC_PERIOD, &value))
			log_debug("cannot vary the rate of perf event %d: %s", i, strerror(errno));
	}
	return seconds;
}

void kernel_divide_rate(struct kernel *k, unsigned divisor)
{
	k->sampler.divisor = divisor;
	k->sampler.jitter = (struct kernel_jitter){0};
	kernel_vary_rate(k);
}

static void detach(struct kernel_attached *attached)
{
	if (attached->link) {
		bpf_link__destroy(attached->link);
	} else if (attached->fd >= 0) {
		ioctl(attached->fd, PERF_EVENT_IOC_DISABLE, 0);
		close(attached->fd);
		if (attached->link_fd >= 0)
			close(attached->link_fd);
	}
	attached->link = NULL;
	attached->fd = attached->link_fd = -1;
	attached->enabled_ns = 0;
}

bool kernel_sampler_lacks(struct kernel *k, int i)
{
	struct kernel_attached *attached = &k->sampler.attached[i];
	uint64_t answer[2]; /* the event's value, the time that it was enabled */

	if (!attached->event)
		return false;
	if (attached->fd < 0)
		return true;
	if (read(attached->fd, answer, sizeof(answer)) != sizeof(answer))
		return false;
	if (answer[1] != attached->enabled_ns) {
		attached->enabled_ns = answer[1];
		return false;
	}
	detach(attached);
	return true;
}

int kernel_sampler_open(struct kernel *k, int i, int fds[2])
{
	const struct kernel_attached *attached = &k->sampler.attached[i];
	struct bpf_link *link;
	int err = attach_on(k, attached->event, attached->cpu, &link, &fds[0]);

	if (err)
		return err;
	/* Before Linux 5.15 there is no link, and libbpf has the event's descriptor for it. */
	fds[1] = bpf_link__fd(link) == fds[0] ? -1 : bpf_link__fd(link);
	bpf_link__disconnect(link);
	bpf_link__destroy(link);
	return 0;
}

void kernel_sampler_add(struct kernel *k, int i, const int fds[2])
{
	struct kernel_attached *attached = &k->sampler.attached[i];

	attached->fd = fds[0];
	attached->link_fd = fds[1];
}

void kernel_detach_sampler(struct kernel *k)
{
	struct kernel_sampler *sampler = &k->sampler;

	for (int i = 0; i < sampler->count; i++)
		detach(&sampler->attached[i]);
	free(sampler->attached);
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
