// SPDX-License-Identifier: Apache-2.0
/*
 * What questions about a process, and about a user's processes, have cost. Who costs too much is not asked about for a
 * while: others wait meanwhile. What was used is forgotten with time, for a run can take days, and each machine is slow
 * at some hour.
 */
#include <stdlib.h>

#include <uthash.h>

#include "foreign/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"

/* Of one process a question without an answer is enough; so many are of one user, less what is forgotten meanwhile. */
#define USER_VAIN  7.5
#define VAIN_PER_S 0.05
/*
 * The one who asks waits for a short answer. So many seconds all those about one process, and about one user's, may be
 * blocked in it, by memory or a file that is slow to come. Time for which the helper runs or waits for a CPU is not
 * meant, for that is the machine's load.
 */
#define PROCESS_BLOCKED_S 1.0
#define USER_BLOCKED_S    2.0
#define BLOCKED_PER_S     0.05
#define USED_PER_S        0.1
/* So long nobody asks about them then. */
#define PAUSE_S 60

/* A number that goes back to 0 by so much a second. */
struct leak {
	double value, at;
};

struct process {
	pid_t pid;
	uint64_t start; /* clock ticks since boot */
	bool displaced; /* it has to wait for the slow lane */
	struct leak blocked;
	double until; /* it is not asked about */
	bool said;
	UT_hash_handle hh;
};

struct user {
	uid_t uid;
	struct leak used, vain, blocked;
	double until;
	bool said;
	UT_hash_handle hh;
};

static struct process *processes;
static struct user *users;
static double last_until; /* nobody is left alone longer */

static double left_of(const struct leak *leak, double per_s)
{
	double left = leak->value - per_s * (clock_s(CLOCK_MONOTONIC) - leak->at);

	return left > 0 ? left : 0;
}

/* Returns what it is then. */
static double add(struct leak *leak, double per_s, double more)
{
	leak->value = left_of(leak, per_s) + more;
	leak->at = clock_s(CLOCK_MONOTONIC);
	return leak->value;
}

static struct process *find_process(pid_t pid)
{
	struct procfs_stat stat;
	struct process *process;

	HASH_FIND_INT(processes, &pid, process);
	if (!process || (!procfs_stat(pid, &stat) && stat.start_time == process->start))
		return process;
	/* Another process has its PID by now. */
	HASH_DEL(processes, process);
	free(process);
	return NULL;
}

static struct process *need_process(pid_t pid)
{
	struct process *process = find_process(pid);
	struct procfs_stat stat;

	if (process || !pid || procfs_stat(pid, &stat))
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->start = stat.start_time;
	HASH_ADD_INT(processes, pid, process);
	if (process->hh.tbl)
		return process;
	free(process);
	return NULL;
}

static struct user *find_user(pid_t pid, uid_t *uid)
{
	struct procfs_status status;
	struct user *user;

	if (!pid || procfs_status(pid, &status)) {
		*uid = (uid_t)-1;
		return NULL;
	}
	*uid = status.uid;
	HASH_FIND_INT(users, uid, user);
	return user;
}

static struct user *need_user(pid_t pid)
{
	uid_t uid;
	struct user *user = find_user(pid, &uid);

	if (user || uid == (uid_t)-1)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = uid;
	HASH_ADD_INT(users, uid, user);
	if (user->hh.tbl)
		return user;
	free(user);
	return NULL;
}

void foreign_accounts_free(void)
{
	struct process *process, *next;
	struct user *user, *next_user;

	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_ITER (hh, processes, process, next) {
		HASH_DEL(processes, process);
		free(process);
	}
	HASH_ITER (hh, users, user, next_user) {
		HASH_DEL(users, user);
		free(user);
	}
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
}

double foreign_used(uid_t uid)
{
	const struct user *user;

	HASH_FIND_INT(users, &uid, user);
	return user ? left_of(&user->used, USED_PER_S) : 0;
}

bool foreign_any_used(void)
{
	return users;
}

bool foreign_is_given_up(pid_t pid)
{
	const struct process *process;
	double now = clock_s(CLOCK_MONOTONIC);
	const struct user *user;
	uid_t uid;

	if (last_until <= now)
		return false;
	process = find_process(pid);
	if (process && process->until > now)
		return true;
	user = find_user(pid, &uid);
	return user && user->until > now;
}

bool foreign_is_displaced(pid_t pid)
{
	const struct process *process = processes ? find_process(pid) : NULL;

	return process && process->displaced;
}

void foreign_displace(pid_t pid)
{
	struct process *process = need_process(pid);

	if (process)
		process->displaced = true;
}

static void leave_alone(double *until)
{
	*until = last_until = clock_s(CLOCK_MONOTONIC) + PAUSE_S;
}

static void give_up_process(struct process *process)
{
	struct procfs_stat stat;

	leave_alone(&process->until);
	process->blocked = (struct leak){0};
	if (!process->said && !procfs_stat(process->pid, &stat))
		log_warn("process %d (%s) is not looked at for %d s: its memory or its files are slow to read, and "
			 "names "
			 "and lines of its code may be missing",
			 process->pid, stat.comm, PAUSE_S);
	process->said = true;
}

/* Root's processes can hold up pybpf by other means. */
static void give_up_user(struct user *user)
{
	leave_alone(&user->until);
	user->vain = user->blocked = (struct leak){0};
	if (!user->said)
		log_warn("processes of user %u are not looked at for %d s: memory or files of some are slow to read, "
			 "and "
			 "names and lines of their code may be missing",
			 user->uid, PAUSE_S);
	user->said = true;
}

void foreign_charge_used(pid_t pid, double spent_s)
{
	struct user *user = need_user(pid);

	if (user)
		add(&user->used, USED_PER_S, spent_s);
}

void foreign_charge_blocked(pid_t pid, double blocked_s)
{
	struct process *process = need_process(pid);
	struct user *user = need_user(pid);

	if (process && add(&process->blocked, BLOCKED_PER_S, blocked_s) >= PROCESS_BLOCKED_S)
		give_up_process(process);
	if (user && user->uid && add(&user->blocked, BLOCKED_PER_S, blocked_s) >= USER_BLOCKED_S)
		give_up_user(user);
}

void foreign_charge_vain(pid_t pid)
{
	struct process *process = need_process(pid);
	struct user *user = need_user(pid);

	if (process)
		leave_alone(&process->until);
	if (user && user->uid && add(&user->vain, VAIN_PER_S, 1) >= USER_VAIN)
		give_up_user(user);
}
