/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Filters of samples by user and by cgroup, in addition to the choice of processes. */
#ifndef PYBPF_FILTER_BPF_H
#define PYBPF_FILTER_BPF_H

#include "maps.bpf.h"

/*
 * Map users, map cgroups has entries; and some of them include: then a user or cgroup without an entry is excluded.
 */
const volatile bool cfg_users, cfg_cgroups, cfg_include_users, cfg_include_cgroups;

/* Number of cgroups made during the run: user space then looks whether a wanted container started. */
__u64 cgroups_made;

/* Levels of cgroups that are checked, from the hierarchy's root down: Kubernetes has 4 or 5. */
#define FILTER_LEVELS 16

static __always_inline bool filter_user(__u32 uid)
{
	__u8 *said = bpf_map_lookup_elem(&users, &uid);

	return said ? *said == PYBPF_FILTER_INCLUDE : !cfg_include_users;
}

/* task: NULL: the current one. */
static __always_inline bool filter_cgroup(struct task_struct *task)
{
	bool included = !cfg_include_cgroups;

	for (int level = 0; level < FILTER_LEVELS; level++) {
		__u64 id = task ? compat_cgroup_ancestor_of(task, level) : compat_cgroup_ancestor(level);
		__u8 *said;

		if (!id)
			break;
		said = bpf_map_lookup_elem(&cgroups, &id);
		if (!said)
			continue;
		if (*said == PYBPF_FILTER_EXCLUDE)
			return false;
		included = true;
	}
	return included;
}

/* Returns whether the filters let the current thread pass. */
static __always_inline bool filter_passes(void)
{
	return (!cfg_users || filter_user((__u32)bpf_get_current_uid_gid())) && (!cfg_cgroups || filter_cgroup(NULL));
}

/* Returns whether they let another thread pass. */
static __noinline int filter_passes_task(struct task_struct *task)
{
	return (!cfg_users || filter_user(BPF_CORE_READ(task, cred, uid.val))) && (!cfg_cgroups || filter_cgroup(task));
}

SEC("?tp_btf/cgroup_mkdir")
int BPF_PROG(cgroup_made)
{
	__sync_fetch_and_add(&cgroups_made, 1);
	return 0;
}

#endif
