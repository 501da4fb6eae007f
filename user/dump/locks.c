// SPDX-License-Identifier: Apache-2.0
/*
 * Reads locks off the evaluation stacks of frames. Inside a with statement the method that leaves it stays on the stack
 * below whatever the body does: to 3.10 the frame's stack of blocks says how far that reaches, from 3.11 on the code
 * object's table of exceptions. The method comes on the stack before the lock is there, but is below that mark only
 * after it.
 */
#include "dump/locks.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cpython/facts.h"
#include "dump/join.h"
#include "dump/variables.h"
#include "symbols/exception_table.h"
#include "symbols/objects/py_frame.h"
#include "symbols/objects/py_lock.h"
#include "symbols/code_content.h"
#include "symbols/words.h"

/* Most items of a stack, and bytes of a table, that are looked at. */
#define STACK_MAX 256
#define TABLE_MAX 16384

/* pthread_mutex_t of glibc: __lock, __count, __owner, __nusers, __kind. Threads wait where __lock is 2. */
struct mutex {
	uint32_t lock, count, owner, users, kind;
};
#define MUTEX_CONTENDED 2
/* __kind: PTHREAD_MUTEX_ADAPTIVE_NP is the last of the types, which stand in the two lowest bits. */
#define MUTEX_KINDS 4

struct reader {
	struct py_values *v;
	const struct walk_memory *memory;
	const struct pybpf_layout *layout;
	const struct walk_stack *stack;
	struct dump_locks *out;
	uint8_t table[TABLE_MAX];
	uint32_t joining; /* functions of Thread.join(): they give back no lock of its callers */
};

/* Where the items of a frame's evaluation stack are; how many of them are surely there; how many there may be. */
struct items {
	uint64_t at;
	uint32_t sure, most;
};

static bool get(struct reader *r, uint64_t at, void *dst, size_t size)
{
	return !py_values_read(r->v, at, dst, size);
}

static bool read_stack_size(struct reader *r, uint64_t code, uint32_t *out)
{
	const struct pybpf_layout *l = r->layout;

	return get(r, code + cpython_header_size(l) + cpython_facts(l)->code->stacksize, out, sizeof(*out));
}

static bool has_blocks(const struct reader *r)
{
	return cpython_facts(r->layout)->frame->block_stack != 0;
}

static bool find_old_items(struct reader *r, uint64_t frame, struct items *out)
{
	uint64_t count_at = frame + py_frame_locals(r->layout) - PYBPF_BLOCK_COUNT_BEFORE_LOCALS;
	uint64_t blocks = count_at + cpython_facts(r->layout)->frame->block_stack;
	int32_t count, level;

	out->sure = 0;
	if (!get(r, frame + cpython_header_size(r->layout) + PYBPF_FRAME_VALUESTACK, &out->at, sizeof(out->at)) ||
	    !get(r, count_at, &count, sizeof(count)) || count < 0 || count > PYBPF_BLOCKS)
		return false;
	if (!count)
		return true;
	if (!get(r, blocks + (uint64_t)(count - 1) * PYBPF_BLOCK_SIZE + PYBPF_BLOCK_LEVEL, &level, sizeof(level)) ||
	    level < 0)
		return false;
	out->sure = (uint32_t)level;
	return true;
}

static bool find_new_items(struct reader *r, const struct pybpf_frame *frame, uint64_t address, struct items *out)
{
	const struct pybpf_layout *l = r->layout;
	uint64_t fields = frame->code + cpython_header_size(l), table, size;
	uint32_t variables;

	if (!get(r, fields + cpython_facts(l)->code->exception_table, &table, sizeof(table)) ||
	    !get(r, fields + cpython_facts(l)->code->nlocalsplus, &variables, sizeof(variables)) ||
	    !get(r, table + l->bytes_size, &size, sizeof(size)) || size > TABLE_MAX ||
	    !get(r, table + l->bytes_data, r->table, size))
		return false;
	out->at = address + py_frame_locals(l) + 8ull * variables;
	out->sure = 0;
	if (frame->position != PYBPF_NO_POSITION && frame->position >= l->code_adaptive)
		out->sure = py_exception_depth(r->table, size, (uint32_t)(frame->position - l->code_adaptive) / 2);
	return true;
}

static bool find_items(struct reader *r, uint32_t index, struct items *out)
{
	const struct pybpf_frame *frame = &r->stack->frames[index];
	uint64_t address = r->stack->addresses[index];

	if (frame->kind == PYBPF_FRAME_MARKER || !address || !read_stack_size(r, frame->code, &out->most))
		return false;
	if (!(has_blocks(r) ? find_old_items(r, address, out) : find_new_items(r, frame, address, out)))
		return false;
	if (out->most > STACK_MAX)
		out->most = STACK_MAX;
	return out->sure <= out->most;
}

/* Condition.wait() gives the lock back that its caller's with statement has taken, until it returns. */
static bool is_wait(struct reader *r, uint32_t index)
{
	const struct pybpf_layout *l = r->layout;
	uint64_t name_at;
	char *name = NULL;
	bool waits;

	if (r->stack->frames[index].kind != PYBPF_FRAME_MARKER &&
	    get(r, r->stack->frames[index].code + l->code_name, &name_at, sizeof(name_at)))
		name = py_values_name(r->v, name_at);
	waits = name && (!strcmp(name, "wait") || !strcmp(name, "wait_for"));
	free(name);
	return waits;
}

static bool is_known(const struct dump_locks *locks, uint64_t place)
{
	for (uint32_t i = 0; i < locks->nr_held; i++) {
		if (locks->held[i] == place)
			return true;
	}
	return false;
}

/* Returns whether the function's code gives something back by its name, or is not known. */
static bool may_release(struct reader *r, const struct pybpf_frame *frame)
{
	static const char release[] = {PYSYM_WORD_NAME, 'r', 'e', 'l', 'e', 'a', 's', 'e', '\0'};
	static const char exits[] = {PYSYM_WORD_NAME, '_', '_', 'e', 'x', 'i', 't', '_', '_', '\0'};
	size_t size;
	char *words;
	bool found;

	if (frame->kind == PYBPF_FRAME_MARKER)
		return false;
	words = pysym_words_read(r->memory, r->layout, frame->code, frame->sig, &size);
	found = !words || memmem(words, size, release, sizeof(release)) || memmem(words, size, exits, sizeof(exits));
	free(words);
	return found;
}

/*
 * Returns whether the functions from the one with the with statement to the leaf may have given the lock back that it
 * has taken: a Lock does not say who has it, and another thread may have taken it since. Only an RLock says it.
 */
static bool is_unsure(struct reader *r, uint32_t index, const struct py_lock *lock)
{
	for (uint32_t i = r->joining; i <= index && !lock->owner; i++) {
		if (may_release(r, &r->stack->frames[i]))
			return true;
	}
	return false;
}

static void read_held(struct reader *r, uint32_t index, const struct items *items)
{
	struct dump_locks *out = r->out;
	uint64_t words[STACK_MAX + 1] = {0};
	struct py_lock lock;

	if (!items->sure || !get(r, items->at, words, items->sure * sizeof(*words)))
		return;
	for (uint32_t i = 0; i < items->sure && out->nr_held < DUMP_LOCKS_MAX; i++) {
		uint64_t item = py_frame_object(r->layout, words[i]);
		uint64_t next = py_frame_object(r->layout, words[i + 1]);

		if (!py_lock_of_with(r->v, item, next, &lock) || !lock.is_locked || is_known(out, lock.place))
			continue;
		out->held_in[out->nr_held] = index;
		out->unsure[out->nr_held] = is_unsure(r, index, &lock);
		out->held[out->nr_held++] = lock.place;
	}
}

/* Finds the lock that the leaf waits for among all that its frame may have, and so who has it if it is an RLock. */
static void read_lock_owner(struct reader *r, const struct items *items)
{
	uint64_t first = r->stack->addresses[0] + py_frame_locals(r->layout), words[STACK_MAX * 2];
	uint64_t before = !has_blocks(r) && items->at > first ? (items->at - first) / 8 : 0;
	uint64_t from = before > STACK_MAX ? items->at - 8 * STACK_MAX : items->at - 8 * before;
	size_t count = (items->at - from) / 8 + items->most;
	struct py_lock lock;

	if (!get(r, from, words, count * sizeof(*words)))
		return;
	for (size_t i = 0; i < count; i++) {
		uint64_t object = py_frame_object(r->layout, words[i]);

		if (!object ||
		    (!py_lock_read(r->v, object, &lock) && !py_lock_read(r->v, py_lock_bound_to(r->v, object), &lock)))
			continue;
		if (lock.place == r->out->wanted && lock.owner) {
			r->out->owner = lock.owner;
			return;
		}
	}
}

static void read_mutex(struct reader *r, uint64_t futex)
{
	struct mutex mutex;

	if (get(r, futex, &mutex, sizeof(mutex)) && mutex.lock == MUTEX_CONTENDED && mutex.users &&
	    (mutex.kind & 0x7f) < MUTEX_KINDS)
		r->out->mutex_owner = (pid_t)mutex.owner;
}

void dump_locks_read(const struct py_values_of *of, const struct walk_stack *stack, uint64_t futex,
		     struct dump_locks *out)
{
	uint32_t count = stack->depth > PYBPF_MAX_FRAMES ? PYBPF_HALF_FRAMES : stack->depth;
	struct reader *r = calloc(1, sizeof(*r));
	struct items items;
	bool waits = false;

	memset(out, 0, sizeof(*out));
	if (!r)
		return;
	*r = (struct reader){
		.v = py_values_new(of), .memory = of->memory, .layout = of->layout, .stack = stack, .out = out};
	if (r->v && futex) {
		out->wanted = py_lock_wanted(r->v, futex);
		read_mutex(r, futex);
		out->joins = dump_join_read(r->v, of, stack, &r->joining);
	}
	for (uint32_t i = 0; i < count && r->v && !py_values_are_over(r->v); i++) {
		if (find_items(r, i, &items)) {
			if (!i && out->wanted)
				read_lock_owner(r, &items);
			if (!waits)
				read_held(r, i, &items);
		}
		waits = waits || (i >= r->joining && is_wait(r, i));
	}
	py_values_free(r->v);
	free(r);
}

static bool is_same_frame(const struct walk_stack *a, uint32_t i, const struct walk_stack *b, uint32_t j)
{
	return a->addresses[i] == b->addresses[j] && !memcmp(&a->frames[i], &b->frames[j], sizeof(*a->frames));
}

void dump_locks_keep_same(struct dump_locks *locks, const struct walk_stack *stack, const struct walk_stack *again)
{
	uint32_t same = 0, kept = 0;

	if (stack->depth <= PYBPF_MAX_FRAMES && again->depth <= PYBPF_MAX_FRAMES) {
		while (same < stack->depth && same < again->depth &&
		       is_same_frame(stack, stack->depth - 1 - same, again, again->depth - 1 - same))
			same++;
	}
	for (uint32_t i = 0; i < locks->nr_held; i++) {
		if (locks->held_in[i] < stack->depth - same)
			continue;
		locks->held[kept] = locks->held[i];
		locks->unsure[kept] = locks->unsure[i];
		locks->held_in[kept++] = locks->held_in[i];
	}
	locks->nr_held = kept;
	locks->wanted = 0;
	locks->owner = 0;
	locks->joins = 0;
	locks->mutex_owner = 0;
}
