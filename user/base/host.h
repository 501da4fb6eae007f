// SPDX-License-Identifier: Apache-2.0
/* Tells what this host offers: privileges, BTF, limits. Changes nothing. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The file with the kernel's own types (BTF). */
#define HOST_BTF_PATH        "/sys/kernel/btf/vmlinux"
#define HOST_MAX_RATE_SYSCTL "kernel.perf_event_max_sample_rate"
#define HOST_PARANOID_PATH   "/proc/sys/kernel/perf_event_paranoid"

/* Returns whether this process has the capability (CAP_* of linux/capability.h) in its effective set. */
bool host_has_capability(int capability);

/*
 * Checks the privileges that recording needs: CAP_BPF and CAP_PERFMON (5.8+) or CAP_SYS_ADMIN, and CAP_SYS_PTRACE.
 * Returns 0, or -EPERM with a sentence in *error that names the missing ones.
 */
int host_check_privilege(struct error *error);

/*
 * Returns why this process was denied the mappings of another process, or (files) one of the files that another maps,
 * and what to do: it follows the error's name in a sentence.
 */
const char *host_explain_denial(bool files);

/* Checks that /proc is mounted. Returns 0, or -ENOENT with a sentence in *error. */
int host_check_proc(struct error *error);

/* Checks that the kernel has BTF, which CO-RE needs. Returns 0, or -ENOENT with a sentence in *error. */
int host_check_btf(struct error *error);

/* Checks that bpf(2) works; needs the privilege. Returns 0, or negative errno with a sentence in *error. */
int host_check_bpf(struct error *error);

/* Returns the inode of this process's PID namespace, or 0 if that is the host's initial one. */
uint32_t host_pid_namespace(void);

/* Nanoseconds that this process's time namespace adds to the clocks; 0 in the host's initial one. */
struct host_clock_offsets {
	int64_t monotonic, boottime;
};

/* Reads the offsets of the clocks. Returns 0 or negative errno. */
int host_read_clock_offsets(struct host_clock_offsets *out);

/*
 * Raises the limit of descriptors to its maximum, if it can be: a report may open hundreds of profiles at once, and a
 * run has three descriptors for each CPU and session. The usual limit of 1,024 exists for programs that use select(2).
 * Programs that are started later have it, too.
 */
void host_raise_descriptors(void);

/*
 * Returns what to do after the kernel has refused something with this negative errno: to raise the limit of descriptors
 * after -EMFILE, and to ask `pybpf doctor` after any other. Begins with a semicolon; valid until the next call.
 */
const char *host_advise(int err);
/*
 * Returns what to do if perf_event_open(2) has failed with -EACCES for events of a CPU, "; " before it, or "". Debian's
 * and Ubuntu's kernels ask for CAP_SYS_ADMIN where kernel.perf_event_paranoid is more than 2, which it is there by
 * default; others have no such value.
 */
const char *host_explain_event_denial(int err);
/* Reads a number from a file such as a sysctl's. Returns 0 or negative errno. */
int host_read_number(const char *path, int64_t *out);

/*
 * Returns the kernel's limit on sampling rates in Hz (sysctl kernel.perf_event_max_sample_rate), or INT64_MAX when it
 * is unknown.
 */
int64_t host_max_sample_rate(void);

#endif
