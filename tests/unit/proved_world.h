// SPDX-License-Identifier: Apache-2.0
/* Worlds (walk_world.h) that discovery validates as it does the memory of a process. */
#ifndef PROVED_WORLD_H
#define PROVED_WORLD_H

#include <unistd.h>

#include "base/remote.h"
#include "discovery/discovery.h"
#include "walk_world.h"

/* Code units of each code object, and room for all fields of an interpreter. */
#define PROVED_UNITS  40
#define PROVED_INTERP 32768

/* Where a _Py_DebugOffsets has PY_VERSION_HEX, and a version above all known ones. */
#define PROVED_AT_VERSION 8
#define PROVED_NEWER      0x031000f0

static struct world *proved_world;

static int proved_read(pid_t pid, uint64_t addr, void *buf, size_t size)
{
	(void)pid;
	return world_read(proved_world, addr, buf, size);
}

/* As discovery_validate(), of this world. */
static inline int proved_validate(struct world *w, struct error *error)
{
	struct discovery_python python = {.pid = getpid(),
					  .comm = "world",
					  .version = "3.16.0",
					  .build = {.layout = w->l},
					  .interp_head_addr = w->proc.interp_head,
					  .code_type_addr = w->proc.code_type};
	int err;

	proved_world = w;
	remote_read_by(proved_read);
	err = discovery_validate(&python, error);
	remote_read_by(NULL);
	return err;
}

/* A thread whose control block, at its id, points to itself. */
static inline uint64_t proved_thread_id(struct world *w)
{
	uint64_t id = make(w, 16);

	put_ptr(w, id, 0, id);
	return id;
}

/* An interpreter with a free GIL and a count of code objects. Begins the world. */
static inline uint64_t proved_interp(struct world *w)
{
	uint64_t interp, gil, name;

	world_clear(w);
	name = make(w, 16);
	memcpy(bytes_at(w, name, 5), "code", 5);
	w->proc.code_type = make(w, w->l.code_type + 24u);
	put_ptr(w, w->proc.code_type, w->l.code_type + 16, name);
	interp = make_interp(w);
	make(w, PROVED_INTERP);
	gil = make(w, 256);
	memset(bytes_at(w, gil, 256), 0, 256);
	memcpy(bytes_at(w, interp + w->l.interp_gil, 8), &gil, 8);
	if (w->l.interp_code_guard)
		memset(bytes_at(w, interp + w->l.interp_code_guard, 8), 0, 8);
	return interp;
}

static inline uint64_t proved_code(struct world *w, int first_line)
{
	uint64_t code = make_code(w, first_line);

	put_ptr(w, code, w->l.code_type, w->proc.code_type);
	put_ptr(w, code, w->l.code_type + 8, PROVED_UNITS);
	return code;
}

/* A frame of a function, at a code unit of it. */
static inline uint64_t proved_frame(struct world *w, uint64_t code, int unit, uint64_t previous)
{
	return make_frame(w, code, w->l.code_adaptive + 2 * unit, previous);
}

/* A thread with a data stack of one chunk, in which nothing is. */
static inline uint64_t proved_thread(struct world *w, uint64_t interp, uint64_t id, uint64_t frame)
{
	uint64_t tstate = make_thread(w, interp, id, frame), chunk = make(w, 4096);

	put_ptr(w, chunk, 8, 4096);
	if (w->l.tstate_datastack_top)
		set_data_stack(w, tstate, chunk, chunk + 24, chunk + 4096);
	return tstate;
}

/* Runs a check for each kind of build of a version that is newer than those known, with the newest known table. */
static inline void each_newer_layout(void (*check)(struct world *w))
{
	static const char *const tables[] = {"3.15", "3.15t"};
	const uint64_t version = PROVED_NEWER;
	struct world w = {.bytes = malloc(ARENA_SIZE)};

	assert_non_null(w.bytes);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		uint8_t bytes[LAYOUT_DEBUG_OFFSETS_MAX];
		struct layout_build build;
		struct error error;
		size_t len = read_offsets_of(tables[i], bytes);

		memcpy(bytes + PROVED_AT_VERSION, &version, sizeof(version));
		assert_int_equal(layout_from_debug_offsets(bytes, len, &build, &error), 0);
		w.l = build.layout;
		w.origin = build.origin;
		world_clear(&w);
		check(&w);
	}
	free(w.bytes);
}

#define NEWER_TEST(name)                                                                                               \
	static void test_##name(void **unused)                                                                         \
	{                                                                                                              \
		(void)unused;                                                                                          \
		each_newer_layout(name);                                                                               \
	}

#endif
