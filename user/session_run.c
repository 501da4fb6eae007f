// SPDX-License-Identifier: Apache-2.0
#include "session_run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "procfs.h"

#define PROGRESS_S 0.5
/* A new program is looked at often while it starts, so that its first Python instruction is met, and seldom later. */
#define LOOK_OFTEN_S  0.001
#define LOOK_SELDOM_S 0.1
#define STARTING_S    0.5
/* The ring buffer wakes the loop when much has come; else it is looked at so often. */
#define LOOK_AT_RING_S 0.1

struct loop {
	struct session_run *run;
	double begin, deadline, next_look, look_since, next_jitter, next_progress;
	bool looking; /* for the interpreter of the target's present program */
	bool validated;
	bool shown; /* a progress line stands on the terminal */
	struct discovery_python python;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void session_run_signals(sigset_t *set)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(set, signals[i]);
}

static void erase_progress(void)
{
	fputs("\r\033[K", stderr);
}

static void show_progress(struct loop *l, double now)
{
	uint64_t samples, stacks;

	session_progress(l->run->session, &samples, &stacks);
	fprintf(stderr, "\r\033[K%.1f s  %llu samples  %llu stacks ", now - l->begin, (unsigned long long)samples,
		(unsigned long long)stacks);
	fflush(stderr);
	l->shown = true;
}

/* Looks for the interpreter once. */
static void look(struct loop *l, double now)
{
	char why[512];
	enum discovery_result result = discovery_process(l->run->pid, &l->python, why, sizeof(why));

	bool starting = now - l->look_since < STARTING_S;

	l->next_look = now + (starting ? LOOK_OFTEN_S : LOOK_SELDOM_S);
	if (result == DISCOVERY_OK) {
		int err = session_set_process(l->run->session, l->run->pid, &l->python);

		if (err)
			log_error("cannot hand process %d to the kernel: %s", l->run->pid, strerror(-err));
		else
			log_info("process %d: Python %s in %s", l->run->pid, l->python.version, l->python.path);
		l->looking = false;
		l->validated = false;
		l->run->python_found = true;
	} else if (result != DISCOVERY_NOT_PYTHON) {
		if (result != DISCOVERY_GONE && result != DISCOVERY_ZOMBIE)
			log_error("%s", why);
		l->looking = false;
	} else if (!starting) {
		session_set_other(l->run->session, l->run->pid);
	}
}

/* Once the interpreter is up, its memory must agree with the layout; if not, no more samples are taken. */
static void validate(struct loop *l)
{
	char why[512];
	int err = discovery_validate(&l->python, why, sizeof(why));

	if (err == -EAGAIN)
		return;
	l->validated = true;
	if (err == -EINVAL) {
		log_error("%s", why);
		session_set_process(l->run->session, l->run->pid, NULL);
	}
}

static void begin_look(struct loop *l, double now)
{
	l->looking = true;
	l->look_since = l->next_look = now;
}

/* What the terminal sends, it sends to the command as well; the rest is passed on. */
static void pass_on(const struct session_command *command, int signo, int code)
{
	if (signo != SIGCHLD && code <= 0)
		session_command_signal(command, signo);
}

/* Returns true when the signal ends the run. */
static bool on_signal(struct loop *l, int signal_fd)
{
	struct signalfd_siginfo info;

	if (read(signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	if (l->run->command) {
		pass_on(l->run->command, (int)info.ssi_signo, info.ssi_code);
		return false;
	}
	return info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP ||
	       info.ssi_signo == SIGQUIT;
}

void session_run_command(struct session_command *command)
{
	sigset_t signals;
	siginfo_t info;

	session_run_signals(&signals);
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
	if (l->looking)
		until = min(until, l->next_look);
	if (!l->validated && !l->looking)
		until = min(until, now + LOOK_SELDOM_S);
	if (l->run->progress)
		until = min(until, l->next_progress);
	return until <= now ? 0 : (int)((until - now) * 1000) + 1;
}

static bool target_gone(struct loop *l, struct pollfd *pid)
{
	if (l->run->command)
		return session_command_reap(l->run->command, 0);
	return pid->revents & POLLIN;
}

enum session_end session_run(struct session_run *run)
{
	struct loop l = {.run = run, .begin = now_s()};
	enum session_end end = SESSION_END_ERROR;
	struct pollfd fds[3];
	sigset_t signals;
	int signal_fd, pid_fd, more = 0;

	session_run_signals(&signals);
	signal_fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	pid_fd = (int)syscall(SYS_pidfd_open, run->pid, 0); /* 5.3 */
	if (signal_fd < 0 || (pid_fd < 0 && errno != ESRCH)) {
		log_error("cannot watch process %d: %s", run->pid, strerror(errno));
		goto done;
	}
	fds[0] = (struct pollfd){.fd = session_fd(run->session), .events = POLLIN};
	fds[1] = (struct pollfd){.fd = signal_fd, .events = POLLIN};
	fds[2] = (struct pollfd){.fd = pid_fd, .events = POLLIN};
	if (run->duration_s > 0)
		l.deadline = l.begin + run->duration_s;
	l.next_progress = l.begin + PROGRESS_S;
	l.validated = run->python_found;
	if (!run->python_found)
		begin_look(&l, l.begin);
	if (run->progress)
		log_set_before_message(erase_progress);
	while (1) {
		double now = now_s();
		int n = poll(fds, 3, more ? 0 : wait_ms(&l, now));

		if (n < 0 && errno != EINTR) {
			log_error("cannot wait for events: %s", strerror(errno));
			break;
		}
		now = now_s();
		more = session_consume(run->session);
		if (more < 0)
			break;
		if (now >= l.next_jitter)
			l.next_jitter = now + session_jitter(run->session);
		if (session_took_exec(run->session, run->pid))
			begin_look(&l, now);
		if (l.looking && now >= l.next_look)
			look(&l, now);
		else if (!l.looking && !l.validated)
			validate(&l);
		if ((fds[1].revents & POLLIN) && on_signal(&l, signal_fd)) {
			end = SESSION_END_SIGNAL;
			break;
		}
		if (pid_fd < 0 || target_gone(&l, &fds[2])) {
			end = SESSION_END_TARGET;
			break;
		}
		if (l.deadline > 0 && now >= l.deadline) {
			end = SESSION_END_DURATION;
			break;
		}
		if (run->progress && now >= l.next_progress) {
			show_progress(&l, now);
			l.next_progress = now + PROGRESS_S;
		}
	}
done:
	log_set_before_message(NULL);
	if (l.shown)
		erase_progress();
	if (signal_fd >= 0)
		close(signal_fd);
	if (pid_fd >= 0)
		close(pid_fd);
	return end;
}

/* Seconds since the process was started; large when unknown. */
static double age_of(pid_t pid)
{
	struct procfs_stat stat;
	struct timespec t;

	if (procfs_stat(pid, &stat) || clock_gettime(CLOCK_BOOTTIME, &t))
		return 1e9;
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9 - (double)stat.start_time / (double)sysconf(_SC_CLK_TCK);
}

/* An interpreter that is not mapped and set up by then will not be. */
#define INTERPRETER_WAIT_S 3.0
#define INTERPRETER_POLL_S 0.002

int session_find_python(pid_t pid, struct discovery_python *out)
{
	struct timespec pause = {.tv_nsec = (long)(INTERPRETER_POLL_S * 1e9)};
	enum discovery_result result;
	char why[1024];
	pid_t process;
	int err;

	if (procfs_thread_group(pid, &process) == 0 && process != pid) {
		log_error("%d is a thread of process %d: give -p %d", pid, process, process);
		return -EINVAL;
	}
	while (1) {
		result = discovery_process(pid, out, why, sizeof(why));
		if (result == DISCOVERY_OK) {
			err = discovery_validate(out, why, sizeof(why));
			if (!err)
				return 0;
			if (err != -EAGAIN)
				break;
		} else if (result != DISCOVERY_NOT_PYTHON) {
			break;
		}
		if (age_of(pid) > INTERPRETER_WAIT_S) {
			if (result != DISCOVERY_OK)
				break;
			/* An embedder may set it up at any later time. */
			log_warn("process %d has the code of Python %s, but no interpreter runs there yet", pid,
				 out->version);
			return 0;
		}
		nanosleep(&pause, NULL);
	}
	log_error("%s", why);
	return result == DISCOVERY_GONE || result == DISCOVERY_ZOMBIE ? -ESRCH : -EINVAL;
}
