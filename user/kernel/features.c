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
	struct btf *btf = btf__load_vmlinux_btf();
	bool not_hardened = btf && btf__find_by_name_kind(btf, "copy_from_user_nofault", BTF_KIND_FUNC) > 0 &&
			    btf__find_by_name_kind(btf, "__check_object_size", BTF_KIND_FUNC) < 0;

	btf__free(btf);
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
	struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "cfs_rq", BTF_KIND_STRUCT) : -1;
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	bool found = false;

	for (int i = 0; type && i < btf_vlen(type) && !found; i++)
		found = strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), "rq") == 0;
	btf__free(btf);
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
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_enum *values;
	const struct btf_type *type;
	int id, number = -ENOENT;
	char name[64];

	/* cgroup_subsys.legacy_name (block/blk-cgroup.c); the other controllers have the same name in both places. */
	snprintf(name, sizeof(name), "%s_cgrp_id", strcmp(controller, "blkio") == 0 ? "io" : controller);
	id = btf ? btf__find_by_name_kind(btf, "cgroup_subsys_id", BTF_KIND_ENUM) : -1;
	if (id > 0) {
		type = btf__type_by_id(btf, (uint32_t)id);
		values = btf_enum(type);
		for (int i = 0; i < btf_vlen(type); i++) {
			if (strcmp(btf__name_by_offset(btf, values[i].name_off), name) == 0)
				number = values[i].val;
		}
	}
	btf__free(btf);
	return number;
}
