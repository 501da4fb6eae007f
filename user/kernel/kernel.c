// SPDX-License-Identifier: Apache-2.0
/* The life of struct kernel, and facts about its loaded programs and maps. */
#include "kernel/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/procfs.h"
#include "kernel/internal.h"
#include "kernel/opener.h"
#include "kernel/waits.h"

__attribute__((format(printf, 2, 0))) static int libbpf_says(enum libbpf_print_level level, const char *fmt,
							     va_list args)
{
	(void)level;
	log_vprintf_lines(LOG_DEBUG, fmt, args);
	return 0;
}

/*
 * The time of threads is kept by programs that an NMI could interrupt while they hold a map's lock; the CPU clock's
 * interrupt cannot. They walk in one program, and read the registers of a system call.
 */
static int choose_for_waits(struct kernel *k)
{
	if (!k->features.bpf_loop || !k->features.task_regs)
		return kernel_refuse_without_loop("the time of threads (--mode=wall, offcpu and gil) needs",
						  k->options.disabled_features);
	if (k->options.source == KERNEL_SOURCE_CYCLES) {
		log_error("-e cycles: with the time of threads (--mode=wall, --mode=offcpu) samples are taken by the "
			  "CPU clock; leave -e out");
		return -ENOTSUP;
	}
	k->options.source = KERNEL_SOURCE_CPU_CLOCK;
	return 0;
}

static int choose_source(struct kernel *k)
{
	k->options.states &= k->features.bpf_loop && k->features.task_regs;
	k->options.waits |= k->options.states;
	if (k->options.waits)
		return choose_for_waits(k);
	if (k->options.source == KERNEL_SOURCE_CPU_CLOCK || kernel_takes_cycles(&k->features))
		return 0;
	if (k->options.source == KERNEL_SOURCE_CYCLES) {
		log_error("-e cycles: on this kernel, an interrupt by the CPU's cycles cannot tell whose memory it "
			  "reads; "
			  "use -e cpu-clock");
		return -ENOTSUP;
	}
	k->options.source = KERNEL_SOURCE_CPU_CLOCK;
	return 0;
}

struct kernel *kernel_new(const struct kernel_options *options)
{
	struct kernel *k = calloc(1, sizeof(*k));

	if (!k) {
		log_error("out of memory while starting");
		return NULL;
	}
	k->options = *options;
	k->stats_fd = -1;
	libbpf_set_print(libbpf_says);
	kernel_probe_features(&k->features);
	if (options->disabled_features && kernel_disable_features(&k->features, options->disabled_features)) {
		log_error("--without-kernel-feature %s: the features are ancestor_cgroups, bpf_loop, checked_reads, "
			  "cookies, direct_reads, task_regs and task_storage",
			  options->disabled_features);
		goto failed;
	}
	log_info("kernel: bpf_loop %s, task registers %s, task storage %s, user memory read %s",
		 k->features.bpf_loop ? "used" : "not used", k->features.task_regs ? "used" : "not used",
		 k->features.task_storage ? "used" : "not used",
		 k->features.direct_reads ? "directly" : "in two steps");
	if (!choose_source(k))
		return k;
failed:
	kernel_free(k);
	return NULL;
}

void kernel_free(struct kernel *k)
{
	if (!k)
		return;
	kernel_end_opener(k);
	kernel_detach_sampler(k);
	kernel_detach_waits(k);
	for (size_t i = 0; i < KERNEL_NR_HOOKS; i++)
		bpf_link__destroy(k->hooks[i]);
	bpf_link__destroy(k->cgroup_hook);
	kernel_mappings_free(k->mappings);
	ring_buffer__free(k->process_events);
	ring_buffer__free(k->events);
	if (k->stats_fd >= 0)
		close(k->stats_fd);
	for (uint32_t i = 0; i < k->nr_chunks; i++)
		close(k->chunks[i]);
	free(k->chunks);
	pybpf_bpf__destroy(k->skel);
	free(k);
}

bool kernel_uses_bpf_loop(const struct kernel *k)
{
	return k->features.bpf_loop;
}

uint64_t kernel_get_map_bytes(const struct kernel *k)
{
	const struct bpf_map *map;
	uint64_t total = 0;

	bpf_object__for_each_map(map, k->skel->obj)
	{
		uint64_t bytes = 0;

		if (bpf_map__fd(map) >= 0 && procfs_fdinfo(bpf_map__fd(map), "memlock:", &bytes) == 0)
			total += bytes;
	}
	return total;
}

uint64_t kernel_get_mapped_bytes(const struct kernel *k)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const struct bpf_map *map;
	uint64_t total = 0;

	bpf_object__for_each_map(map, k->skel->obj)
	{
		/* Two pages with the places of reader and writer, and the data two times behind each other. */
		if (bpf_map__type(map) == BPF_MAP_TYPE_RINGBUF)
			total += 2 * (page + bpf_map__max_entries(map));
	}
	return total;
}

int kernel_include_cgroup(struct kernel *k, uint64_t id)
{
	const uint8_t include = PYBPF_FILTER_INCLUDE;

	return bpf_map__update_elem(k->skel->maps.cgroups, &id, sizeof(id), &include, sizeof(include), BPF_ANY);
}

uint64_t kernel_count_made_cgroups(const struct kernel *k)
{
	return k->skel->bss->cgroups_made;
}

void kernel_enable_stats(struct kernel *k)
{
	k->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
}

int64_t kernel_get_sampler_ns(const struct kernel *k)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	if (k->stats_fd < 0 || bpf_obj_get_info_by_fd(bpf_program__fd(kernel_get_sampler_program(k)), &info, &size))
		return -1;
	return (int64_t)info.run_time_ns;
}
