// SPDX-License-Identifier: Apache-2.0
/* Gives up capabilities, then applies Landlock and the filter of system calls. */
#include "rights/rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <linux/securebits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rights/internal.h"

/* Number of capabilities that the kernel has room for (two words of linux/capability.h); Linux 6.18 has 41. */
#define CAPABILITIES    64
#define BIT(capability) (UINT64_C(1) << (capability))
/* The user and group whom files of unmapped users seem to belong to (kernel.overflowuid): nobody, nogroup. */
#define NOBODY 65534

/*
 * Returns whether bpf(2) needs CAP_BPF even to use an open map: before Linux 5.19 (commit c8644cd0efe7) it does where
 * kernel.unprivileged_bpf_disabled is set. To be called without the capability. The descriptor is invalid, which the
 * kernel checks later than the capability.
 */
static bool bpf_needs_capability(const struct rights_wanted *wanted)
{
	union bpf_attr attr = {.map_fd = UINT32_MAX};

	(void)wanted;
	return syscall(SYS_bpf, BPF_MAP_GET_NEXT_KEY, &attr, sizeof(attr)) && errno == EPERM;
}

static bool makes_maps(const struct rights_wanted *wanted)
{
	return wanted->makes_maps;
}

/* Returns whether /proc hides processes: every PID namespace has a process 1. To be called without the capability. */
static bool proc_hides(const struct rights_wanted *wanted)
{
	(void)wanted;
	return access("/proc/1/stat", F_OK) != 0;
}

/*
 * Returns whether events of a CPU take more than CAP_PERFMON: as with kernel.perf_event_paranoid at 3, which is
 * Debian's own and asks for CAP_SYS_ADMIN. To be called without that.
 */
static bool perfmon_is_too_little(const struct rights_wanted *wanted)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .disabled = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	(void)wanted;
	if (fd >= 0)
		close(fd);
	return fd < 0;
}

static bool has_command(const struct rights_wanted *wanted)
{
	return wanted->command;
}

static bool overrides(const struct rights_wanted *wanted)
{
	return wanted->override;
}

static bool is_sticky(const struct rights_wanted *wanted)
{
	return wanted->sticky;
}

/*
 * All capabilities that are kept, and why. What samples needs no CAP_PERFMON: events are open, and attached programs do
 * not run with the rights of a process.
 */
static const struct {
	int capability;
	unsigned levels;
	/* NULL: always kept. Called while the effective set has only the capabilities that are always kept. */
	bool (*needed)(const struct rights_wanted *wanted);
	int stand_in; /* a capability that includes it; kept if only that was given. 0: none */
} kept[] = {
	/* process_vm_readv(2) and /proc/PID/{maps,root,exe,cwd} of other users' processes. */
	{CAP_SYS_PTRACE, RIGHTS_IN(RIGHTS_FORKSERVER) | RIGHTS_IN(RIGHTS_HELPER), NULL, 0},
	/* Stops processes of other users by ptrace(2). */
	{CAP_SYS_PTRACE, RIGHTS_IN(RIGHTS_FREEZE), NULL, 0},
	/* /proc/PID of every process, where /proc hides those of other users (hidepid). */
	{CAP_SYS_PTRACE, RIGHTS_IN(RIGHTS_SAMPLE) | RIGHTS_IN(RIGHTS_LIST), proc_hides, 0},
	/* /proc/PID/map_files: a mapped file that was deleted or replaced. */
	{CAP_CHECKPOINT_RESTORE, RIGHTS_IN(RIGHTS_FORKSERVER) | RIGHTS_IN(RIGHTS_HELPER), NULL, 0},
	/* Programs, libraries and containers' state in folders that only their user may enter, and map_files itself. */
	{CAP_DAC_READ_SEARCH, RIGHTS_IN(RIGHTS_FORKSERVER) | RIGHTS_IN(RIGHTS_HELPER), NULL, 0},
	/* Sources are opened as the user whose program ran them. */
	{CAP_SETUID, RIGHTS_IN(RIGHTS_FORKSERVER) | RIGHTS_IN(RIGHTS_HELPER), NULL, 0},
	{CAP_SETGID, RIGHTS_IN(RIGHTS_FORKSERVER) | RIGHTS_IN(RIGHTS_HELPER), NULL, 0},
	/* Reading the maps. */
	{CAP_BPF, RIGHTS_IN(RIGHTS_SAMPLE), bpf_needs_capability, CAP_SYS_ADMIN},
	/* Making maps, in which --native has tables of the files that programs map. */
	{CAP_BPF, RIGHTS_IN(RIGHTS_SAMPLE), makes_maps, CAP_SYS_ADMIN},
	/* Perf events of a CPU, and attaching the programs that are loaded to them. */
	{CAP_PERFMON, RIGHTS_IN(RIGHTS_OPEN), NULL, 0},
	{CAP_BPF, RIGHTS_IN(RIGHTS_OPEN), NULL, 0},
	{CAP_SYS_ADMIN, RIGHTS_IN(RIGHTS_OPEN), perfmon_is_too_little, 0},
	/* Signals for a command that runs as another user; the filter lets it be sent to no other process. */
	{CAP_KILL, RIGHTS_IN(RIGHTS_SAMPLE), has_command, 0},
	/* Writing to the folder of the user who called sudo, which is not root's. */
	{CAP_DAC_OVERRIDE, RIGHTS_IN(RIGHTS_COMMIT), overrides, 0},
	/* In a sticky folder of another user, a file that replaces another user's is renamed. */
	{CAP_FOWNER, RIGHTS_IN(RIGHTS_COMMIT), is_sticky, 0},
};

static int read_sets(uint64_t *permitted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	*permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	return 0;
}

static int write_sets(uint64_t permitted, uint64_t effective)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
		{.permitted = (uint32_t)permitted, .effective = (uint32_t)effective},
		{.permitted = (uint32_t)(permitted >> 32), .effective = (uint32_t)(effective >> 32)},
	};

	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static void empty_bounding_set(void)
{
	for (int c = 0; c < CAPABILITIES && prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
}

/*
 * Empties the ambient and the bounding set and locks the securebits, which outlive a change of the other sets. This
 * takes CAP_SETPCAP; without it there is little that they could give.
 */
static void empty_other_sets(void)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
				   SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
				   SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	empty_bounding_set();
	prctl(PR_SET_SECUREBITS, bits, 0, 0, 0);
}

static int drop_capabilities(const struct rights_wanted *wanted)
{
	uint64_t had = 0, keep = 0;
	int err = read_sets(&had);

	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		if (kept[i].levels & RIGHTS_IN(wanted->level) && !kept[i].needed)
			keep |= BIT(kept[i].capability) & had;
	}
	err = err ?: write_sets(had, keep);
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept) && !err; i++) {
		if (!(kept[i].levels & RIGHTS_IN(wanted->level)) || !kept[i].needed || !kept[i].needed(wanted))
			continue;
		if (had & BIT(kept[i].capability))
			keep |= BIT(kept[i].capability);
		else if (kept[i].stand_in)
			keep |= BIT(kept[i].stand_in) & had;
	}
	return err ?: write_sets(keep, keep);
}

static int confine_files(const struct rights_wanted *wanted)
{
	if (wanted->level == RIGHTS_COMMIT || wanted->level == RIGHTS_KEEP)
		return rights_landlock_restrict(wanted->folders, wanted->nr_folders, wanted->level == RIGHTS_KEEP);
	return wanted->level == RIGHTS_NETWORK ? rights_landlock_read_settings() : 0;
}

int rights_drop(const struct rights_wanted *wanted, struct error *error)
{
	int err;

	empty_other_sets();
	err = drop_capabilities(wanted);
	if (err)
		return error_set(error, err, "cannot give up capabilities: %s", strerror(-err));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
		err = -errno;
		return error_set(error, err, "cannot set no_new_privs: %s", strerror(-err));
	}
	/* A kernel may be built without these two; what is given up above does not depend on them. */
	err = confine_files(wanted);
	if (err && err != -ENOSYS && err != -EOPNOTSUPP)
		return error_set(error, err, "cannot confine the use of files by Landlock: %s", strerror(-err));
	err = rights_filter_install(wanted);
	if (err && err != -ENOSYS && err != -EINVAL)
		return error_set(error, err, "cannot install the filter of system calls: %s", strerror(-err));
	return 0;
}

int rights_become_nobody(struct error *error)
{
	int err = 0;

	/* Another user cannot empty them any more. */
	empty_other_sets();
	if (!geteuid() &&
	    (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		err = -errno;
	/* With these securebits, a change of the user leaves the capabilities as they are. */
	err = err ?: write_sets(0, 0);
	/* Other processes of that user cannot look into this one either. */
	if (!err && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		err = -errno;
	if (!err)
		return 0;
	return error_set(error, err, "cannot become the user and group %d, who have no rights: %s", NOBODY,
			 strerror(-err));
}

int rights_empty(void)
{
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return -errno;
	return write_sets(0, 0);
}

void rights_read(struct rights_left *left)
{
	*left = (struct rights_left){0};
	if (read_sets(&left->capabilities))
		left->capabilities = UINT64_MAX;
	for (int c = 0; c < CAPABILITIES; c++) {
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1)
			left->bounding |= BIT(c);
	}
	left->no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
	/* 2: SECCOMP_MODE_FILTER. */
	left->filtered = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2;
}

void rights_name(uint64_t capabilities, char *out, size_t out_size)
{
	static const char *const names[] = {
		[CAP_DAC_OVERRIDE] = "CAP_DAC_OVERRIDE",
		[CAP_DAC_READ_SEARCH] = "CAP_DAC_READ_SEARCH",
		[CAP_FOWNER] = "CAP_FOWNER",
		[CAP_KILL] = "CAP_KILL",
		[CAP_SYS_PTRACE] = "CAP_SYS_PTRACE",
		[CAP_SYS_ADMIN] = "CAP_SYS_ADMIN",
		[CAP_BPF] = "CAP_BPF",
		[CAP_CHECKPOINT_RESTORE] = "CAP_CHECKPOINT_RESTORE",
	};
	size_t at = 0;

	snprintf(out, out_size, "none");
	for (size_t c = 0; c < CAPABILITIES && at < out_size; c++) {
		const char *comma = at ? ", " : "";

		if (!(capabilities & BIT(c)))
			continue;
		if (c < sizeof(names) / sizeof(*names) && names[c])
			at += (size_t)snprintf(out + at, out_size - at, "%s%s", comma, names[c]);
		else
			at += (size_t)snprintf(out + at, out_size - at, "%scapability %zu", comma, c);
	}
}
