// SPDX-License-Identifier: Apache-2.0
/* Features of this kernel beyond the oldest supported one (5.10): probed once, passed to the BPF side as constants. */
#ifndef KERNEL_FEATURES_H
#define KERNEL_FEATURES_H

#include <stdbool.h>

struct kernel_features {
	bool bpf_loop;     /* 5.17 (e6f2dd0f8067): else the walk continues by tail calls */
	bool cookies;      /* 5.15 (7adfc6c9b315): else all samples are of one kind */
	bool task_regs;    /* 5.15 (dd6e10fbd9fb): else there are no registers where the kernel was interrupted */
	bool task_storage; /* 6.4 (6ae9d5e99e1d): else a hash by thread */
	/* 6.4 (d319f344561d), see compat_read_user() and compat_memory_is_current() in bpf/. */
	bool direct_reads;     /* else user memory is read by way of memory for which no lock is taken */
	bool checked_reads;    /* else each sample first checks whose memory it would read */
	bool ancestor_cgroups; /* 5.15 (95b861a7935b): else cgroups are found from the task's css_set */
};

/* Fills *features. Needs the privilege to load programs; a feature that cannot be probed counts as missing. */
void kernel_probe_features(struct kernel_features *features);

/*
 * Returns whether samples may be taken by the CPU's cycles, which come as NMIs. Without checked_reads each sample must
 * be able to check whose memory it would read.
 */
bool kernel_takes_cycles(const struct kernel_features *features);

/*
 * Reports why a run cannot be that takes bpf_loop and task_regs. what, for the message: who needs them, with "needs" or
 * "need"; without: the names of features that were switched off, or NULL. Returns -ENOTSUP.
 */
int kernel_refuse_without_loop(const char *what, const char *without);

/*
 * Switches features off by a comma-separated list of their names ("bpf_loop,task_storage"), so that one kernel can
 * run what an older one would. Returns 0, or -EINVAL for an unknown name.
 */
int kernel_disable_features(struct kernel_features *features, const char *names);

/*
 * Returns the number that this kernel gives a cgroup v1 controller, named as in /proc/PID/cgroup, or -ENOENT.
 */
int kernel_get_cgroup_subsystem(const char *controller);

#endif
