// SPDX-License-Identifier: Apache-2.0
/*
 * Checks fields that the debug offsets of a Python name, and that no other field of them contradicts when they are
 * wrong: what a live process has there cannot be anything else.
 */
#include <string.h>

#include "cpython/facts.h"
#include "cpython/structs.h"
#include "discovery/validate.h"

/* No process frees as many code objects: it takes a microsecond to make one. */
#define MOST_CODE_OBJECTS (1ull << 40)

/* To 3.12 offsets are pybpf's own, and need no proof. */
static bool is_told_by_process(const struct validation *v)
{
	return cpython_facts(&v->python->build.layout)->build->has_debug_offsets;
}

/*
 * A thread's state is bound to it from before it runs until after its end (bind_tstate, unbind_tstate). Its id is set
 * before the bit is: *runs is false in between.
 */
static int check_status(const struct validation *v, uint64_t tstate, bool *runs)
{
	uint64_t addr = tstate + v->python->build.layout.tstate_status;
	uint32_t status;
	int err = validate_read(v, addr, &status, sizeof(status));

	if (err)
		return validate_unreadable(v, "a thread's status", addr, err);
	status &= PYBPF_TSTATE_INITIALIZED | PYBPF_TSTATE_BOUND | PYBPF_TSTATE_UNBOUND | PYBPF_TSTATE_GILSTATE |
		  PYBPF_TSTATE_ACTIVE;
	*runs = status & PYBPF_TSTATE_BOUND;
	if ((!*runs && status != PYBPF_TSTATE_INITIALIZED) || status & PYBPF_TSTATE_UNBOUND)
		return validate_contradict(v, "a thread's status", addr, status);
	return 0;
}

/* datastack_chunk, datastack_top and datastack_limit of a PyThreadState. */
struct data_stack {
	uint64_t chunk, top, limit;
};

/* Returns whether the top lies in the chunk. Sets *previous to the chunk before it. */
static bool chunk_has(const struct validation *v, uint64_t chunk, uint64_t top, uint64_t *previous)
{
	struct cpython_stack_chunk head;

	*previous = 0;
	if (!validate_is_address(chunk) || validate_read(v, chunk, &head, sizeof(head)))
		return false;
	*previous = head.previous;
	return head.size % CPYTHON_CHUNK_UNIT == 0 && top > chunk && top - chunk <= head.size;
}

/*
 * A thread that gets a chunk or gives one back sets the chunk, the top and the limit one after the other, with a system
 * call between them (push_chunk() and _PyThreadState_PopFrame() in Python/pystate.c), in which it can be for long: its
 * top is in the chunk or in the one before it.
 */
static bool fits(const struct validation *v, const struct data_stack *stack)
{
	uint64_t previous, ignored;

	return chunk_has(v, stack->chunk, stack->top, &previous) || chunk_has(v, previous, stack->top, &ignored);
}

static int check_data_stack(const struct validation *v, uint64_t tstate)
{
	uint64_t addr = tstate + v->python->build.layout.tstate_datastack_top - 8;
	struct data_stack stack, again;
	int err = validate_read(v, addr, &stack, sizeof(stack));

	if (err)
		return validate_unreadable(v, "a thread's data stack", addr, err);
	/* A thread may have no chunk. */
	if (!stack.chunk)
		return 0;
	if (!validate_is_address(stack.chunk) || !validate_is_address(stack.limit))
		return validate_contradict(v, "a thread's data stack", addr, stack.chunk);
	if (fits(v, &stack))
		return 0;
	/* A chunk that was given back meanwhile shows nothing. */
	err = validate_read(v, addr, &again, sizeof(again));
	if (err)
		return validate_unreadable(v, "a thread's data stack", addr, err);
	if (memcmp(&stack, &again, sizeof(stack)) != 0)
		return 0;
	return validate_contradict(v, "the top of a thread's data stack", addr + 8, stack.top);
}

int validate_thread_fields(const struct validation *v, uint64_t tstate, bool *runs)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	int err = 0;

	*runs = true;
	if (!is_told_by_process(v))
		return 0;
	if (layout->tstate_status)
		err = check_status(v, tstate, runs);
	if (!err && *runs && layout->tstate_datastack_top)
		err = check_data_stack(v, tstate);
	return err;
}

/* The address of the GIL is 0 before it is made. So a 0 in a wrong place passes this check. */
static int check_gil(const struct validation *v, uint64_t interp)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	uint64_t addr = interp + layout->interp_gil, gil;
	struct {
		uint64_t last_holder;
		int32_t locked; /* -1 before it is made */
	} owner;
	int err = validate_read(v, addr, &gil, sizeof(gil));

	if (err)
		return validate_unreadable(v, "an interpreter's GIL", addr, err);
	if (!gil)
		return 0;
	if (!validate_is_address(gil))
		return validate_contradict(v, "an interpreter's GIL", addr, gil);
	gil += PYBPF_GIL_LAST_HOLDER + (layout->free_threaded ? PYBPF_GIL_ENABLED : 0);
	err = validate_read(v, gil, &owner, sizeof(owner));
	if (err)
		return validate_unreadable(v, "a GIL", gil, err);
	if (owner.last_holder && !validate_is_address(owner.last_holder))
		return validate_contradict(v, "a GIL's last holder", gil, owner.last_holder);
	if (owner.locked < -1 || owner.locked > 1)
		return validate_contradict(v, "whether a GIL is held", gil + 8, (uint32_t)owner.locked);
	return 0;
}

/* This tells an address from a number, but not one counter from another. */
static int check_code_guard(const struct validation *v, uint64_t interp)
{
	uint64_t addr = interp + v->python->build.layout.interp_code_guard, count;
	int err = validate_read(v, addr, &count, sizeof(count));

	if (err)
		return validate_unreadable(v, "an interpreter's count of code objects", addr, err);
	if (count > MOST_CODE_OBJECTS)
		return validate_contradict(v, "an interpreter's count of code objects", addr, count);
	return 0;
}

int validate_interpreter_fields(const struct validation *v, uint64_t interp)
{
	const struct pybpf_layout *layout = &v->python->build.layout;
	int err = 0;

	if (!is_told_by_process(v))
		return 0;
	if (layout->interp_gil)
		err = check_gil(v, interp);
	if (!err && layout->code_guard_size == sizeof(uint64_t))
		err = check_code_guard(v, interp);
	return err;
}
