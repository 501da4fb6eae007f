// SPDX-License-Identifier: Apache-2.0
/*
 * Accounts of what questions about each process, and about each user's processes, have cost. A process or user that
 * costs too much is not asked about for a while, since others wait meanwhile. The cost is forgotten with time, because
 * a run can take days and each machine is slow at some hour.
 */
#include "helper/internal.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/procfs.h"

/*
 * One question without an answer is enough to give up a process; this many, less TIMEOUTS_PER_S per second, give up its
 * user.
 */
#define USER_TIMEOUTS  7.5
#define TIMEOUTS_PER_S 0.05
/*
 * The asking process waits for a short answer. These are the seconds for which all such questions about one process,
 * and about one user's processes, may block it because memory or a file is slow to come. Time for which the helper runs
 * or waits for a CPU does not count: it is the machine's load.
 */
#define PROCESS_BLOCKED_S 1.0
#define USER_BLOCKED_S    2.0
#define BLOCKED_PER_S     0.05
#define USED_PER_S        0.1
/* Seconds for which a process or user is then not asked about. */
#define PAUSE_S 60

/* A number that falls to 0 at a constant rate per second. */
struct leak {
	double value, at;
};

struct process {
	pid_t pid;
	uint64_t start; /* clock ticks since boot */
	bool displaced; /* it has to wait for the slow worker */
	struct leak blocked;
	double until; /* not asked about until then, CLOCK_MONOTONIC seconds */
	bool said;
};

struct user {
	uid_t uid;
	struct leak used, timeouts, blocked;
	double until;
	bool said;
};

static struct intern processes = INTERN_INIT(sizeof(struct process), sizeof(pid_t));
static struct intern users = INTERN_INIT(sizeof(struct user), sizeof(uid_t));
static double last_until; /* the latest of all `until` */

static double left_of(const struct leak *leak, double per_s)
{
	double left = leak->value - per_s * (clock_s(CLOCK_MONOTONIC) - leak->at);

	return left > 0 ? left : 0;
}

/* Adds to the number. Returns its new value. */
static double add(struct leak *leak, double per_s, double more)
{
	leak->value = left_of(leak, per_s) + more;
	leak->at = clock_s(CLOCK_MONOTONIC);
	return leak->value;
}

/* Returns the account of the process, or NULL. It is valid until another is added, as a user's is. */
static struct process *find_process(pid_t pid)
{
	uint32_t i = intern_find(&processes, &pid);
	struct procfs_stat stat;
	struct process *process;

	if (i == INTERN_NONE)
		return NULL;
	process = intern_item(&processes, i);
	if (!procfs_read_stat(pid, &stat) && stat.start_time == process->start)
		return process;
	/* Another process has its PID by now. */
	intern_remove(&processes, i);
	return NULL;
}

static struct process *need_process(pid_t pid)
{
	struct process *process = find_process(pid), added = {.pid = pid};
	struct procfs_stat stat;
	bool fresh;
	uint32_t i;

	if (process || !pid || procfs_read_stat(pid, &stat))
		return process;
	added.start = stat.start_time;
	i = intern_add(&processes, &added, &fresh);
	return i == INTERN_NONE ? NULL : intern_item(&processes, i);
}

static struct user *find_user(pid_t pid, uid_t *uid)
{
	struct procfs_status status;
	uint32_t i;

	if (!pid || procfs_read_status(pid, &status)) {
		*uid = (uid_t)-1;
		return NULL;
	}
	*uid = status.uid;
	i = intern_find(&users, uid);
	return i == INTERN_NONE ? NULL : intern_item(&users, i);
}

static struct user *need_user(pid_t pid)
{
	uid_t uid;
	struct user *user = find_user(pid, &uid);
	bool fresh;
	uint32_t i;

	if (user || uid == (uid_t)-1)
		return user;
	i = intern_add(&users, &(struct user){.uid = uid}, &fresh);
	return i == INTERN_NONE ? NULL : intern_item(&users, i);
}

void helper_accounts_free(void)
{
	intern_free(&processes);
	intern_free(&users);
}

double helper_user_cost_s(uid_t uid)
{
	uint32_t i = intern_find(&users, &uid);

	return i == INTERN_NONE ? 0 : left_of(&((struct user *)intern_item(&users, i))->used, USED_PER_S);
}

bool helper_any_user_cost(void)
{
	return users.count;
}

bool helper_is_given_up(pid_t pid)
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

bool helper_is_displaced(pid_t pid)
{
	const struct process *process = processes.count ? find_process(pid) : NULL;

	return process && process->displaced;
}

void helper_displace(pid_t pid)
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
	if (!process->said && !procfs_read_stat(process->pid, &stat))
		log_warn("process %d (%s) is not looked at for %d s: its memory or its files are slow to read, and "
			 "names and lines of its code may be missing",
			 process->pid, stat.comm, PAUSE_S);
	process->said = true;
}

/* A user other than root is given up: root's processes can hold up pybpf by other means. */
static void give_up_user(struct user *user)
{
	leave_alone(&user->until);
	user->timeouts = user->blocked = (struct leak){0};
	if (!user->said)
		log_warn("processes of user %u are not looked at for %d s: memory or files of some are slow to read, "
			 "and names and lines of their code may be missing",
			 user->uid, PAUSE_S);
	user->said = true;
}

void helper_charge_used(pid_t pid, double spent_s)
{
	struct user *user = need_user(pid);

	if (user)
		add(&user->used, USED_PER_S, spent_s);
}

void helper_charge_blocked(pid_t pid, double blocked_s)
{
	struct process *process = need_process(pid);
	struct user *user = need_user(pid);

	if (process && add(&process->blocked, BLOCKED_PER_S, blocked_s) >= PROCESS_BLOCKED_S)
		give_up_process(process);
	if (user && user->uid && add(&user->blocked, BLOCKED_PER_S, blocked_s) >= USER_BLOCKED_S)
		give_up_user(user);
}

void helper_charge_timeout(pid_t pid)
{
	struct process *process = need_process(pid);
	struct user *user = need_user(pid);

	if (process)
		leave_alone(&process->until);
	if (user && user->uid && add(&user->timeouts, TIMEOUTS_PER_S, 1) >= USER_TIMEOUTS)
		give_up_user(user);
}
