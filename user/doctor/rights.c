// SPDX-License-Identifier: Apache-2.0
/* Doctor's checks of the rights that a run keeps when it drops the others, which a child process does as a trial. */
#include "doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rights/rights.h"

struct trial {
	struct rights_left left;
	struct error error;
};

static void try_to_drop(struct trial *trial)
{
	const struct rights_wanted wanted = {.level = RIGHTS_SAMPLE};

	error_clear(&trial->error);
	rights_drop(&wanted, &trial->error);
	rights_read(&trial->left);
}

/* Drops the rights in a child process, and reads those left. Returns false if that failed; *item then says why. */
static bool left_by_run(struct rights_left *left, struct doctor_item *item)
{
	struct trial trial = {.error = {.code = -EIO, .text = "the trial ended early"}};
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC)) {
		doctor_found(item, DOCTOR_SKIP, "not tried: %s", strerror(errno));
		return false;
	}
	pid = fork();
	if (pid == 0) {
		try_to_drop(&trial);
		_exit(write(ends[1], &trial, sizeof(trial)) == (ssize_t)sizeof(trial) ? 0 : 1);
	}
	close(ends[1]);
	if (pid > 0 && read(ends[0], &trial, sizeof(trial)) != (ssize_t)sizeof(trial))
		error_set(&trial.error, -EIO, "the trial ended early");
	close(ends[0]);
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	*left = trial.left;
	if (!trial.error.code)
		return true;
	doctor_found(item, DOCTOR_FAIL, "%s", trial.error.text);
	doctor_advise(item, "pybpf does not run with rights that it cannot give up; a container's seccomp filter may "
			    "be the reason");
	return false;
}

static void look_capabilities(const struct doctor *d, struct doctor_item *item)
{
	struct rights_left left;
	char names[192];

	(void)d;
	if (!left_by_run(&left, item))
		return;
	rights_name(left.capabilities, names, sizeof(names));
	doctor_found(item, DOCTOR_OK, "%s", names);
}

static void look_new(const struct doctor *d, struct doctor_item *item)
{
	struct rights_left left;

	(void)d;
	if (!left_by_run(&left, item))
		return;
	doctor_found(item, left.no_new_privs ? DOCTOR_OK : DOCTOR_WARN, "%s; %s",
		     left.no_new_privs ? "none can be had (no_new_privs)" : "no_new_privs is not set",
		     left.bounding ? "the bounding set stays, for emptying it takes CAP_SETPCAP"
				   : "the bounding set is empty");
}

static void look_filter(const struct doctor *d, struct doctor_item *item)
{
	struct rights_left left;

	(void)d;
	if (!left_by_run(&left, item))
		return;
	if (left.filtered) {
		doctor_found(item, DOCTOR_OK, "a filter (seccomp) refuses what a run does not need");
		return;
	}
	doctor_found(item, DOCTOR_WARN, "not filtered: this kernel has no seccomp filters");
	doctor_advise(item, "use a kernel built with CONFIG_SECCOMP_FILTER=y");
}

static void look_landlock(const struct doctor *d, struct doctor_item *item)
{
	int version = rights_landlock_version();

	(void)d;
	if (version > 0)
		doctor_found(item, DOCTOR_OK, "by Landlock (version %d), into the folders of -o and --json-stats only",
			     version);
	else if (version == -EOPNOTSUPP)
		doctor_found(item, DOCTOR_WARN, "not confined: Landlock is built into this kernel, but switched off");
	else
		doctor_found(item, DOCTOR_WARN, "not confined: no Landlock (%s)", strerror(-version));
	if (version == -EOPNOTSUPP)
		doctor_advise(item, "boot with landlock in the kernel's parameter lsm=");
	else if (version <= 0)
		doctor_advise(item, "it comes with Linux 5.13 and CONFIG_SECURITY_LANDLOCK=y");
}

const struct doctor_check doctor_rights_checks[] = {
	{"rights kept", look_capabilities},
	{"further rights", look_new},
	{"system calls", look_filter},
	{"putting files", look_landlock},
	{0},
};
