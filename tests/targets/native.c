// SPDX-License-Identifier: Apache-2.0
/* A library for native.py and formats.py: threads that Python does not know, or that have no Python functions. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int native_start(const char *name, int cpu_ms, int with_state);
int native_start_many(int count, int pauses);
int native_at_work(void);
void native_burn_at_exit(int cpu_ms);

struct work {
	char name[16];
	double cpu_s;
	int with_state; /* it has a thread state while it burns */
	int pauses;     /* of 1 ms, one after each tenth of a millisecond of CPU time */
};

static double at_exit_s;
static int at_work;

static double cpu_time(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void burn(clockid_t clock, double cpu_s)
{
	double end = cpu_time(clock) + cpu_s;

	while (cpu_time(clock) < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

/* Python's own, of the program or of its library. */
static void *python(const char *function)
{
	void *found = dlsym(RTLD_DEFAULT, function);

	if (!found)
		abort();
	return found;
}

static void burn_with_state(double cpu_s)
{
	int (*ensure)(void) = (int (*)(void))python("PyGILState_Ensure");
	void (*release)(int) = (void (*)(int))python("PyGILState_Release");
	void *(*save)(void) = (void *(*)(void))python("PyEval_SaveThread");
	void (*restore)(void *) = (void (*)(void *))python("PyEval_RestoreThread");
	int state = ensure();
	void *saved = save();

	burn(CLOCK_THREAD_CPUTIME_ID, cpu_s);
	restore(saved);
	release(state);
}

static void *run(void *arg)
{
	struct work work = *(struct work *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), work.name);
	if (work.with_state)
		burn_with_state(work.cpu_s);
	for (int i = 0; i < work.pauses; i++) {
		burn(CLOCK_THREAD_CPUTIME_ID, 1e-4);
		usleep(1000);
	}
	if (!work.with_state && !work.pauses)
		burn(CLOCK_THREAD_CPUTIME_ID, work.cpu_s);
	__atomic_fetch_sub(&at_work, 1, __ATOMIC_SEQ_CST);
	/* Alive, for who reads its CPU time in /proc. */
	for (;;)
		pause();
	return NULL;
}

static int start(const struct work *work)
{
	struct work *copy = malloc(sizeof(*copy));
	pthread_attr_t attributes;
	pthread_t thread;
	int err;

	if (!copy)
		return -1;
	*copy = *work;
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 1 << 20); /* a debug build of 3.14 wants more than 64 KiB */
	__atomic_fetch_add(&at_work, 1, __ATOMIC_SEQ_CST);
	err = pthread_create(&thread, &attributes, run, copy);
	pthread_attr_destroy(&attributes);
	return err;
}

int native_start(const char *name, int cpu_ms, int with_state)
{
	struct work work = {.cpu_s = cpu_ms / 1e3, .with_state = with_state};

	snprintf(work.name, sizeof(work.name), "%s", name);
	return start(&work);
}

/* Threads that each have a name of their own. */
int native_start_many(int count, int pauses)
{
	int err = 0;

	for (int i = 0; i < count && !err; i++) {
		struct work work = {.pauses = pauses};

		snprintf(work.name, sizeof(work.name), "pool-%d", i);
		err = start(&work);
	}
	return err;
}

/* Threads that have not burnt all that they are to burn. */
int native_at_work(void)
{
	return __atomic_load_n(&at_work, __ATOMIC_SEQ_CST);
}

/* The process burns so much after Python's end. */
void native_burn_at_exit(int cpu_ms)
{
	at_exit_s = cpu_ms / 1e3;
}

__attribute__((destructor)) static void burn_at_exit(void)
{
	burn(CLOCK_PROCESS_CPUTIME_ID, at_exit_s);
}
