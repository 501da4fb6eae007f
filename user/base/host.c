// SPDX-License-Identifier: Apache-2.0
/* Checks privileges, BTF and limits of this host. */
#include "base/host.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sudo.h"

/* Missing in linux/capability.h of older systems (added in Linux 5.8). */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

bool host_has_capability(int capability)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return false;
	return data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

int host_check_privilege(struct error *error)
{
	bool admin = host_has_capability(CAP_SYS_ADMIN);
	const char *missing = NULL;

	if (!admin && !host_has_capability(CAP_BPF))
		missing = "CAP_BPF (to load BPF programs)";
	else if (!admin && !host_has_capability(CAP_PERFMON))
		missing = "CAP_PERFMON (to sample on every CPU and read what is interrupted)";
	else if (!host_has_capability(CAP_SYS_PTRACE))
		missing = "CAP_SYS_PTRACE (to read other processes' mappings and memory)";
	if (!missing)
		return 0;
	return error_set(error, -EPERM, "recording needs %s, which this process does not have; run `%s`", missing,
			 sudo_command());
}

/* Inode of the initial user namespace (PROC_USER_INIT_INO, include/linux/proc_ns.h). */
#define USER_NS_INITIAL 0xEFFFFFFDu

static bool is_of_host_users(void)
{
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino == USER_NS_INITIAL;
}

/*
 * The order is that of the kernel's checks (__ptrace_may_access in kernel/ptrace.c): with CAP_SYS_PTRACE in the user
 * namespace of the other process, only security modules are left to refuse.
 */
const char *host_explain_denial(bool files)
{
	static char text[PATH_MAX + 256];
	bool ptrace = host_has_capability(CAP_SYS_PTRACE);

	if (!ptrace && geteuid()) {
		snprintf(text, sizeof(text), "; run as root, or with CAP_SYS_PTRACE%s: `%s`",
			 files ? " and CAP_CHECKPOINT_RESTORE" : "", sudo_command());
		return text;
	}
	if (!ptrace)
		return "; pybpf runs as root, but without CAP_SYS_PTRACE: give it that capability (docker run "
		       "--cap-add=SYS_PTRACE)";
	if (!is_of_host_users())
		return "; pybpf is root in a user namespace only, and not for processes outside of it: run as the "
		       "host's root";
	if (files)
		return "; CAP_SYS_PTRACE does not help: their file system (FUSE without allow_other, NFS) or a "
		       "security module keeps them from root";
	return "; CAP_SYS_PTRACE does not help: the kernel or a security module (SELinux, AppArmor, Landlock, BPF) "
	       "keeps this process from pybpf";
}

int host_check_proc(struct error *error)
{
	struct stat st;

	/* For a process outside of the PID namespace of this /proc the link leads nowhere. */
	if (!lstat("/proc/self", &st))
		return 0;
	return error_set(error, -ENOENT,
			 "processes are found through /proc, which is not mounted here: `mount -t proc proc /proc`");
}

int host_check_btf(struct error *error)
{
	if (access(HOST_BTF_PATH, R_OK) == 0)
		return 0;
	if (access("/sys/kernel", F_OK))
		return error_set(error, -ENOENT,
				 "the kernel's types are read from " HOST_BTF_PATH
				 ", and /sys is not mounted here: `mount -t sysfs sysfs /sys`");
	return error_set(error, -ENOENT,
			 "this kernel has no BTF (" HOST_BTF_PATH
			 ": %s), which pybpf needs to fit its BPF programs to it; use a kernel built with "
			 "CONFIG_DEBUG_INFO_BTF=y, as distributions have since 2020-2021",
			 strerror(errno));
}

int host_check_bpf(struct error *error)
{
	LIBBPF_OPTS(bpf_map_create_opts, options);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "pybpf_probe", 4, 8, 1, &options), err;

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	err = fd;
	if (err == -ENOSYS)
		error_set(error, err,
			  "this kernel has no bpf(2), or a seccomp filter hides it: use a kernel built with "
			  "CONFIG_BPF_SYSCALL=y, or, in a container, one that is privileged");
	else if (err == -EPERM && !is_of_host_users())
		error_set(error, err,
			  "bpf(2) is forbidden here (%s): pybpf has its capabilities in a user namespace only, and the "
			  "kernel asks for those of the host: run it on the host, or in a container without a user "
			  "namespace of its own",
			  strerror(EPERM));
	else if (err == -EPERM)
		error_set(
			error, err,
			"bpf(2) is forbidden here (%s) though the capabilities are there: kernel lockdown, an LSM or a "
			"container's seccomp filter may be the reason; see `pybpf doctor`",
			strerror(EPERM));
	else
		error_set(error, err, "bpf(2) does not work here: creating a map failed (%s)", strerror(-err));
	return err;
}

/* Inode of the initial PID namespace (PROC_PID_INIT_INO, include/linux/proc_ns.h). */
#define PID_NS_INITIAL 0xEFFFFFFCu

uint32_t host_pid_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) || st.st_ino == PID_NS_INITIAL)
		return 0;
	return (uint32_t)st.st_ino;
}

/* Inode of the initial time namespace (PROC_TIME_INIT_INO, include/linux/proc_ns.h). */
#define TIME_NS_INITIAL 0xEFFFFFFAu

int host_read_clock_offsets(struct host_clock_offsets *out)
{
	long long seconds, nanoseconds;
	struct stat st;
	char clock[16];
	FILE *f;

	*out = (struct host_clock_offsets){0};
	/* timens_offsets has the offsets of the namespace for children, which is not always this process's own. */
	if (stat("/proc/self/ns/time", &st) || st.st_ino == TIME_NS_INITIAL)
		return 0;
	f = fopen("/proc/self/timens_offsets", "re");
	if (!f)
		return -errno;
	while (fscanf(f, "%15s %lld %lld", clock, &seconds, &nanoseconds) == 3) {
		int64_t offset = seconds * 1000000000 + nanoseconds;

		if (!strcmp(clock, "monotonic"))
			out->monotonic = offset;
		else if (!strcmp(clock, "boottime"))
			out->boottime = offset;
	}
	fclose(f);
	return 0;
}

int host_read_number(const char *path, int64_t *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[32], *end;
	long long number;
	ssize_t n;

	if (fd < 0)
		return -errno;
	/*
	 * Reads in one call: a second read() finds the end, and a stream without memory for a buffer would see one
	 * digit.
	 */
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	number = strtoll(text, &end, 10);
	if (end == text)
		return -EBADMSG;
	*out = number;
	return 0;
}

int64_t host_max_sample_rate(void)
{
	int64_t rate = INT64_MAX;

	(void)host_read_number("/proc/sys/kernel/perf_event_max_sample_rate", &rate);
	return rate;
}

const char *host_explain_event_denial(int err)
{
	static char text[256];
	int64_t level = 0;

	if (err != -EACCES || host_has_capability(CAP_SYS_ADMIN) || host_read_number(HOST_PARANOID_PATH, &level) ||
	    level <= 2)
		return "";
	snprintf(text, sizeof(text),
		 "; this kernel asks for CAP_SYS_ADMIN, as kernel.perf_event_paranoid is %" PRId64
		 ": `sysctl kernel.perf_event_paranoid=2`, or give that capability, too",
		 level);
	return text;
}

void host_raise_descriptors(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

const char *host_advise(int err)
{
	static char text[128];
	struct rlimit limit;

	if (err != -EMFILE || getrlimit(RLIMIT_NOFILE, &limit))
		return "; see `pybpf doctor`";
	snprintf(text, sizeof(text), "; the limit is %llu: raise it by `ulimit -Hn`, or --ulimit nofile=1024 of docker",
		 (unsigned long long)limit.rlim_cur);
	return text;
}
