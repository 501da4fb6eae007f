// SPDX-License-Identifier: Apache-2.0
#include "session_kernel.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	size_t offset;
	enum bpf_func_id helper;
} features[] = {
	{"bpf_loop", offsetof(struct session_kernel, bpf_loop), BPF_FUNC_loop},
	{"task_storage", offsetof(struct session_kernel, task_storage), BPF_FUNC_task_storage_get},
	{"task_regs", offsetof(struct session_kernel, task_regs), BPF_FUNC_task_pt_regs},
};

#define NR_FEATURES (sizeof(features) / sizeof(*features))

static bool *feature(struct session_kernel *kernel, size_t i)
{
	return (bool *)((char *)kernel + features[i].offset);
}

void session_kernel_probe(struct session_kernel *kernel)
{
	for (size_t i = 0; i < NR_FEATURES; i++)
		*feature(kernel, i) = libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, features[i].helper, NULL) == 1;
}

int session_kernel_without(struct session_kernel *kernel, const char *names)
{
	while (*names) {
		size_t len = strcspn(names, ","), i;

		for (i = 0; i < NR_FEATURES; i++) {
			if (strlen(features[i].name) == len && memcmp(features[i].name, names, len) == 0)
				break;
		}
		if (i == NR_FEATURES)
			return -EINVAL;
		*feature(kernel, i) = false;
		names += len;
		if (*names == ',')
			names++;
	}
	return 0;
}

int session_kernel_cgroup_subsystem(const char *controller)
{
	struct btf *btf = btf__load_vmlinux_btf();
	const struct btf_enum *values;
	const struct btf_type *type;
	int id, number = -ENOENT;
	char name[64];

	/* cgroup_subsys.legacy_name (block/blk-cgroup.c); the others are called the same. */
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
