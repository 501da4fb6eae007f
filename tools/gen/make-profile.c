// SPDX-License-Identifier: Apache-2.0
/*
 * make-profile SAMPLES STACKS DEPTH: a made-up profile on stdout, saved as .pybpf, for benchmarks of what reads and
 * writes profiles. The same numbers give the same profile. Stacks part from one another at any depth, some are far
 * hotter than others, and each sample has its time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "profile/saved.h"

#define PROCESSES 8
#define THREADS   4 /* of each process */
#define FILES     400
#define FUNCTIONS 6000
#define LINES     5 /* of a function that are met */
#define FREQ      99

static uint64_t state = 88172645463325252u;

/* A random number in [0, below): xorshift64*, Vigna 2016. */
static uint32_t any(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * 2685821657736338717u) >> 33) % below;
}

static void *need(void *memory)
{
	if (memory)
		return memory;
	fputs("make-profile: out of memory\n", stderr);
	exit(1);
}

static uint32_t add_frame(struct profile *p)
{
	uint32_t function = any(FUNCTIONS);
	int32_t first = (int32_t)(function % 97 * 11 + 1);
	char name[64], file[64];

	snprintf(name, sizeof(name), "%s%u.method_%u", function % 3 ? "Worker" : "Handler", function % 211, function);
	snprintf(file, sizeof(file), "package_%u/module_%u.py", function % 23, function % FILES);
	return profile_add_frame(p, PROFILE_PYTHON, name, file, first + (int32_t)any(LINES), first);
}

/* Paths are arrays of DEPTH stacks, from the root on; a new one follows an older one for a while. */
static void add_stacks(struct profile *p, uint32_t count, uint32_t depth, uint32_t *paths)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t *path = paths + (size_t)i * depth, from = i ? 1 + any(depth - 1) : 0;

		if (i)
			memcpy(path, paths + (size_t)any(i) * depth, from * sizeof(*path));
		for (uint32_t d = from; d < depth; d++)
			path[d] = profile_add_stack(p, d ? path[d - 1] : PROFILE_ROOT, add_frame(p));
	}
}

static void add_threads(struct profile *p, uint32_t *threads)
{
	char name[32];

	for (uint32_t i = 0; i < PROCESSES; i++) {
		uint32_t process = profile_add_process(
			p, &(struct profile_process_info){.pid = (int32_t)(1000 + i), .name = "python3"});

		for (uint32_t t = 0; t < THREADS; t++) {
			snprintf(name, sizeof(name), "thread-%u", t);
			threads[i * THREADS + t] = profile_add_thread(p, process, (int32_t)(1000 + i * 100 + t), name);
		}
	}
}

int main(int argc, char **argv)
{
	const struct profile_measure measure = {"samples", "count", 1000000000 / FREQ};
	struct profile *p = need(profile_new());
	uint32_t samples, count, depth, *paths, threads[PROCESSES * THREADS];
	int err = 0;

	if (argc != 4 || (samples = (uint32_t)atol(argv[1])) < 1 || (count = (uint32_t)atol(argv[2])) < 1 ||
	    (depth = (uint32_t)atol(argv[3])) < 2) {
		fputs("usage: make-profile SAMPLES STACKS DEPTH\n", stderr);
		return 2;
	}
	paths = need(calloc((size_t)count * depth, sizeof(*paths)));
	profile_set_measure(p, &measure);
	add_threads(p, threads);
	add_stacks(p, count, depth, paths);
	for (uint32_t i = 0; i < samples && !err; i++) {
		/* Each stack is met once at least, and those that come first more often. */
		uint32_t which = i < count ? i : any(1 + any(count));
		uint32_t stack = paths[(size_t)which * depth + depth - 1];
		uint32_t thread = threads[which % (PROCESSES * THREADS)],
			 process = profile_thread_at(p, thread)->process;

		err = profile_add_sample(p, stack, process, thread, 1);
		err = err
			      ?: profile_add_event(p, (uint64_t)i * measure.period_ns / 2,
						   profile_find_sample(p, stack, process, thread), 1);
	}
	err = err ?: profile_set_fact(p, PROFILE_FACT_FREQ, "99");
	err = err ?: profile_save(p, stdout);
	if (err || fflush(stdout) || ferror(stdout)) {
		fputs("make-profile: the profile could not be written\n", stderr);
		err = 1;
	}
	free(paths);
	profile_free(p);
	return err ? 1 : 0;
}
