// SPDX-License-Identifier: Apache-2.0
/* A library for native_calls.py: functions whose callers are known, each of another shape of frame. */
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#if __has_attribute(noclone)
#define SEEN __attribute__((noinline, noclone))
#else
#define SEEN __attribute__((noinline))
#endif

typedef void callback(void);

/* The list that debuggers look for ("JIT Compilation Interface" in GDB's manual); made_code.py fills it in. */
struct jit_descriptor {
	unsigned version, action;
	void *relevant, *first;
};
extern struct jit_descriptor nc_jit_descriptor __asm__("__jit_debug_descriptor");
struct jit_descriptor nc_jit_descriptor = {.version = 1};

void nc_burn(int ms);
void nc_inner(int ms);
void nc_middle(int ms);
void nc_outer(int ms);
void nc_call_back(callback *function);
void nc_deep(int depth, int ms);
void nc_work(int depth, volatile unsigned long *done);
void nc_variable(int size, int ms);
void nc_aligned(int size, int ms);
void nc_large(int ms);
void nc_handler(int signo);
void nc_raise(int ms);
int nc_compare(const void *a, const void *b);
void nc_sort(void);
void nc_sort_by(int (*before)(const void *, const void *));
int nc_check(int (*check_signals)(void));
int nc_vfork(int ms);
void nc_thread(int ms);

/* Keeps the compiler from making the call before a jump. */
#define RETURN_HERE() __asm__ volatile("" ::: "memory")

SEEN void nc_burn(int ms)
{
	struct timespec now;
	long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	end = now.tv_sec * 1000000000 + now.tv_nsec + ms * 1000000L;
	do {
		for (volatile int i = 0; i < 2000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000000 + now.tv_nsec < end);
}

SEEN void nc_inner(int ms)
{
	nc_burn(ms);
	RETURN_HERE();
}

SEEN void nc_middle(int ms)
{
	nc_inner(ms);
	RETURN_HERE();
}

SEEN void nc_outer(int ms)
{
	nc_middle(ms);
	RETURN_HERE();
}

SEEN void nc_call_back(callback *function)
{
	function();
	RETURN_HERE();
}

SEEN void nc_deep(int depth, int ms) /* NOLINT(misc-no-recursion) */
{
	if (depth)
		nc_deep(depth - 1, ms);
	else
		nc_burn(ms);
	RETURN_HERE();
}

/* Counts in *done what it does, until that overflows. */
SEEN void nc_work(int depth, volatile unsigned long *done) /* NOLINT(misc-no-recursion) */
{
	if (depth) {
		nc_work(depth - 1, done);
	} else {
		do {
			for (volatile int i = 0; i < 1000; i++)
				;
		} while (++*done);
	}
	RETURN_HERE();
}

/* A frame that is found by its frame pointer. */
SEEN void nc_variable(int size, int ms)
{
	volatile char *room = __builtin_alloca((size_t)size);

	room[0] = 1;
	nc_burn(ms);
	room[size - 1] = room[0];
}

/* A frame that is aligned, and so found by what it has kept of where it was. */
SEEN void nc_aligned(int size, int ms)
{
	volatile char aligned[64] __attribute__((aligned(64)));
	volatile char *room = __builtin_alloca((size_t)size);

	aligned[0] = room[0] = 1;
	nc_burn(ms);
	aligned[63] = room[size - 1] = aligned[0];
}

/* A frame of more than 16 KiB, whose offsets are wide. */
SEEN void nc_large(int ms)
{
	volatile char room[100000];

	room[0] = 1;
	nc_burn(ms);
	room[sizeof(room) - 1] = room[0];
}

static int handler_ms;

SEEN void nc_handler(int signo)
{
	(void)signo;
	nc_burn(handler_ms);
	RETURN_HERE();
}

SEEN void nc_raise(int ms)
{
	struct sigaction action = {.sa_handler = nc_handler}, before;

	handler_ms = ms;
	sigaction(SIGUSR2, &action, &before);
	pthread_kill(pthread_self(), SIGUSR2);
	sigaction(SIGUSR2, &before, NULL);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

SEEN int nc_compare(const void *a, const void *b)
{
	nc_burn(1);
	RETURN_HERE();
	return compare(a, b);
}

SEEN void nc_sort(void)
{
	int numbers[] = {5, 3, 9, 1};

	qsort(numbers, sizeof(numbers) / sizeof(*numbers), sizeof(*numbers), nc_compare);
	RETURN_HERE();
}

/* before: of Python. */
SEEN void nc_sort_by(int (*before)(const void *, const void *))
{
	int numbers[] = {5, 3, 9, 1};

	qsort(numbers, sizeof(numbers) / sizeof(*numbers), sizeof(*numbers), before);
	RETURN_HERE();
}

/* A signal comes in C, which has Python handle it, as PyErr_CheckSignals() does. */
SEEN int nc_check(int (*check_signals)(void))
{
	int failed;

	pthread_kill(pthread_self(), SIGUSR1);
	failed = check_signals();
	RETURN_HERE();
	return failed;
}

/* Its children share its stack, on which they leave what they like. Returns -1 if vfork() fails. */
SEEN int nc_vfork(int ms)
{
	struct timespec now;
	long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	end = now.tv_sec * 1000000000 + now.tv_nsec + ms * 1000000L;
	do {
		pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

		if (!pid)
			_exit(0);
		if (waitpid(pid, NULL, 0) < 0)
			return -1;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while (now.tv_sec * 1000000000 + now.tv_nsec < end);
	return 0;
}

static void *run(void *arg)
{
	nc_outer(*(int *)arg);
	return NULL;
}

/* A thread that Python does not know. */
SEEN void nc_thread(int ms)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, run, &ms) == 0)
		pthread_join(thread, NULL);
}
