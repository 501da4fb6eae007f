// SPDX-License-Identifier: Apache-2.0
/*
 * pretender LIE [OFFSETS]: a program whose memory looks like a Python's, and then lies to the profiler that reads it.
 *
 * It has a Python's symbols and a Python's objects, as the minor version has them that it was built for; from 3.13 on
 * OFFSETS is a file with the debug offsets to show. It prints a line when its two threads run on honest stacks, and
 * lies (lies.c) from SIGUSR1 on, in each of them, thousands of times between two samples.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pretender.h"

/* After so many lies the truth is restored, so that the next ones meet something that is followed far. */
#define LIES 24

static lie *chosen;
static volatile bool lying;

static void *work(void *arg)
{
	struct worker *w = arg;
	unsigned int told = 0;

	for (;;) {
		for (volatile int i = 0; i < 200; i++)
			;
		if (!lying)
			continue;
		if (told++ % LIES)
			chosen(w);
		else
			world_set_right(w);
	}
	return NULL;
}

static void read_layout(const char *path)
{
#if MINOR >= 13
	struct error error;
	size_t size;
	FILE *file = fopen(path, "rb");

	if (!file)
		err(1, "%s", path);
	size = fread(_PyRuntime, 1, LAYOUT_DEBUG_OFFSETS_MAX, file);
	fclose(file);
	/* Offsets that pybpf refuses are shown as they are: it will not come so far as to look for more. */
	if (layout_from_debug_offsets((uint8_t *)_PyRuntime, size, &world.build, &error))
		world.build = (struct layout_build){.runtime_tstate_current = LAYOUT_NONE};
#else
	(void)path;
	if (layout_from_table(MAJOR, MINOR, false, &world.build))
		errx(1, "there is no layout of Python %d.%d", MAJOR, MINOR);
#endif
	world.l = world.build.layout;
}

int main(int argc, char **argv)
{
	pthread_t pages;
	sigset_t set;
	int signo;

	if (argc != (MINOR >= 13 ? 3 : 2))
		errx(2, "usage: pretender LIE%s", MINOR >= 13 ? " OFFSETS" : "");
	chosen = lie_find(argv[1]);
	if (!chosen)
		errx(2, "there is no lie \"%s\"", argv[1]);
	read_layout(argv[argc - 1]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (world.l.major) {
		world_make();
		for (int i = 0; i < WORKERS; i++)
			if (pthread_create(&world.workers[i].thread, NULL, work, &world.workers[i]))
				errx(1, "no thread");
		for (int i = 0; i < WORKERS; i++)
			world_set_right(&world.workers[i]);
	}
	printf("{\"pid\": %d}\n", getpid());
	fflush(stdout);
	sigwait(&set, &signo);
	if (world.l.major && pthread_create(&pages, NULL, take_pages, NULL))
		errx(1, "no thread");
	lying = true;
	for (;;)
		pause();
}
