// SPDX-License-Identifier: Apache-2.0
/* The side that asks: one helper a lane, what each is asked, how long it has taken, and who has used up his time. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <uthash.h>

#include "foreign_internal.h"
#include "log.h"
#include "procfs.h"

/* A question that takes longer gets a lane of its own when that is free, and else has to come again. */
#define LONG_S 0.25
/* An answer that nobody came for, because the process has ended. */
#define UNCLAIMED_S 2.0
/* A process is asked about once more after a question that had no answer, for it may have been the machine's load. */
#define PROCESS_VAIN 2
/* Questions about one user's processes, root's apart, that may stay without an answer: then he is not asked about. */
#define USER_VAIN 8
/* Charged from so many seconds on: a file's first look takes some milliseconds, on a busy machine ten times as much. */
#define CHARGED_S 0.05
/*
 * The one who asks waits for a short answer. So long all those about one process, and about one user's, root's apart,
 * may be blocked in it, by memory or a file that is slow to come: then it is not asked about any more. Time for which
 * the helper runs or waits for a CPU is not meant, for that is the machine's load.
 */
#define PROCESS_BLOCKED_S 1.0
#define USER_BLOCKED_S    2.0
/* Where it is less, nobody looks whose process it is. */
#define BLOCKED_S 0.001
/* Time in which a helper waits for a CPU does not count, but for so large a part of all. */
#define LOAD_MOST 8
/* Interval between looks at pending signals. */
#define SLICE_S 0.05

struct lane {
	int fd, pidfd; /* -1: no helper */
	unsigned slot;
	bool busy;
	struct foreign_subject subject;
	foreign_service *service;
	double begin;
	pid_t pid; /* of the helper; 0: not known */
	struct foreign_head head;
	size_t have; /* of head and bytes */
	char *bytes;
	uint64_t cpu_ns, queued_ns; /* of the helper, as it last told */
};

/* A process that kept a helper waiting. */
struct slow {
	pid_t pid;
	uint64_t start; /* clock ticks since boot */
	bool displaced; /* it has to wait for the slow lane */
	unsigned vain;  /* questions without an answer */
	double blocked_s;
	UT_hash_handle hh;
};

/* What the questions about a user's processes took. */
struct user {
	uid_t uid;
	double used_s, blocked_s;
	unsigned vain;
	UT_hash_handle hh;
};

static struct {
	pid_t maker;
	int fd;
	struct foreign_notes *notes;
	struct lane lanes[FOREIGN_LANES];
	struct slow *slow;
	struct user *users;
	unsigned long unanswered;
	uint64_t cpu_ns; /* of all helpers */
	char stuck_at[FOREIGN_NOTE_MAX];
} foreign = {.fd = -1};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool is_on(void)
{
	return foreign.fd >= 0;
}

static void drop_helper(struct lane *lane)
{
	if (lane->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, lane->pidfd, SIGKILL, NULL, 0);
		close(lane->pidfd);
	}
	if (lane->fd >= 0)
		close(lane->fd);
	free(lane->bytes);
	*lane = (struct lane){.fd = -1, .pidfd = -1, .slot = lane->slot};
}

void foreign_stop(void)
{
	struct slow *slow, *next;
	struct user *user, *next_user;

	if (!is_on())
		return;
	for (size_t i = 0; i < FOREIGN_LANES; i++)
		drop_helper(&foreign.lanes[i]);
	close(foreign.fd);
	foreign.fd = -1;
	/* It has nobody to make a helper for, and ends. */
	waitpid(foreign.maker, NULL, 0);
	munmap(foreign.notes, sizeof(*foreign.notes));
	/* NOLINTBEGIN(clang-analyzer-unix.Malloc): the analyser loses sight of what HASH_DEL does to the table. */
	HASH_ITER (hh, foreign.slow, slow, next) {
		HASH_DEL(foreign.slow, slow);
		free(slow);
	}
	HASH_ITER (hh, foreign.users, user, next_user) {
		HASH_DEL(foreign.users, user);
		free(user);
	}
	/* NOLINTEND(clang-analyzer-unix.Malloc) */
}

/* Receives the two descriptors that the maker sends with one byte. */
static int receive_fds(int fds[2])
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	char byte;
	struct iovec bytes = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &bytes,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control.bytes)};
	const struct cmsghdr *rights;
	ssize_t n;

	do {
		n = recvmsg(foreign.fd, &message, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	rights = n == 1 ? CMSG_FIRSTHDR(&message) : NULL;
	if (!rights || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return n < 0 ? -errno : -ECONNRESET;
	memcpy(fds, CMSG_DATA(rights), 2 * sizeof(int));
	return 0;
}

/*
 * Seconds that the question has taken, without those for which the helper waited for a CPU, where the kernel tells
 * them (CONFIG_SCHED_INFO): a busy machine is no reason to leave a process out.
 */
static double spent_s(const struct lane *lane)
{
	double wall = now_s() - lane->begin, spent;
	unsigned long long ran_ns, queued_ns;
	struct procfs_stat stat;
	char text[96];

	if (!lane->pid || procfs_read_some(lane->pid, "schedstat", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%llu %llu", &ran_ns, &queued_ns) != 2 || procfs_stat(lane->pid, &stat))
		return wall;
	/* A wait that is not over yet is in no number. */
	if (stat.state == 'R')
		spent = ((double)ran_ns - (double)lane->cpu_ns) / 1e9;
	else
		spent = wall - ((double)queued_ns - (double)lane->queued_ns) / 1e9;
	return spent > wall / LOAD_MOST ? spent : wall / LOAD_MOST;
}

static unsigned free_slot(void)
{
	unsigned slot = 0;

	for (size_t i = 0; i < FOREIGN_LANES; i++) {
		if (foreign.lanes[i].fd >= 0 && foreign.lanes[i].slot == slot) {
			slot++;
			i = (size_t)-1;
		}
	}
	return slot;
}

static int need_helper(struct lane *lane)
{
	unsigned char slot;
	int fds[2] = {-1, -1}, err;
	uint64_t pid;

	if (lane->fd >= 0)
		return 0;
	slot = (unsigned char)free_slot();
	if (send(foreign.fd, &slot, 1, MSG_NOSIGNAL) != 1)
		return -errno;
	err = receive_fds(fds);
	if (err)
		return err;
	lane->fd = fds[0];
	lane->pidfd = fds[1];
	lane->slot = slot;
	lane->pid = procfs_fdinfo(lane->pidfd, "Pid:", &pid) ? 0 : (pid_t)pid;
	return 0;
}

int foreign_start(void)
{
	pid_t self = getpid();
	int ends[2];

	for (size_t i = 0; i < FOREIGN_LANES; i++)
		foreign.lanes[i] = (struct lane){.fd = -1, .pidfd = -1, .slot = (unsigned)i};
	/* cppcheck-suppress invalidFunctionArg; -1 is what MAP_ANONYMOUS goes with. */
	foreign.notes = mmap(NULL, sizeof(*foreign.notes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (foreign.notes == MAP_FAILED)
		return -errno;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	foreign.maker = fork();
	if (foreign.maker < 0) {
		close(ends[0]);
		close(ends[1]);
		return -errno;
	}
	if (foreign.maker == 0) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != self)
			_exit(0);
		close(ends[0]);
		foreign_make_helpers(ends[1], foreign.notes);
	}
	close(ends[1]);
	foreign.fd = ends[0];
	/* When the first process is waiting to be looked at, there is a helper. */
	return need_helper(&foreign.lanes[FOREIGN_LANE_LONG]);
}

static struct slow *find_slow(pid_t pid)
{
	struct procfs_stat stat;
	struct slow *slow;

	HASH_FIND_INT(foreign.slow, &pid, slow);
	if (!slow || (!procfs_stat(pid, &stat) && stat.start_time == slow->start))
		return slow;
	/* Another process has its PID by now. */
	HASH_DEL(foreign.slow, slow);
	free(slow);
	return NULL;
}

static struct slow *need_slow(pid_t pid)
{
	struct slow *slow = find_slow(pid);
	struct procfs_stat stat;

	if (slow || !pid || procfs_stat(pid, &stat))
		return slow;
	slow = calloc(1, sizeof(*slow));
	if (!slow)
		return NULL;
	slow->pid = pid;
	slow->start = stat.start_time;
	HASH_ADD_INT(foreign.slow, pid, slow);
	if (slow->hh.tbl)
		return slow;
	free(slow);
	return NULL;
}

static struct user *user_of(pid_t pid, bool need)
{
	struct procfs_status status;
	struct user *user;

	if ((!need && !foreign.users) || !pid || procfs_status(pid, &status))
		return NULL;
	HASH_FIND_INT(foreign.users, &status.uid, user);
	if (user || !need)
		return user;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->uid = status.uid;
	HASH_ADD_INT(foreign.users, uid, user);
	if (user->hh.tbl)
		return user;
	free(user);
	return NULL;
}

double foreign_used(uid_t uid)
{
	const struct user *user;

	HASH_FIND_INT(foreign.users, &uid, user);
	return user ? user->used_s : 0;
}

bool foreign_any_used(void)
{
	return foreign.users;
}

unsigned long foreign_unanswered(void)
{
	return foreign.unanswered;
}

double foreign_cpu_s(void)
{
	return (double)foreign.cpu_ns / 1e9;
}

const char *foreign_stuck_at(void)
{
	return foreign.stuck_at;
}

static bool is_given_up(pid_t pid)
{
	const struct slow *slow = find_slow(pid);
	const struct user *user = user_of(pid, false);

	return (slow && (slow->vain >= PROCESS_VAIN || slow->blocked_s >= PROCESS_BLOCKED_S)) ||
	       (user && user->uid && (user->vain >= USER_VAIN || user->blocked_s >= USER_BLOCKED_S));
}

static void charge(const struct lane *lane)
{
	double took = now_s() - lane->begin;
	struct user *user = took < CHARGED_S ? NULL : user_of(lane->subject.pid, true);

	if (user)
		user->used_s += took;
}

static void say_blocked(pid_t pid)
{
	struct procfs_stat stat;

	if (!procfs_stat(pid, &stat))
		log_warn("process %d (%s) is not looked at any more: its memory or its files are slow to read, and "
			 "names "
			 "and lines of its code may be missing",
			 pid, stat.comm);
}

/* A short answer is there, which was waited for. */
static void charge_blocked(const struct lane *lane)
{
	double took = now_s() - lane->begin, blocked = (double)lane->head.blocked_ns / 1e9;
	struct user *user;
	struct slow *slow;

	if (blocked < BLOCKED_S)
		return;
	blocked = blocked < took ? blocked : took;
	user = user_of(lane->subject.pid, true);
	slow = need_slow(lane->subject.pid);
	if (user)
		user->blocked_s += blocked;
	if (!slow)
		return;
	slow->blocked_s += blocked;
	if (slow->blocked_s >= PROCESS_BLOCKED_S && slow->blocked_s - blocked < PROCESS_BLOCKED_S)
		say_blocked(slow->pid);
}

/* There will be no answer: the helper is killed. at_once: it is not asked about again. */
static void give_up(struct lane *lane, bool at_once)
{
	struct slow *slow = need_slow(lane->subject.pid);
	struct user *user = user_of(lane->subject.pid, true);

	charge(lane);
	foreign.unanswered++;
	if (slow)
		slow->vain += at_once ? PROCESS_VAIN : 1;
	if (user)
		user->vain++;
	snprintf(foreign.stuck_at, sizeof(foreign.stuck_at), "%.*s", FOREIGN_NOTE_MAX - 1,
		 foreign.notes->text[lane->slot]);
	drop_helper(lane);
}

static int post(struct lane *lane, foreign_service *service, struct foreign_subject subject, const void *question,
		size_t size)
{
	const struct foreign_head head = {.service = service, .size = (uint32_t)size};
	struct {
		struct foreign_head head;
		char bytes[FOREIGN_QUESTION_MAX];
	} message = {.head = head};
	int err = size > sizeof(message.bytes) ? -E2BIG : need_helper(lane);

	if (err)
		return err;
	memcpy(message.bytes, question, size);
	lane->subject = subject;
	lane->service = service;
	lane->begin = now_s();
	lane->have = 0;
	lane->busy = true;
	/* It waits for a question, and its buffer takes a whole one. */
	if (send(lane->fd, &message, sizeof(head) + size, MSG_NOSIGNAL) == (ssize_t)(sizeof(head) + size))
		return 0;
	return -ECONNRESET;
}

/* Takes what is there. Returns 1 with the whole answer, 0 before, or negative errno. */
static int pump(struct lane *lane)
{
	for (;;) {
		size_t whole = sizeof(lane->head);
		char *to = (char *)&lane->head + lane->have;
		ssize_t n;

		if (lane->have >= sizeof(lane->head)) {
			if (lane->head.size > FOREIGN_ANSWER_MAX || lane->head.said > FOREIGN_SAID_MAX)
				return -EPROTO;
			whole += lane->head.size + lane->head.said;
			if (lane->have == whole)
				return 1;
			if (!lane->bytes)
				lane->bytes = malloc(whole - sizeof(lane->head));
			if (!lane->bytes)
				return -ENOMEM;
			to = lane->bytes + lane->have - sizeof(lane->head);
		}
		n = recv(lane->fd, to, whole - lane->have, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n <= 0)
			return -ECONNRESET;
		lane->have += (size_t)n;
	}
}

bool foreign_is_interrupted(void)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t pending;

	sigpending(&pending);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (sigismember(&pending, ends[i]))
			return true;
	}
	return false;
}

/* Returns as pump() does, or -EINTR. */
static int wait_until(struct lane *lane, double deadline)
{
	int ret = pump(lane);

	while (!ret) {
		struct pollfd fd = {.fd = lane->fd, .events = POLLIN};
		double left = deadline - now_s();

		if (left <= 0)
			break;
		if (left > SLICE_S)
			left = SLICE_S;
		poll(&fd, 1, (int)(left * 1000) + 1);
		ret = pump(lane);
		if (!ret && foreign_is_interrupted())
			return -EINTR;
	}
	return ret;
}

/* The helper's messages. */
static void say_all(const char *said, size_t size)
{
	while (size > 1) {
		size_t len = strnlen(said + 1, size - 1);

		if (*said >= LOG_ERROR && *said <= LOG_DEBUG)
			log_printf((enum log_level) * said, "%.*s", (int)len, said + 1);
		if (len + 2 > size)
			break;
		said += len + 2;
		size -= len + 2;
	}
}

/* The lane is free again. */
static int take(struct lane *lane, void *answer, size_t room, size_t *size)
{
	int result = lane->head.result;

	charge(lane);
	if (lane->head.cpu_ns > lane->cpu_ns)
		foreign.cpu_ns += lane->head.cpu_ns - lane->cpu_ns;
	lane->cpu_ns = lane->head.cpu_ns;
	lane->queued_ns = lane->head.queued_ns;
	*size = lane->head.size < room ? lane->head.size : room;
	if (*size)
		memcpy(answer, lane->bytes, *size);
	if (lane->head.said)
		say_all(lane->bytes + lane->head.size, lane->head.said);
	free(lane->bytes);
	lane->bytes = NULL;
	lane->busy = false;
	return result;
}

int foreign_call(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		 void *answer, size_t room, size_t *size, double patience_s)
{
	struct lane *lane = &foreign.lanes[FOREIGN_LANE_LONG];
	int ret;

	*size = 0;
	/* A file that the one helper has parsed the other would have to parse again. */
	if (lane->busy)
		lane = &foreign.lanes[FOREIGN_LANE_SHORT];
	if (!is_on())
		return -ENOTCONN;
	if (is_given_up(subject.pid))
		return -ETIMEDOUT;
	ret = post(lane, service, subject, question, question_size);
	ret = ret ?: wait_until(lane, lane->begin + patience_s);
	while (!ret && spent_s(lane) < patience_s)
		ret = wait_until(lane, now_s() + SLICE_S);
	if (ret == 1) {
		charge_blocked(lane);
		return take(lane, answer, room, size);
	}
	if (ret == -EINTR)
		drop_helper(lane);
	else
		give_up(lane, ret != 0);
	return ret ?: -ETIMEDOUT;
}

static struct lane *lane_of(foreign_service *service, struct foreign_subject subject)
{
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct lane *lane = &foreign.lanes[i];

		if (lane->busy && lane->service == service && lane->subject.pid == subject.pid)
			return lane;
	}
	return NULL;
}

/* What takes long makes room for the others. */
static void make_room(void)
{
	struct lane *lane = &foreign.lanes[FOREIGN_LANE_LONG], *slow = &foreign.lanes[FOREIGN_LANE_SLOW];
	struct slow *process;

	if (slow->busy && now_s() - slow->begin > FOREIGN_SLOW_S && spent_s(slow) > FOREIGN_SLOW_S)
		give_up(slow, true);
	if (!lane->busy || now_s() - lane->begin <= LONG_S || spent_s(lane) <= LONG_S)
		return;
	if (pump(lane)) {
		if (now_s() - lane->begin > UNCLAIMED_S)
			drop_helper(lane);
		return;
	}
	if (!slow->busy) {
		drop_helper(slow);
		*slow = *lane;
		*lane = (struct lane){.fd = -1, .pidfd = -1};
		return;
	}
	process = need_slow(lane->subject.pid);
	if (process)
		process->displaced = true;
	charge(lane);
	drop_helper(lane);
}

/* The lane that is free for the question, or NULL. */
static struct lane *free_lane(pid_t pid)
{
	const struct slow *process = find_slow(pid);
	struct lane *lane = &foreign.lanes[process && process->displaced ? FOREIGN_LANE_SLOW : FOREIGN_LANE_LONG];

	return lane->busy ? NULL : lane;
}

int foreign_ask(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double slice_s)
{
	struct lane *lane = is_on() ? lane_of(service, subject) : NULL;
	int ret = 0;

	*size = 0;
	if (!is_on())
		return -ENOTCONN;
	if (!lane || !pump(lane))
		make_room();
	lane = lane_of(service, subject);
	if (!lane) {
		if (is_given_up(subject.pid))
			return -ETIMEDOUT;
		lane = free_lane(subject.pid);
		if (!lane)
			return -EINPROGRESS;
		ret = post(lane, service, subject, question, question_size);
		ret = ret ?: wait_until(lane, lane->begin + slice_s);
	}
	ret = ret ?: pump(lane);
	if (ret == 1)
		return take(lane, answer, room, size);
	if (!ret || ret == -EINTR)
		return -EINPROGRESS;
	give_up(lane, true);
	return ret;
}
