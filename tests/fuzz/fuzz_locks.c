// SPDX-License-Identifier: Apache-2.0
/*
 * What dump reads of a stack: locks, and variables. The layout, a byte for the length of texts and how often the memory
 * changes, the futex that the thread sleeps on, a byte for the number of frames, the frames, then all memory, whose
 * last bytes say how it changes.
 */
#include "dump/locals.h"
#include "dump/locks.h"
#include "fuzz.h"

#define BASE 0x7f0000000000u
/* The process ends then: reads take longer than anything else. */
#define MOST_READS (1u << 13)
#define FRAMES     8
/* Bytes that the variables of a stack have room in, which is less than some need. */
#define LOCALS_ROOM 4096

struct stack {
	struct walk_stack walk;
	struct pybpf_frame frames[FRAMES];
	uint64_t addresses[FRAMES];
};

static void take_stack(struct fuzz_input *in, struct stack *out)
{
	uint8_t count = fuzz_take_u8(in) % (FRAMES + 1);

	memset(out, 0, sizeof(*out));
	for (uint8_t i = 0; i < count; i++) {
		fuzz_take(in, &out->frames[i], sizeof(out->frames[i]));
		fuzz_take(in, &out->addresses[i], sizeof(out->addresses[i]));
	}
	out->walk = (struct walk_stack){.frames = out->frames, .addresses = out->addresses, .depth = count};
}

/* The stack after the thread has left its innermost frames. */
static struct walk_stack without_leaves(const struct walk_stack *stack, uint32_t leaves)
{
	return (struct walk_stack){.frames = stack->frames + leaves,
				   .addresses = stack->addresses + leaves,
				   .depth = stack->depth - leaves};
}

static void read_locks(const struct py_values_of *of, const struct walk_stack *stack, uint64_t futex)
{
	struct dump_locks locks;

	dump_locks_read(of, stack, futex, &locks);
	for (uint32_t leaves = 0; leaves <= stack->depth; leaves++) {
		const struct walk_stack again = without_leaves(stack, leaves);

		FUZZ_CHECK(locks.nr_held <= DUMP_LOCKS_MAX);
		for (uint32_t i = 0; i < locks.nr_held; i++)
			FUZZ_CHECK(locks.held_in[i] < stack->depth && locks.held_in[i] + 1 >= leaves);
		dump_locks_keep_same(&locks, stack, &again);
	}
}

static size_t count_locals(const struct dump_locals *locals, uint32_t depth)
{
	struct dump_local local;
	size_t at = 0, count = 0;

	for (; dump_locals_next(locals, &at, &local); count++) {
		FUZZ_CHECK(local.frame < depth);
		FUZZ_CHECK(local.kind != DUMP_LOCAL_MOVING || !local.name[0]);
	}
	FUZZ_CHECK(at == locals->size);
	return count;
}

static void read_locals(const struct py_values_of *of, const struct walk_stack *stack)
{
	struct dump_locals locals = {.bytes = malloc(LOCALS_ROOM)};

	FUZZ_CHECK(locals.bytes);
	locals.size = dump_locals_read(of, stack, locals.bytes, LOCALS_ROOM);
	FUZZ_CHECK(locals.size <= LOCALS_ROOM);
	for (uint32_t leaves = 0; leaves <= stack->depth; leaves++) {
		const struct walk_stack again = without_leaves(stack, leaves);
		size_t count = count_locals(&locals, stack->depth), size = locals.size;

		locals.size = dump_locals_keep_same(locals.bytes, locals.size, stack, &again);
		FUZZ_CHECK(locals.size <= size && count_locals(&locals, stack->depth) <= count);
	}
	free(locals.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = {data, size};
	struct pybpf_layout layout;
	struct fuzz_memory bytes;
	struct fuzz_changing changing = {.below = {.read = fuzz_read, .source = &bytes}, .most = MOST_READS};
	const struct walk_memory memory = {.read = fuzz_read_changing, .source = &changing};
	const struct pybpf_runtime runtime = {.interp_head = BASE};
	struct py_values_of of = {.memory = &memory, .layout = &layout, .runtime = &runtime};
	struct stack stack;
	uint64_t futex;
	uint8_t options;

	if (!fuzz_take_layout(&in, &layout))
		return 0;
	options = fuzz_take_u8(&in);
	fuzz_take(&in, &futex, sizeof(futex));
	take_stack(&in, &stack);
	fuzz_take_end(&in, &changing.seed, sizeof(changing.seed));
	of.level = options & 3;
	changing.odds = options >> 2;
	bytes = (struct fuzz_memory){.data = in.data, .size = in.size, .base = BASE};
	read_locks(&of, &stack.walk, futex);
	changing.reads = 0;
	read_locals(&of, &stack.walk);
	return 0;
}
