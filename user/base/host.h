// SPDX-License-Identifier: Apache-2.0
/* What this host offers: privileges, BTF, limits. Asks; changes nothing. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Where the kernel says what types it was built with. */
#define HOST_BTF_PATH        "/sys/kernel/btf/vmlinux"
#define HOST_MAX_RATE_SYSCTL "kernel.perf_event_max_sample_rate"

/* Does this process have the capability in its effective set? (CAP_* of linux/capability.h) */
bool host_has_capability(int capability);

/*
 * The privileges that recording needs: CAP_BPF and CAP_PERFMON (5.8+) or CAP_SYS_ADMIN, and CAP_SYS_PTRACE. Returns 0,
 * or -EPERM with a sentence in *error that names what is missing.
 */
int host_check_privilege(struct error *error);

/* CO-RE needs the kernel's types. Returns 0, or -ENOENT with a sentence in *error. */
int host_check_btf(struct error *error);

/* Does bpf(2) work? Returns 0, or negative errno with a sentence in *error. Needs the privilege. */
int host_check_bpf(struct error *error);

/* The inode of this process's PID namespace; 0 for the host's own, which is the first. */
uint32_t host_pid_namespace(void);

/* What this process's time namespace adds to the clocks, in nanoseconds; 0 in the host's own. */
struct host_clock_offsets {
	int64_t monotonic, boottime;
};

/* Returns 0 or negative errno. */
int host_read_clock_offsets(struct host_clock_offsets *out);

/* Reads a number from a file such as a sysctl's. Returns 0 or negative errno. */
int host_read_number(const char *path, int64_t *out);

/* The kernel's limit on sampling rates in Hz (sysctl kernel.perf_event_max_sample_rate); INT64_MAX when unknown. */
int64_t host_max_sample_rate(void);

#endif
