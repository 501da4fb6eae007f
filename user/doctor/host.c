// SPDX-License-Identifier: Apache-2.0
/* Doctor's checks that need no BPF program. */
#include "doctor/doctor.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/host.h"
#include "base/remote.h"
#include "base/sudo.h"
#include "discovery/ask.h"
#include "doctor/page_age.h"
#include "helper/helper.h"
#include "kernel/event.h"
#include "kernel/sampler.h"

/* Inodes of the initial namespaces (include/linux/proc_ns.h: PROC_PID_INIT_INO, PROC_USER_INIT_INO). */
#define PID_NS_INITIAL  0xEFFFFFFCu
#define USER_NS_INITIAL 0xEFFFFFFDu

/* What the maps of a run in CPU mode take, with some room (docs/performance.md). */
#define MAPS_BYTES    (32u << 20)
#define LOCKDOWN_PATH "/sys/kernel/security/lockdown"

/* The sampling rate of `pybpf -p PID` without -F, in Hz. */
#define DEFAULT_RATE 99

static bool kernel_at_least(int major, int minor)
{
	struct utsname host;
	int is_major, is_minor;

	if (uname(&host) || doctor_parse_release(host.release, &is_major, &is_minor))
		return false;
	return is_major > major || (is_major == major && is_minor >= minor);
}

static void look_kernel(const struct doctor *d, struct doctor_item *item)
{
	struct utsname host = {0};

	(void)d;
	uname(&host);
	doctor_found(item, DOCTOR_OK, "Linux %s", host.release);
	if (kernel_at_least(DOCTOR_KERNEL_MAJOR, DOCTOR_KERNEL_MINOR))
		return;
	item->mark = DOCTOR_FAIL;
	doctor_advise(item, "pybpf needs Linux %d.%d or newer", DOCTOR_KERNEL_MAJOR, DOCTOR_KERNEL_MINOR);
}

static void look_machine(const struct doctor *d, struct doctor_item *item)
{
	struct utsname host = {0};

	(void)d;
	uname(&host);
	doctor_found(item, DOCTOR_OK, "%s", host.machine);
	if (!strcmp(host.machine, "x86_64") || !strcmp(host.machine, "aarch64"))
		return;
	item->mark = DOCTOR_WARN;
	doctor_advise(item, "pybpf runs on x86_64 and aarch64 only");
}

static void look_btf(const struct doctor *d, struct doctor_item *item)
{
	struct error error;

	(void)d;
	doctor_found(item, DOCTOR_OK, HOST_BTF_PATH);
	if (!host_check_btf(&error))
		return;
	doctor_found(item, DOCTOR_FAIL, "none");
	doctor_advise(item, "%s", error.text);
}

static void look_capability(struct doctor_item *item, int capability, const char *setcap, const char *purpose)
{
	bool by_admin = capability != CAP_SYS_PTRACE && host_has_capability(CAP_SYS_ADMIN);

	if (host_has_capability(capability)) {
		doctor_found(item, DOCTOR_OK, "yes");
	} else if (by_admin) {
		doctor_found(item, DOCTOR_OK, "through CAP_SYS_ADMIN");
	} else {
		doctor_found(item, DOCTOR_FAIL, "missing");
		doctor_advise(item, "needed %s: run `%s`, or give %s to whoever runs it", purpose, sudo_command(),
			      setcap);
	}
}

static void look_cap_bpf(const struct doctor *d, struct doctor_item *item)
{
	(void)d;
	look_capability(item, CAP_BPF, "cap_bpf", "to load BPF programs");
}

static void look_cap_perfmon(const struct doctor *d, struct doctor_item *item)
{
	(void)d;
	look_capability(item, CAP_PERFMON, "cap_perfmon", "to sample on every CPU and read what is interrupted");
}

static void look_cap_ptrace(const struct doctor *d, struct doctor_item *item)
{
	(void)d;
	look_capability(item, CAP_SYS_PTRACE, "cap_sys_ptrace", "to read other processes' mappings and memory");
}

static void look_proc(const struct doctor *d, struct doctor_item *item)
{
	(void)d;
	if (access("/proc/self/maps", R_OK) == 0) {
		doctor_found(item, DOCTOR_OK, "mounted");
		return;
	}
	doctor_found(item, DOCTOR_FAIL, "/proc/self/maps: %s", strerror(errno));
	doctor_advise(item, "processes are found through /proc: `mount -t proc proc /proc`");
}

/* Fills *item. Returns true if the namespace is the initial one or cannot be determined, false if it is another. */
static bool look_namespace(struct doctor_item *item, const char *path, uint32_t inode, const char *initial)
{
	struct stat st;

	if (stat(path, &st)) {
		doctor_found(item, DOCTOR_SKIP, "%s: %s", path, strerror(errno));
		return true;
	}
	doctor_found(item, DOCTOR_OK, "%s", initial);
	return st.st_ino == inode;
}

static void look_tracefs(const struct doctor *d, struct doctor_item *item)
{
	const char *events = kernel_find_tracepoints();

	(void)d;
	if (events) {
		doctor_found(item, DOCTOR_OK, "%s", events);
		return;
	}
	doctor_found(item, DOCTOR_WARN, "not to be seen: no --mode=memory, and no tracepoint as --event");
	doctor_advise(item, "as root, `" KERNEL_MOUNT_TRACEFS "` mounts it");
}

static void look_user_namespace(const struct doctor *d, struct doctor_item *item)
{
	(void)d;
	if (look_namespace(item, "/proc/self/ns/user", USER_NS_INITIAL, "the initial one"))
		return;
	doctor_found(item, DOCTOR_FAIL, "one of its own");
	doctor_advise(item, "the kernel takes BPF programs from the host's users only: run pybpf on the host, or in a "
			    "container without a user namespace of its own");
}

static void look_pid_namespace(const struct doctor *d, struct doctor_item *item)
{
	(void)d;
	if (look_namespace(item, "/proc/self/ns/pid", PID_NS_INITIAL,
			   "the initial one: every process of the host can be sampled"))
		return;
	doctor_found(item, DOCTOR_WARN, "one of its own: only the processes in it can be sampled");
	doctor_advise(item, "for the others, run pybpf on the host, or in a container with the host's PID namespace");
}

static void look_bpf(const struct doctor *d, struct doctor_item *item)
{
	struct error error;
	int err = host_check_bpf(&error);

	(void)d;
	if (!err) {
		doctor_found(item, DOCTOR_OK, "works");
		return;
	}
	if (err == -EPERM && !host_has_capability(CAP_BPF) && !host_has_capability(CAP_SYS_ADMIN)) {
		doctor_found(item, DOCTOR_SKIP, "not tried without CAP_BPF");
		return;
	}
	doctor_found(item, DOCTOR_FAIL, "%s", strerror(-err));
	if (err == -EPERM)
		doctor_advise(item,
			      "though the capability is there: a container's seccomp filter, a user namespace, an "
			      "LSM or kernel lockdown may forbid it");
	else
		doctor_advise(item, "%s", error.text);
}

static void look_unprivileged_bpf(const struct doctor *d, struct doctor_item *item)
{
	int64_t value;

	(void)d;
	if (host_read_number("/proc/sys/kernel/unprivileged_bpf_disabled", &value))
		doctor_found(item, DOCTOR_SKIP, "kernel.unprivileged_bpf_disabled is not to be seen");
	else
		doctor_found(item, DOCTOR_OK, "kernel.unprivileged_bpf_disabled = %" PRId64 ": irrelevant with CAP_BPF",
			     value);
}

static void look_jit(const struct doctor *d, struct doctor_item *item)
{
	int64_t value;
	int err = host_read_number("/proc/sys/net/core/bpf_jit_enable", &value);

	(void)d;
	/* The file exists in the initial network namespace only, and is readable by root only. */
	if (err == -EACCES || err == -EPERM) {
		doctor_found(item, DOCTOR_SKIP, "net.core.bpf_jit_enable is readable by root only");
	} else if (err) {
		doctor_found(item, DOCTOR_SKIP,
			     "net.core.bpf_jit_enable is not to be seen: a network namespace of its "
			     "own, or a kernel without a JIT");
	} else if (value) {
		doctor_found(item, DOCTOR_OK, "net.core.bpf_jit_enable = %" PRId64, value);
	} else {
		doctor_found(item, DOCTOR_WARN,
			     "net.core.bpf_jit_enable = 0: the kernel interprets BPF programs, each sample costs more");
		doctor_advise(item, "switch it on with `sysctl net.core.bpf_jit_enable=1`");
	}
}

static void look_memlock(const struct doctor *d, struct doctor_item *item)
{
	struct rlimit limit = {0};

	(void)d;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY)
		doctor_found(item, DOCTOR_OK, "unlimited");
	else
		doctor_found(item, DOCTOR_OK, "%llu KiB", (unsigned long long)limit.rlim_cur / 1024);
	size_t at = strlen(item->found);
	if (kernel_at_least(5, 11)) {
		snprintf(item->found + at, sizeof(item->found) - at, ": irrelevant from Linux 5.11 on");
	} else if (limit.rlim_cur != RLIM_INFINITY && !host_has_capability(CAP_SYS_RESOURCE)) {
		item->mark = limit.rlim_cur < MAPS_BYTES ? DOCTOR_FAIL : DOCTOR_WARN;
		doctor_advise(item, "before Linux 5.11 BPF memory counts against it: `ulimit -l unlimited`");
	}
}

static void look_lockdown(const struct doctor *d, struct doctor_item *item)
{
	char text[128] = "", choice[64];
	FILE *f = fopen(LOCKDOWN_PATH, "re");
	bool read = f && fgets(text, sizeof(text), f);

	(void)d;
	if (f)
		fclose(f);
	if (!read || doctor_parse_choice(text, choice, sizeof(choice))) {
		doctor_found(item, DOCTOR_OK, "none to be seen (no " LOCKDOWN_PATH ")");
		return;
	}
	doctor_found(item, DOCTOR_OK, "%s", choice);
	if (strcmp(choice, "confidentiality") != 0)
		return;
	item->mark = DOCTOR_WARN;
	doctor_advise(item, "BPF programs may not read kernel memory, so that they may be refused: the trial below "
			    "tells; boot with lockdown=integrity or without");
}

static void look_ptrace_scope(const struct doctor *d, struct doctor_item *item)
{
	int64_t scope;

	(void)d;
	if (host_read_number("/proc/sys/kernel/yama/ptrace_scope", &scope)) {
		doctor_found(item, DOCTOR_OK, "no Yama");
	} else if (scope < 3) {
		doctor_found(item, DOCTOR_OK, "kernel.yama.ptrace_scope = %" PRId64 ": irrelevant with CAP_SYS_PTRACE",
			     scope);
	} else {
		/* YAMA_SCOPE_NO_ATTACH: security/yama/yama_lsm.c refuses every process, whatever its capabilities. */
		doctor_found(item, DOCTOR_FAIL,
			     "kernel.yama.ptrace_scope = %" PRId64 ": nobody may read another process's memory", scope);
		doctor_advise(item, "it can't be lowered while the system runs: set it to 2 or less and boot again");
	}
}

static void look_remote_read(const struct doctor *d, struct doctor_item *item)
{
	uint64_t there = 1, here = 0;
	int err = remote_read(getpid(), (uint64_t)(uintptr_t)&there, &here, sizeof(here));

	(void)d;
	if (!err && here == there) {
		doctor_found(item, DOCTOR_OK, "works");
		return;
	}
	if (helper_has_no_answer(err)) {
		doctor_found(item, DOCTOR_FAIL, "not known: %s", helper_describe_error(err));
		doctor_advise(item, "a process named pybpf-helper reads for pybpf: does something kill it or stop it?");
		return;
	}
	doctor_found(item, DOCTOR_FAIL, "%s", strerror(err ? -err : EIO));
	doctor_advise(item,
		      "process_vm_readv(2) does not work even on pybpf itself: a seccomp filter may hide it, or the "
		      "kernel lacks CONFIG_CROSS_MEMORY_ATTACH");
}

static void look_rate(const struct doctor *d, struct doctor_item *item)
{
	int64_t rate = host_max_sample_rate();

	(void)d;
	if (rate == INT64_MAX) {
		doctor_found(item, DOCTOR_SKIP, HOST_MAX_RATE_SYSCTL " is not to be seen");
		return;
	}
	doctor_found(item, DOCTOR_OK, "%" PRId64 " Hz (" HOST_MAX_RATE_SYSCTL ")", rate);
	if (rate >= DEFAULT_RATE)
		return;
	item->mark = DOCTOR_WARN;
	doctor_advise(item,
		      "below the %d Hz that pybpf asks for: use -F %" PRId64 ", or `sysctl " HOST_MAX_RATE_SYSCTL
		      "=100000`",
		      DEFAULT_RATE, rate);
}

static void look_paranoid(const struct doctor *d, struct doctor_item *item)
{
	int err = kernel_probe_source(KERNEL_SOURCE_CPU_CLOCK);
	const char *advice = host_explain_event_denial(err);
	int64_t level;

	(void)d;
	if (host_read_number(HOST_PARANOID_PATH, &level)) {
		doctor_found(item, DOCTOR_SKIP, "kernel.perf_event_paranoid is not to be seen");
	} else if (!*advice) {
		doctor_found(item, DOCTOR_OK, "kernel.perf_event_paranoid = %" PRId64 ": irrelevant with CAP_PERFMON%s",
			     level, level > 2 ? " and CAP_SYS_ADMIN" : "");
	} else {
		doctor_found(item, DOCTOR_FAIL, "kernel.perf_event_paranoid = %" PRId64, level);
		doctor_advise(item, "%s", advice + strlen("; "));
	}
}

#define HOST_MOUNT                                                                                                     \
	"mount the host's root for them: `-v /:/host:ro` (docker, podman), hostPath / at /host (Kubernetes); see "     \
	"docs/containers.md"

static void look_containers(const struct doctor *d, struct doctor_item *item)
{
	struct container_names names;
	int err = discovery_ask_container_names(&names);

	(void)d;
	if (err) {
		doctor_found(item, helper_has_no_answer(err) ? DOCTOR_WARN : DOCTOR_SKIP,
			     "cannot look for containers: %s", helper_describe_error(err));
		return;
	}
	if (names.nameless) {
		doctor_found(item, DOCTOR_WARN,
			     "%zu of %zu running have no name, such as %s; runtimes' files are read below %s",
			     names.nameless, names.containers, names.example, names.root);
		doctor_advise(item, "names are in the runtimes' files; if pybpf runs in a container, " HOST_MOUNT);
		return;
	}
	if (!names.containers) {
		doctor_found(item, DOCTOR_OK, "no container is running; runtimes' files are read below %s", names.root);
		return;
	}
	doctor_found(item, DOCTOR_OK, "%zu running, each with its name; runtimes' files are read below %s",
		     names.containers, names.root);
}

const struct doctor_check doctor_host_checks[] = {
	{"kernel", look_kernel},
	{"machine", look_machine},
	{"BTF", look_btf},
	{"CAP_BPF", look_cap_bpf},
	{"CAP_PERFMON", look_cap_perfmon},
	{"CAP_SYS_PTRACE", look_cap_ptrace},
	{"/proc", look_proc},
	{"tracefs", look_tracefs},
	{"user namespace", look_user_namespace},
	{"PID namespace", look_pid_namespace},
	{"container names", look_containers},
	{"bpf(2)", look_bpf},
	{"unprivileged BPF", look_unprivileged_bpf},
	{"BPF JIT", look_jit},
	{"locked memory", look_memlock},
	{"kernel lockdown", look_lockdown},
	{"ptrace scope", look_ptrace_scope},
	{"reading memory", look_remote_read},
	{"pages", doctor_look_page_age},
	{"perf limits", look_paranoid},
	{"max sample rate", look_rate},
	{0},
};
