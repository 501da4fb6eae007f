// SPDX-License-Identifier: Apache-2.0
/*
 * grown-profiles SHAPE COUNT FILE: saves a profile in which one thing is there COUNT times, as nobody's program has it,
 * but somebody's file may. What reads it must not take more than in proportion to it.
 */
#include <errno.h>

#include "profiles.h"

#define LEAST_DEPTH 50

static uint64_t state = 88172645463325252u;

/* A random number in [0, below): xorshift64*, Vigna 2016. */
static uint32_t any(uint32_t below)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (uint32_t)((state * 2685821657736338717u) >> 33) % below;
}

/* Each name once, as a function that main() calls. */
static void grow_names(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), root = on(p, PROFILE_ROOT, "main", "main.py", 1);
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		take_in(p, on(p, root, name, name, 1), owner, 1 + i % 3);
	}
}

/* Names that FNV-1a without a key puts into the first 256th of a table of 131,072. */
static void grow_crafted(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), found = 0;
	char name[32];

	for (uint32_t i = 0; found < count; i++) {
		uint64_t hash = 0xcbf29ce484222325u;

		snprintf(name, sizeof(name), "f%u", i);
		for (const char *at = name; *at; at++)
			hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
		if (((hash ^ hash >> 32) & 0x1ffff) >= 512)
			continue;
		found++;
		take_in(p, on(p, PROFILE_ROOT, name, "", 1), owner, 1);
	}
}

/* One stack as deep as COUNT, with a sample at each 64th of its functions. */
static void grow_deep(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), s = PROFILE_ROOT;
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		s = on(p, s, name, "deep.py", 1);
		if (i % (count / 64) == 0)
			take_in(p, s, owner, 1);
	}
}

/* The same, of two functions that call each other. */
static void grow_recursive(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), s = PROFILE_ROOT;

	for (uint32_t i = 0; i < count; i++) {
		s = on(p, s, i % 2 ? "odd" : "even", "round.py", 1 + (int)(i % 7));
		if (i % (count / 64) == 0)
			take_in(p, s, owner, 1);
	}
}

static void grow_processes(struct profile *p, uint32_t count)
{
	uint32_t s = on(p, PROFILE_ROOT, "main", "main.py", 1);

	for (uint32_t i = 0; i < count; i++)
		take_in(p, s, process(p, (int)i + 1, "python3"), 1);
	profile_set_roots(p, PROFILE_ROOT_PROCESS);
}

static void grow_threads(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), s = on(p, PROFILE_ROOT, "main", "main.py", 1);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t thread = profile_add_thread(p, owner, (int)i + 2, "worker");

		assert_int_equal(profile_add_sample(p, s, owner, thread, 2), 0);
		for (uint64_t k = 0; k < 2; k++)
			assert_int_equal(profile_add_event(p, 10000000 * (k + i % 5), i, 1), 0);
	}
	profile_set_roots(p, PROFILE_ROOT_THREAD);
}

/* Samples in disorder, with many at one moment. */
static void grow_events(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), nr = 0;
	uint32_t thread = profile_add_thread(p, owner, 2, "worker");

	for (; nr < 100; nr++) {
		char name[32];

		snprintf(name, sizeof(name), "f%u", nr);
		assert_int_equal(profile_add_sample(p, on(p, PROFILE_ROOT, name, "a.py", 1), owner, thread, count), 0);
	}
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(profile_add_event(p, any(count / 8), any(nr), 1), 0);
}

/* Waits that begin at one moment and end at others, in one thread: no thread has such ones. */
static void grow_waits(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), s = on(p, PROFILE_ROOT, "main", "main.py", 1);
	uint32_t thread = profile_add_thread(p, owner, 2, "worker");
	uint32_t wait = profile_add_stack(p, s, profile_add_wait(p, "lock", "[lock]", 0));

	assert_int_equal(profile_add_time(p, wait, owner, thread, 1000000000000ull, count), 0);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(profile_add_event(p, i / 2, 0, 1 + any(1000000)), 0);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"wall", "nanoseconds", 1}), 0);
}

/* States that no pybpf has, each of a function of its own, with a waker. */
static void grow_states(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3");
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		uint32_t wait;

		snprintf(name, sizeof(name), "s%u", i);
		wait = profile_add_wait(p, name, "[wait]", (int32_t)i);
		take_in(p, profile_add_stack(p, on(p, PROFILE_ROOT, name, "a.py", 1), wait), owner, 1);
	}
}

static void grow_containers(struct profile *p, uint32_t count)
{
	uint32_t s = on(p, PROFILE_ROOT, "main", "main.py", 1);
	char name[32];

	for (uint32_t i = 0; i < count; i++) {
		struct profile_process_info info = {.pid = (int)i + 1, .name = name, .container = name};

		snprintf(name, sizeof(name), "c%u", i);
		take_in(p, s, profile_add_process(p, &info), 1);
	}
}

static void grow_sources(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3");
	char file[32];

	for (uint32_t i = 0; i < count; i++) {
		snprintf(file, sizeof(file), "m%u.py", i);
		take_in(p, on(p, PROFILE_ROOT, "f", file, 1), owner, 1);
		assert_int_equal(profile_set_source(p, file, "def f():\n    pass\n"), 0);
	}
}

/* Many lines of one function, each called from another line of its caller. */
static void grow_lines(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3");

	for (uint32_t i = 0; i < count; i++)
		take_in(p, on(p, on(p, PROFILE_ROOT, "main", "a.py", (int)i), "f", "a.py", (int)(i * 7 % count)), owner,
			1);
}

/* Stacks of 50 functions with nothing in common. */
static void grow_stacks(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3");
	char name[32];

	for (uint32_t i = 0; i < count / LEAST_DEPTH; i++) {
		uint32_t s = PROFILE_ROOT;

		for (uint32_t depth = 0; depth < LEAST_DEPTH; depth++) {
			snprintf(name, sizeof(name), "f%u", any(3000));
			s = on(p, s, name, "a.py", 1);
		}
		take_in(p, s, owner, 1);
	}
}

/* Leaves of one stack of 1,000 frames. */
static void grow_leaves(struct profile *p, uint32_t count)
{
	uint32_t owner = process(p, 1, "python3"), s = PROFILE_ROOT;

	for (uint32_t depth = 1; depth < 1000; depth++)
		s = on(p, s, "down", "round.py", 1 + (int)(depth % 7));
	for (uint32_t i = 0; i < count; i++)
		take_in(p, on(p, s, "leaf", "round.py", (int)i + 10), owner, 1);
}

static const struct shape {
	const char *name;
	void (*grow)(struct profile *p, uint32_t count);
} shapes[] = {
	{"names", grow_names},         {"crafted", grow_crafted},       {"deep", grow_deep},
	{"recursive", grow_recursive}, {"processes", grow_processes},   {"threads", grow_threads},
	{"events", grow_events},       {"waits", grow_waits},           {"sources", grow_sources},
	{"states", grow_states},       {"containers", grow_containers}, {"lines", grow_lines},
	{"stacks", grow_stacks},       {"leaves", grow_leaves},
};

static int save(const struct profile *p, const char *path)
{
	FILE *out = fopen(path, "we");
	int err = out ? output_pybpf(p, &(struct output_options){0}, out) : -errno;

	if (out && fclose(out) && !err)
		err = -errno;
	return err;
}

int main(int argc, char **argv)
{
	if (argc == 1) {
		for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
			puts(shapes[i].name);
		return 0;
	}
	for (size_t i = 0; argc == 4 && i < sizeof(shapes) / sizeof(*shapes); i++) {
		struct profile *p;
		int err;

		if (strcmp(argv[1], shapes[i].name) != 0)
			continue;
		p = new_profile();
		shapes[i].grow(p, (uint32_t)strtoul(argv[2], NULL, 10));
		err = save(p, argv[3]);
		profile_free(p);
		return err ? 1 : 0;
	}
	fputs("usage: grown-profiles SHAPE COUNT FILE\n", stderr);
	return 2;
}
