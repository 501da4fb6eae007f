// SPDX-License-Identifier: Apache-2.0
/* Lies: impossible contents of the pretender's memory. Each lie changes one thing; world_set_right undoes them. */
#include <err.h>
#include <string.h>
#include <sys/mman.h>

#include "pretender.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static uint64_t next_random(struct worker *w)
{
	/* xorshift64 (Marsaglia 2003) */
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random >> 8;
}

static unsigned int choose(struct worker *w, size_t number)
{
	return (unsigned int)(next_random(w) % number);
}

static uint64_t number(const void *pointer)
{
	return (uintptr_t)pointer;
}

/* Returns an address at which nothing is mapped, or which a thread may not read. */
static uint64_t wild(struct worker *w)
{
	static const uint64_t values[] = {
		0x1,
		0x8,
		0xff8,
		0x7eadbeef0000,
		0x7fffffffeff8, /* the last page below the end of user space */
		0x7ffffffffff8,
		0x800000000000,     /* not canonical */
		0xffff800000000000, /* the kernel's from here on */
		0xffffffff81000000,
		0xffffffffff600000, /* vsyscall */
		0xfffffffffffffff8,
		UINT64_MAX,
		1ULL << 63,
	};

	return values[choose(w, COUNT(values))];
}

/* Returns the address of an existing object of any kind, or one a few bytes behind it. */
static uint64_t something(struct worker *w)
{
	static const unsigned int beside[] = {0, 0, 0, 1, 3, 4, 8};
	const uint8_t *objects[] = {
		world.interps,
		code_at(choose(w, NAMES)),
		name_at(choose(w, NAMES)),
		file_at(choose(w, NAMES)),
		world.table,
		frame_at(&world.workers[0], choose(w, CHAIN)),
		frame_at(&world.workers[1], choose(w, CHAIN)),
		world.workers[0].tstate,
		world.workers[1].tstate,
		world.circle,
		world.ring,
		world.paged + choose(w, PAGED) * world.page,
	};

	return number(objects[choose(w, COUNT(objects))]) + beside[choose(w, COUNT(beside))];
}

static uint64_t anything(struct worker *w)
{
	return choose(w, 2) ? wild(w) : something(w);
}

static uint8_t *any_frame(struct worker *w)
{
	return frame_at(&world.workers[choose(w, WORKERS)], choose(w, CHAIN));
}

/* Frames that call themselves, their callers or each other; a long circle. */
static void lie_cycles(struct worker *w)
{
	const uint8_t *to = choose(w, 8) ? any_frame(w) : world.circle;

	put_u64(any_frame(w), world.l.frame_previous, number(to));
}

static void lie_wild(struct worker *w)
{
	const uint16_t fields[] = {world.l.frame_previous, world.l.frame_code, world.l.frame_position};
	unsigned int field = choose(w, COUNT(fields));

	put_u64(any_frame(w), fields[field], anything(w));
	if (!choose(w, 4))
		put_u8(any_frame(w), world.l.frame_owner, (uint8_t)next_random(w));
	if (!choose(w, 4))
		put_u8(any_frame(w), world.l.frame_entry, (uint8_t)next_random(w));
}

/* The thread state's frame; to 3.12, by way of a cframe, which says the same of outer ones. */
static void lie_starts(struct worker *w)
{
	uint8_t *tstate = world.workers[choose(w, WORKERS)].tstate;

	put_u64(tstate, world.l.tstate_frame, anything(w));
	if (world.l.cframe_frame != PYBPF_NO_OFFSET) {
		/* Two cframes, inside frames, each of which is the other's outer one. */
		uint8_t *cframes[] = {frame_at(w, 0) + OBJECT / 2, frame_at(w, 1) + OBJECT / 2};
		unsigned int which = choose(w, COUNT(cframes));

		put_u64(cframes[which], world.l.cframe_frame, choose(w, 2) ? number(any_frame(w)) : anything(w));
		put_u64(cframes[which], world.l.cframe_frame + 8,
			choose(w, 2) ? number(cframes[1 - which]) : anything(w));
		put_u64(tstate, world.l.tstate_frame, number(cframes[choose(w, COUNT(cframes))]));
	}
	if (world.l.tstate_datastack_top) {
		put_u64(tstate, world.l.tstate_datastack_top, anything(w));
		put_u64(tstate, world.l.tstate_datastack_top + 8, anything(w));
	}
}

/* Lengths of strings and tables that are huge, negative or otherwise wrong, and wrong fields of code objects. */
static void lie_lengths(struct worker *w)
{
	static const uint64_t lengths[] = {1ULL << 63, UINT64_MAX, INT64_MAX,  1ULL << 62, (1ULL << 61) + 1,
					   1ULL << 47, 1ULL << 40, 1ULL << 32, UINT32_MAX};
	/* String kinds that do not exist, or that are not ASCII's. */
	static const uint32_t states[] = {0, UINT32_MAX, 0x4c, 0x74, 0x7c, 0x68, 0x70, 0xfc};
	uint8_t *code = code_at(choose(w, NAMES)),
		*string = choose(w, 2) ? name_at(choose(w, NAMES)) : file_at(choose(w, NAMES));
	const uint16_t parts[] = {world.l.code_name, world.l.code_qualname, world.l.code_filename,
				  world.l.code_linetable, world.l.code_type};
	uint16_t part;

	switch (choose(w, 6)) {
	case 0:
		put_u64(string, world.l.str_length, lengths[choose(w, COUNT(lengths))]);
		break;
	case 1:
		put_u32(string, world.l.str_state, states[choose(w, COUNT(states))]);
		break;
	case 2:
		put_u64(world.table, world.l.bytes_size, lengths[choose(w, COUNT(lengths))]);
		break;
	case 3:
		part = parts[choose(w, COUNT(parts))];
		put_u64(code, part, part == world.l.code_linetable ? wild(w) : anything(w));
		break;
	case 4:
		put_u64(code, choose(w, 2) ? world.l.code_name : world.l.code_qualname,
			number(name_at(choose(w, NAMES))));
		break;
	default:
		put_u32(code, world.l.code_firstlineno, 100 * (choose(w, NAMES) + 1));
	}
}

/* Lists of interpreters and threads: circular, endless, without this thread, with another thread's state. */
static void lie_lists(struct worker *w)
{
	struct worker *other = &world.workers[choose(w, WORKERS)];
	const uint8_t *threads[] = {world.crowd, world.ring, world.workers[0].tstate, world.workers[1].tstate, NULL};
	uint64_t thread = choose(w, 4) ? number(threads[choose(w, COUNT(threads))]) : anything(w);
	uint64_t interp = choose(w, 4) ? number(interp_at(choose(w, INTERPS))) : anything(w);
	uint64_t *runtime = (uint64_t *)_PyRuntime;

	switch (choose(w, 7)) {
	case 0:
		((volatile uint64_t *)runtime)[world.build.runtime_interp_head / 8] = choose(w, 4) ? interp : 0;
		break;
	case 1:
		put_u64(interp_at(choose(w, INTERPS)), world.l.interp_next, interp);
		break;
	case 2:
		put_u64(interp_at(choose(w, INTERPS)), world.l.interp_threads_head, thread);
		break;
	case 3:
		put_u64(other->tstate, world.l.tstate_next, thread);
		break;
	case 4:
		put_u64(other->tstate, world.l.tstate_thread_id,
			choose(w, 2) ? number((void *)w->thread) : anything(w));
		break;
	case 5:
		if (world.l.tstate_status)
			put_u32(other->tstate, world.l.tstate_status, (uint32_t)next_random(w));
		break;
	default:
		if (world.build.runtime_tstate_current != LAYOUT_NONE)
			((volatile uint64_t *)runtime)[world.build.runtime_tstate_current / 8] = thread;
	}
}

/* Frames, code objects and names in pages that are unmapped and mapped by turns. */
static void lie_pages(struct worker *w)
{
	uint8_t *page = world.paged + choose(w, PAGED) * world.page;

	put_u64(any_frame(w), world.l.frame_previous, number(page));
}

/* More distinct stacks and code objects than there is room for. */
static void lie_churn(struct worker *w)
{
	uint8_t *frame = frame_at(w, 1 + choose(w, CHAIN - 1));
	unsigned int code = choose(w, NAMES);

	put_u32(code_at(code), world.l.code_version, (uint32_t)next_random(w));
	frame_set_position(frame, code_at(code), choose(w, 2 * LINES));
}

/* A stack of 100,000 frames. */
static void lie_deep(struct worker *w)
{
	put_u64(frame_at(w, choose(w, CHAIN)), world.l.frame_previous, number(world.deep));
}

/* 100,000 frames, each with its own code object, whose strings are unmapped. */
static void lie_costly(struct worker *w)
{
	put_u64(frame_at(w, choose(w, CHAIN)), world.l.frame_previous, number(world.costly));
}

/* As lie_costly, and each code object has a line table of 16 MiB. */
static void lie_tables(struct worker *w)
{
	put_u64(world.long_table, world.l.bytes_size, LONG_TABLE);
	lie_costly(w);
}

/* Stacks of thousands of frames that differ in the root's code object, which is another by its line table. */
static void lie_roots(struct worker *w)
{
	put_u64(frame_at(w, 0), world.l.frame_previous, number(deep_at(DEEP - PYBPF_MAX_FRAMES + CHAIN + 1)));
	put_u64(code_at(ROOT), world.l.code_linetable, choose(w, 1 << 24));
	/* An interpreter tells that code objects are others. */
	if (world.l.interp_code_guard)
		put_u64(interp_at(0), world.l.interp_code_guard, choose(w, 1 << 24));
}

static void lie_all(struct worker *w);

static const struct {
	const char *name;
	lie *lie;
	bool alone; /* not part of "all", where it would leave little time to the other lies */
} lies[] = {
	{"cycles", lie_cycles, false},   {"wild", lie_wild, false},   {"starts", lie_starts, false},
	{"lengths", lie_lengths, false}, {"lists", lie_lists, false}, {"pages", lie_pages, false},
	{"churn", lie_churn, false},     {"deep", lie_deep, false},   {"costly", lie_costly, true},
	{"tables", lie_tables, true},    {"roots", lie_roots, true},  {"all", lie_all, true},
};

static void lie_all(struct worker *w)
{
	unsigned int which = choose(w, COUNT(lies));

	if (!lies[which].alone)
		lies[which].lie(w);
}

lie *lie_find(const char *name)
{
	for (size_t i = 0; i < COUNT(lies); i++)
		if (!strcmp(lies[i].name, name))
			return lies[i].lie;
	return NULL;
}

void *take_pages(void *unused)
{
	struct worker dice = {.random = 88172645463325252ULL};

	(void)unused;
	for (;;) {
		unsigned int i = choose(&dice, PAGED);
		uint8_t *page = world.paged + i * world.page;
		int bad = 0;

		switch (choose(&dice, 3)) {
		case 0:
			bad = munmap(page, world.page) ||
			      mmap(page, world.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
				   world.paged_fd, (off_t)(i * world.page)) == MAP_FAILED;
			break;
		case 1:
			bad = mprotect(page, world.page, PROT_NONE) ||
			      mprotect(page, world.page, PROT_READ | PROT_WRITE);
			break;
		default:
			bad = madvise(page, world.page, MADV_DONTNEED);
		}
		if (bad)
			err(1, "a page did not come back");
		sched_yield();
	}
	return NULL;
}
