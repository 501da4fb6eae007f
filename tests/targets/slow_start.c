// SPDX-License-Identifier: Apache-2.0
/*
 * To be preloaded: makes threads of Python begin slowly. Each sleeps before its first instruction, when it is known to
 * Python only by the thread that made it, and in gettid(2), which from 3.12 on it calls between telling Python its id
 * and telling that this holds (bind_tstate).
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAUSE_US 30000

struct start {
	void *(*run)(void *arg);
	void *arg;
};

static void *run_later(void *arg)
{
	struct start start = *(struct start *)arg;

	free(arg);
	usleep(PAUSE_US);
	return start.run(start.arg);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's names are reserved.
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *arg), void *arg)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT,
											       "pthread_create");
	struct start *start = malloc(sizeof(*start));

	if (!start)
		abort();
	*start = (struct start){run, arg};
	return create(thread, attributes, run_later, start);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the header's names are reserved.
long syscall(long number, ...)
{
	long (*call)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long args[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		args[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_gettid)
		usleep(PAUSE_US);
	return call(number, args[0], args[1], args[2], args[3], args[4], args[5]);
}
