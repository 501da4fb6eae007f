// SPDX-License-Identifier: Apache-2.0
/* The loop of a run, its progress line and signals. */
#include "session/run/run.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "rights/priority.h"
#include "session/measure.h"

#define PROGRESS_S 0.5
/* Interval between looks at the ring buffer, which wakes the loop earlier when many records are waiting. */
#define LOOK_AT_RING_S 0.1

/* Interval between calls of session_run.goes_on, for targets whose end causes no event. */
#define ASK_S 0.1

/* A run's loop takes at least this share of the duration, so that a short one finds processes beside many threads. */
#define LEAST_SHARE 0.5
/* An end that takes a smaller share does not shorten the loop. */
#define END_SHARE 0.01

struct loop {
	struct session_run *run;
	double begin, deadline, next_periodic_work, next_jitter, next_progress, next_ask, next_interval;
	bool shown; /* the terminal shows a progress line */
};

static void erase_progress(void)
{
	fputs("\r\033[K", stderr);
}

static void show_progress(struct loop *l, double now)
{
	uint64_t samples, stacks;

	session_progress(l->run->sessions[0], &samples, &stacks);
	fprintf(stderr, "\r\033[K%.1f s  %llu sample%s  %llu stack%s ", now - session_get_begin(l->run->sessions[0]),
		(unsigned long long)samples, samples == 1 ? "" : "s", (unsigned long long)stacks,
		stacks == 1 ? "" : "s");
	fflush(stderr);
	l->shown = true;
}

/*
 * Passes a signal on to the command unless the terminal, which signals both processes, sent it. SIGXFSZ concerns the
 * files that pybpf writes: the kernel sends it with a write that fails (EFBIG), as if the process had sent it itself.
 */
static void pass_on(const struct session_command *command, int signo, int code)
{
	if (signo != SIGCHLD && signo != SIGXFSZ && code <= 0)
		session_command_signal(command, signo);
}

/* Reads and handles a signal. Returns true when it ends the run. *input: set if the terminal has another size. */
static bool on_signal(struct loop *l, int signal_fd, bool *input)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	if (l->run->command) {
		pass_on(l->run->command, (int)info.ssi_signo, info.ssi_code);
		return false;
	}
	if (info.ssi_signo == SIGWINCH) {
		*input = true;
		return false;
	}
	if (info.ssi_signo == SIGHUP && l->run->on_hangup) {
		l->run->on_hangup(l->run->watcher);
		return false;
	}
	return info.ssi_signo != SIGCHLD && info.ssi_signo != SIGUSR1 && info.ssi_signo != SIGUSR2;
}

void session_run_command(struct session_command *command)
{
	sigset_t signals;
	siginfo_t info;

	signals_of_run(&signals);
	while (!session_command_reap(command, 0)) {
		if (sigwaitinfo(&signals, &info) > 0)
			pass_on(command, info.si_signo, info.si_code);
	}
}

static double min(double a, double b)
{
	return a < b ? a : b;
}

static int wait_ms(const struct loop *l, double now)
{
	double until = min(now + LOOK_AT_RING_S, l->next_jitter);

	if (l->deadline > 0)
		until = min(until, l->deadline);
	until = min(until, l->next_periodic_work);
	if (l->run->progress)
		until = min(until, l->next_progress);
	if (l->run->on_interval)
		until = min(until, l->next_interval);
	return until <= now ? 0 : (int)((until - now) * 1000) + 1;
}

static bool target_gone(struct loop *l, double now)
{
	if (l->run->command)
		return session_command_reap(l->run->command, 0);
	if (session_all_ended(l->run->sessions[0]))
		return true;
	if (!l->run->goes_on || now < l->next_ask)
		return false;
	l->next_ask = now + ASK_S;
	return !l->run->goes_on(l->run->goes_on_arg);
}

/* Returns 0 or negative errno. */
static int end_interval(struct loop *l, double now)
{
	if (!l->run->on_interval || now < l->next_interval)
		return 0;
	l->next_interval += l->run->interval_s;
	/* After a stop (SIGSTOP, a suspended machine) intervals begin anew. */
	if (l->next_interval < now)
		l->next_interval = now + l->run->interval_s;
	return l->run->on_interval(l->run->watcher);
}

/* Handles the records of each session. Returns 0, 1 when more are waiting, or negative errno. */
static int consume(const struct session_run *run)
{
	int more = 0;

	for (size_t i = 0; i < SESSION_RUN_MAX && run->sessions[i]; i++) {
		int left = session_consume(run->sessions[i]);

		if (left < 0)
			return left;
		more |= left;
	}
	return more;
}

/* Does what is due in each session. Returns 0 or negative errno. */
static int do_due_work(struct loop *l, double now)
{
	const bool jitter = now >= l->next_jitter;

	l->next_jitter = jitter ? SESSION_NEVER_S : l->next_jitter;
	l->next_periodic_work = SESSION_NEVER_S;
	for (size_t i = 0; i < SESSION_RUN_MAX && l->run->sessions[i]; i++) {
		double next;

		if (jitter)
			l->next_jitter = min(l->next_jitter, now + session_jitter(l->run->sessions[i]));
		next = session_do_periodic_work(l->run->sessions[i]);
		if (next < 0)
			return (int)next;
		l->next_periodic_work = min(l->next_periodic_work, next);
	}
	return 0;
}

/*
 * Returns when the loop ends, so that sampling is as long as was asked for: it has begun before, and goes on while the
 * session is detached.
 */
static double find_deadline(const struct loop *l)
{
	const struct session *s = l->run->sessions[0];
	const double least = l->begin + l->run->duration_s * LEAST_SHARE;
	const double wanted = session_get_begin(s) + l->run->duration_s, end_s = session_estimate_end(s);

	return fmax(least, end_s > l->run->duration_s * END_SHARE ? wanted - end_s : wanted);
}

/* One turn of the loop: handles records, events and due work. Returns true when the run has ended; *end says how. */
static bool turn(struct loop *l, int signal_fd, bool input, bool *more, enum session_end *end)
{
	double now = clock_s(CLOCK_MONOTONIC);
	int left = consume(l->run);

	priority_check();
	*end = SESSION_END_ERROR;
	if (left < 0)
		return true;
	*more = left;
	if (do_due_work(l, now))
		return true;
	if (end_interval(l, now) < 0)
		return true;
	if (on_signal(l, signal_fd, &input) || (input && l->run->on_input && l->run->on_input(l->run->watcher) > 0))
		*end = SESSION_END_SIGNAL;
	else if (target_gone(l, now))
		*end = SESSION_END_TARGET;
	/* The end may take less by now, as processes have ended. */
	else if (l->deadline > 0 && now >= l->deadline && now >= (l->deadline = find_deadline(l)))
		*end = SESSION_END_DURATION;
	if (*end != SESSION_END_ERROR)
		return true;
	if (l->run->progress && now >= l->next_progress) {
		show_progress(l, now);
		l->next_progress = now + PROGRESS_S;
	}
	return false;
}

/* What is polled: the sessions, signals and input. */
#define FDS (SESSION_RUN_MAX * SESSION_FDS + 2)

/* Fills in what is polled of the sessions. */
static void watch_sessions(const struct session_run *run, struct pollfd *fds)
{
	for (size_t i = 0; i < SESSION_RUN_MAX; i++) {
		int of_one[SESSION_FDS] = {-1, -1, -1};

		if (run->sessions[i])
			session_fds(run->sessions[i], of_one);
		for (size_t k = 0; k < SESSION_FDS; k++)
			*fds++ = (struct pollfd){.fd = of_one[k], .events = POLLIN};
	}
}

enum session_end session_run(struct session_run *run)
{
	struct loop l = {.run = run, .begin = clock_s(CLOCK_MONOTONIC)};
	enum session_end end = SESSION_END_ERROR;
	struct pollfd fds[FDS], *signals_fd = &fds[FDS - 2], *input = &fds[FDS - 1];
	int signal_fd;
	bool more = false;
	sigset_t signals;

	signals_of_run(&signals);
	if (run->on_input)
		sigaddset(&signals, SIGWINCH);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signal_fd < 0) {
		log_error("cannot wait for signals: %s", strerror(errno));
		return end;
	}
	watch_sessions(run, fds);
	*signals_fd = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	*input = (struct pollfd){.fd = run->on_input ? run->input_fd : -1, .events = POLLIN};
	l.next_interval = session_get_begin(run->sessions[0]) + run->interval_s;
	if (run->duration_s > 0) {
		l.deadline = find_deadline(&l);
		for (size_t i = 0; i < SESSION_RUN_MAX && run->sessions[i]; i++)
			session_end_at(run->sessions[i], l.deadline);
	}
	l.next_progress = l.begin + PROGRESS_S;
	if (run->progress)
		log_set_before_message(erase_progress);
	while (1) {
		int n = poll(fds, FDS, more ? 0 : wait_ms(&l, clock_s(CLOCK_MONOTONIC)));

		if (n < 0 && errno != EINTR) {
			log_error("cannot wait for events: %s", strerror(errno));
			break;
		}
		if (turn(&l, signal_fd, n > 0 && input->revents, &more, &end))
			break;
	}
	log_set_before_message(NULL);
	if (l.shown)
		erase_progress();
	close(signal_fd);
	return end;
}
