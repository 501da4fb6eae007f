// SPDX-License-Identifier: Apache-2.0
/* The side that asks: one helper a lane, what each is asked, and how long it has taken. */
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
#include <unistd.h>

#include "foreign/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"

/* A question that takes longer gets a lane of its own when that is free, and else has to come again. */
#define LONG_S 0.25
/* An answer that nobody came for, because the process has ended. */
#define UNCLAIMED_S 2.0
/* Charged from so many seconds on: what takes less is not worth a look at whose process it is. */
#define CHARGED_S 0.005
/* The same of time that the one who asked was blocked. */
#define BLOCKED_S 0.001
/* While no helper can be made, questions may come again for so long. */
#define NO_HELPER_S 2.0
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
	double begin, answered; /* when; answered: 0 before */
	pid_t pid;              /* of the helper; 0: not known */
	struct foreign_head head;
	size_t have; /* of head and bytes */
	char *bytes;
	uint64_t cpu_ns, queued_ns; /* of the helper, as it last told */
	double known;               /* when that was, or when it was made */
};

static struct {
	pid_t maker;
	int fd;
	struct foreign_notes *notes;
	struct lane lanes[FOREIGN_LANES];
	double no_helper_since; /* 0: there are some */
	unsigned long unanswered;
	double cpu_s; /* of all helpers */
	char stuck_at[FOREIGN_NOTE_MAX];
} foreign = {.fd = -1};

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
	if (!is_on())
		return;
	for (size_t i = 0; i < FOREIGN_LANES; i++)
		drop_helper(&foreign.lanes[i]);
	close(foreign.fd);
	foreign.fd = -1;
	/* It has nobody to make a helper for, and ends. */
	waitpid(foreign.maker, NULL, 0);
	munmap(foreign.notes, sizeof(*foreign.notes));
	foreign_accounts_free();
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
	if (n != 1)
		return n < 0 ? -errno : -ECONNRESET;
	if (!rights || rights->cmsg_type != SCM_RIGHTS || rights->cmsg_len != CMSG_LEN(2 * sizeof(int)))
		return -EAGAIN;
	memcpy(fds, CMSG_DATA(rights), 2 * sizeof(int));
	return 0;
}

/*
 * Seconds that the question has taken, without those for which the helper waited for a CPU, where the kernel tells
 * them (CONFIG_SCHED_INFO): a busy machine is no reason to leave a process out.
 */
static double spent_s(const struct lane *lane)
{
	double wall = clock_s(CLOCK_MONOTONIC) - lane->begin, spent;
	unsigned long long ran_ns, queued_ns;
	struct procfs_stat stat;
	char text[96];

	if (!lane->pid || procfs_read_some(lane->pid, "schedstat", text, sizeof(text)) <= 0 ||
	    sscanf(text, "%llu %llu", &ran_ns, &queued_ns) != 2 || procfs_read_stat(lane->pid, &stat))
		return wall;
	/* A wait that is not over yet is in no number. */
	if (stat.state == 'R')
		spent = ((double)ran_ns - (double)lane->cpu_ns) / 1e9;
	else
		spent = wall - ((double)queued_ns - (double)lane->queued_ns) / 1e9;
	if (spent > wall)
		return wall;
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
	err = send(foreign.fd, &slot, 1, MSG_NOSIGNAL) == 1 ? receive_fds(fds) : -errno;
	if (err && !foreign.no_helper_since)
		foreign.no_helper_since = clock_s(CLOCK_MONOTONIC);
	if (err)
		return err;
	foreign.no_helper_since = 0;
	lane->fd = fds[0];
	lane->pidfd = fds[1];
	lane->slot = slot;
	lane->pid = procfs_fdinfo(lane->pidfd, "Pid:", &pid) ? 0 : (pid_t)pid;
	lane->known = clock_s(CLOCK_MONOTONIC);
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
	/* When the first process is waiting to be looked at, there is a helper; if not, there may be one then. */
	need_helper(&foreign.lanes[FOREIGN_LANE_LONG]);
	return 0;
}

unsigned long foreign_unanswered(void)
{
	return foreign.unanswered;
}

double foreign_cpu_s(void)
{
	return foreign.cpu_s;
}

const char *foreign_stuck_at(void)
{
	return foreign.stuck_at;
}

/* Seconds that the question took whose answer is there, without those for which the helper waited for a CPU. */
static double took_s(const struct lane *lane)
{
	double wall = lane->answered - lane->begin;
	double queued = (double)(lane->head.queued_ns - lane->queued_ns) / 1e9;

	if (lane->head.queued_ns < lane->queued_ns)
		return wall;
	return queued < wall ? wall - queued : 0;
}

static void charge(const struct lane *lane, double took)
{
	if (took >= CHARGED_S)
		foreign_charge_used(lane->subject.pid, took);
}

/* There will be no answer: the helper is killed. */
static void give_up(struct lane *lane, bool waited_for)
{
	double spent = spent_s(lane);

	charge(lane, spent);
	foreign.unanswered++;
	if (waited_for)
		foreign_charge_blocked(lane->subject.pid, spent);
	else
		foreign_charge_vain(lane->subject.pid);
	snprintf(foreign.stuck_at, sizeof(foreign.stuck_at), "%.*s", FOREIGN_NOTE_MAX - 1,
		 foreign.notes->text[lane->slot]);
	drop_helper(lane);
}

/* The answer is there, or nobody wants it: the lane is free again, its helper waits for the next question. */
static void clear(struct lane *lane)
{
	double cpu_s = lane->head.cpu_ns > lane->cpu_ns ? (double)(lane->head.cpu_ns - lane->cpu_ns) / 1e9 : 0;
	double wall_s = lane->answered - lane->known;

	/* It may have been made to say anything. */
	foreign.cpu_s += cpu_s < wall_s ? cpu_s : wall_s;
	lane->known = lane->answered;
	lane->cpu_ns = lane->head.cpu_ns;
	lane->queued_ns = lane->head.queued_ns;
	free(lane->bytes);
	lane->bytes = NULL;
	lane->busy = false;
	if (lane->cpu_ns / 1000000000 >= FOREIGN_HELPER_CPU_S)
		drop_helper(lane);
}

/*
 * Sends without waiting: the socket of a helper that waits for a question has room for a whole one. Fails when the
 * helper has ended, or has written something before it was asked.
 */
static int send_question(const struct lane *lane, const void *message, size_t size)
{
	char byte;

	if (recv(lane->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EINTR))
		return -ECONNRESET;
	return send(lane->fd, message, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ? 0 : -ECONNRESET;
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
	err = send_question(lane, &message, sizeof(head) + size);
	if (err) {
		/* It ended since its last answer, which is no fault of this subject. */
		drop_helper(lane);
		err = need_helper(lane) ?: send_question(lane, &message, sizeof(head) + size);
	}
	if (err)
		return err;
	lane->subject = subject;
	lane->service = service;
	lane->begin = clock_s(CLOCK_MONOTONIC);
	lane->answered = 0;
	lane->have = 0;
	lane->busy = true;
	return 0;
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
			if (lane->have == whole) {
				if (lane->answered <= 0)
					lane->answered = clock_s(CLOCK_MONOTONIC);
				return 1;
			}
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
		double left = deadline - clock_s(CLOCK_MONOTONIC);

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

/* What a service can have returned: the rest is for this side to say. */
static int result_of(const struct lane *lane)
{
	switch (lane->head.result) {
	case -EINPROGRESS:
	case -EINTR:
	case -ETIMEDOUT:
	case -EBUSY:
	case -ENOTCONN:
		return -EPROTO;
	default:
		return lane->head.result;
	}
}

/* The lane is free again. */
static int take(struct lane *lane, void *answer, size_t room, size_t *size)
{
	int result = result_of(lane);

	charge(lane, took_s(lane));
	*size = lane->head.size < room ? lane->head.size : room;
	if (*size)
		memcpy(answer, lane->bytes, *size);
	if (lane->head.said)
		say_all(lane->bytes + lane->head.size, lane->head.said);
	clear(lane);
	return result;
}

/* A short answer is there, which was waited for. */
static void charge_blocked(const struct lane *lane)
{
	double blocked = (double)lane->head.blocked_ns / 1e9, took = took_s(lane);

	if (blocked >= BLOCKED_S)
		foreign_charge_blocked(lane->subject.pid, blocked < took ? blocked : took);
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
	if (foreign_is_given_up(subject.pid))
		return -EBUSY;
	ret = post(lane, service, subject, question, question_size);
	if (ret)
		return ret;
	ret = wait_until(lane, lane->begin + patience_s);
	while (!ret && spent_s(lane) < patience_s)
		ret = wait_until(lane, clock_s(CLOCK_MONOTONIC) + SLICE_S);
	if (ret == 1) {
		charge_blocked(lane);
		return take(lane, answer, room, size);
	}
	if (ret == -EINTR)
		drop_helper(lane);
	else
		give_up(lane, !ret);
	return ret ?: -ETIMEDOUT;
}

/* The lane that is at a question of that kind about the process. */
static struct lane *lane_of(foreign_service *service, struct foreign_subject subject)
{
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct lane *lane = &foreign.lanes[i];

		if (lane->busy && lane->service == service && lane->subject.pid == subject.pid)
			return lane;
	}
	return NULL;
}

bool foreign_answered(struct foreign_subject *subject)
{
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct lane *lane = &foreign.lanes[i];

		/* It asks, and is told so, where there will be none. */
		if (lane->busy && pump(lane)) {
			*subject = lane->subject;
			return true;
		}
	}
	return false;
}

/* Nobody wants the answer any more. */
static void discard(struct lane *lane)
{
	if (pump(lane) == 1)
		clear(lane);
	else
		drop_helper(lane);
}

void foreign_discard(struct foreign_subject subject)
{
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct lane *lane = &foreign.lanes[i];

		if (lane->busy && lane->subject.pid == subject.pid && lane->subject.life == subject.life)
			discard(lane);
	}
}

/* What takes long, or has failed, makes room for the others; own: the lane of the one who asks, or NULL. */
static void make_room(const struct lane *own)
{
	struct lane *lane = &foreign.lanes[FOREIGN_LANE_LONG], *slow = &foreign.lanes[FOREIGN_LANE_SLOW];
	double now = clock_s(CLOCK_MONOTONIC);

	if (slow->busy && now - slow->begin > FOREIGN_SLOW_S && spent_s(slow) > FOREIGN_SLOW_S && !pump(slow))
		give_up(slow, false);
	for (size_t i = FOREIGN_LANE_LONG; i < FOREIGN_LANES; i++) {
		struct lane *done = &foreign.lanes[i];
		int ret = done->busy ? pump(done) : 0;

		if (ret == 1 && now - done->answered > UNCLAIMED_S)
			clear(done);
		else if (ret < 0 && done != own)
			drop_helper(done);
	}
	if (!lane->busy || pump(lane) || now - lane->begin <= LONG_S || spent_s(lane) <= LONG_S)
		return;
	if (!slow->busy) {
		drop_helper(slow);
		*slow = *lane;
		*lane = (struct lane){.fd = -1, .pidfd = -1};
		return;
	}
	foreign_displace(lane->subject.pid);
	charge(lane, spent_s(lane));
	drop_helper(lane);
}

/* The lane that is free for the question, or NULL. */
static struct lane *free_lane(pid_t pid)
{
	struct lane *lane = &foreign.lanes[foreign_is_displaced(pid) ? FOREIGN_LANE_SLOW : FOREIGN_LANE_LONG];

	return lane->busy ? NULL : lane;
}

int foreign_ask(foreign_service *service, struct foreign_subject subject, const void *question, size_t question_size,
		void *answer, size_t room, size_t *size, double slice_s)
{
	struct lane *lane;
	bool asked;
	int ret = 0;

	*size = 0;
	if (!is_on())
		return -ENOTCONN;
	lane = lane_of(service, subject);
	asked = lane;
	make_room(lane);
	lane = lane_of(service, subject);
	if (lane && lane->subject.life != subject.life) {
		discard(lane);
		lane = NULL;
	}
	if (!lane) {
		if (foreign_is_given_up(subject.pid))
			return asked ? -ETIMEDOUT : -EBUSY;
		lane = free_lane(subject.pid);
		if (!lane)
			return -EINPROGRESS;
		ret = post(lane, service, subject, question, question_size);
		if (ret && foreign.no_helper_since > 0 &&
		    clock_s(CLOCK_MONOTONIC) - foreign.no_helper_since < NO_HELPER_S)
			return -EINPROGRESS;
		if (ret)
			return ret;
		ret = wait_until(lane, lane->begin + slice_s);
	}
	ret = ret ?: pump(lane);
	if (ret == 1)
		return take(lane, answer, room, size);
	if (!ret || ret == -EINTR)
		return -EINPROGRESS;
	give_up(lane, false);
	return ret;
}
