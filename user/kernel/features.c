// SPDX-License-Identifier: Apache-2.0
/* Probes of the kernel's features by helper, BTF or version. */
#include "kernel/features.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/host_kernel.h"
#include "base/log.h"
#include "kernel/kernel_types.h"

static const struct {
	const char *name;
	size_t offset;
	enum bpf_func_id helper; /* the helper to probe; 0: kernel_probe_features probes the feature in another way */
} known[] = {
	{"bpf_loop", offsetof(struct kernel_features, bpf_loop), BPF_FUNC_loop},
	{"task_storage", offsetof(struct kernel_features, task_storage), BPF_FUNC_task_storage_get},
	{"task_regs", offsetof(struct kernel_features, task_regs), BPF_FUNC_task_pt_regs},
	{"ancestor_cgroups", offsetof(struct kernel_features, ancestor_cgroups),
	 BPF_FUNC_get_current_ancestor_cgroup_id},
	{"cookies", offsetof(struct kernel_features, cookies), BPF_FUNC_get_attach_cookie},
	{"direct_reads", offsetof(struct kernel_features, direct_reads), 0},
	{"checked_reads", offsetof(struct kernel_features, checked_reads), 0},
};

#define NR_FEATURES (sizeof(known) / sizeof(*known))

static bool *feature(struct kernel_features *features, size_t i)
{
	return (bool *)((char *)features + known[i].offset);
}

/* The first function exists to show that this kernel's BTF lists functions; CONFIG_HARDENED_USERCOPY adds the other. */
static bool copies_are_hardened(void)
{
	struct kernel_types types;
	bool not_hardened = kernel_types_open(&types) == 0 &&
			    kernel_types_find(&types, BTF_KIND_FUNC, "copy_from_user_nofault") &&
			    !kernel_types_find(&types, BTF_KIND_FUNC, "__check_object_size");

	kernel_types_close(&types);
	return !not_hardened;
}

void kernel_probe_features(struct kernel_features *features)
{
	struct host_kernel host;

	for (size_t i = 0; i < NR_FEATURES; i++) {
		if (known[i].helper)
			*feature(features, i) =
				libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, known[i].helper, NULL) == 1;
	}
	host_kernel_look(&host);
	/*
	 * The helper exists since 5.12 (a10787e6d58c), but before 6.4 it allocates entries by kmalloc(), which may not
	 * be called from an NMI.
	 */
	features->task_storage = features->task_storage && host_kernel_at_least(&host, 6, 4);
	features->checked_reads = host_kernel_checks_reads(&host);
	features->direct_reads = host_kernel_reads_without_lock(&host) || !copies_are_hardened();
}

/* compat_memory_is_current() needs cfs_rq.rq. */
static bool has_run_queue(void)
{
	struct kernel_types types;
	uint32_t id = kernel_types_open(&types) ? 0 : kernel_types_find(&types, BTF_KIND_STRUCT, "cfs_rq");
	const struct btf_type *type = id ? kernel_types_get(&types, id) : NULL;
	bool found = false;

	for (int i = 0; type && i < btf_vlen(type) && !found; i++)
		found = strcmp(kernel_types_string(&types, btf_members(type)[i].name_off), "rq") == 0;
	kernel_types_close(&types);
	return found;
}

bool kernel_takes_cycles(const struct kernel_features *features)
{
	return features->checked_reads || has_run_queue();
}

int kernel_refuse_without_loop(const char *what, const char *without)
{
	struct host_kernel host;

	host_kernel_look(&host);
	if (!host_kernel_at_least(&host, 5, 17))
		log_error("%s Linux 5.17 or newer, for bpf_loop; this is %s", what, host.release);
	else if (without)
		log_error("%s bpf_loop and task_regs; leave them out of --without-kernel-feature %s", what, without);
	else
		log_error("%s bpf_loop and the registers of a task, which this kernel (%s) does not let pybpf use; see "
			  "`pybpf doctor`",
			  what, host.release);
	return -ENOTSUP;
}

int kernel_disable_features(struct kernel_features *features, const char *names)
{
	while (*names) {
		size_t len = strcspn(names, ","), i;

		for (i = 0; i < NR_FEATURES; i++) {
			if (strlen(known[i].name) == len && memcmp(known[i].name, names, len) == 0)
				break;
		}
		if (i == NR_FEATURES)
			return -EINVAL;
		*feature(features, i) = false;
		names += len;
		if (*names == ',')
			names++;
	}
	return 0;
}

int kernel_get_cgroup_subsystem(const char *controller)
{
	const struct btf_enum *values;
	const struct btf_type *type;
	struct kernel_types types;
	int number = -ENOENT;
	char name[64];
	uint32_t id;

	/* cgroup_subsys.legacy_name (block/blk-cgroup.c); the other controllers have the same name in both places. */
	snprintf(name, sizeof(name), "%s_cgrp_id", strcmp(controller, "blkio") == 0 ? "io" : controller);
	id = kernel_types_open(&types) ? 0 : kernel_types_find(&types, BTF_KIND_ENUM, "cgroup_subsys_id");
	if (id) {
		type = kernel_types_get(&types, id);
		values = btf_enum(type);
		for (int i = 0; i < btf_vlen(type); i++) {
			if (strcmp(kernel_types_string(&types, values[i].name_off), name) == 0)
				number = values[i].val;
		}
	}
	kernel_types_close(&types);
	return number;
}
