/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* From a finished walk to a counted sample: what it has in place of a stack, its stack's number, its key, its counters.
 */
#ifndef PYBPF_OUTCOME_BPF_H
#define PYBPF_OUTCOME_BPF_H

#include "announce.bpf.h"
#include "callback.bpf.h"
#include "count.h"
#include "maps.bpf.h"
#include "native.bpf.h"
#include "opcode.bpf.h"
#include "runtimes.bpf.h"
#include "thread_activity.bpf.h"
#include "task.bpf.h"
#include "wait_time.bpf.h"

/* Counts are kept per thread. */
const volatile bool cfg_threads;
/* Samples without Python frames are counted in the account only. */
const volatile bool cfg_python_only;
/*
 * The most keys of samples without Python frames in a set of counts, so that the native threads of a process, however
 * many and however named, leave room for Python stacks. Beyond it such samples are counted by process only.
 */
const volatile __u32 cfg_max_no_frames;
/* Number of these keys, by set; user space lowers it when it deletes them. */
__u64 no_frames_keys[PYBPF_SETS];

/* CLOCK_MONOTONIC time of the first counted sample with Python frames, in ns; 0: no such sample yet. */
__u64 first_sample_ns;

/* The context of all programs that take samples. */
#define CONTEXT PYBPF_CONTEXT_EVENT

/* With a single kind cfg_kind is a constant, and the verifier removes the code for other kinds. */
static __always_inline __u32 kind_of(const struct scratch *s)
{
	return cfg_cookies ? s->kind : cfg_kind;
}

static __always_inline __u64 value_of(const struct scratch *s)
{
	return kind_of(s) == PYBPF_KIND_CPU ? 0 : s->value;
}

/* Returns the number of a stack of that hash. */
static __always_inline __u64 stack_id_of(const struct scratch *s, __u64 hash)
{
	__u64 id = cfg_kernel_stacks && s->nr_kernel ? walk_mix(hash, s->kernel_hash) : hash;

	if (cfg_native)
		id = walk_mix(id, s->native_hash);
	return id < PYBPF_STACK_ID_STACKS ? id + PYBPF_STACK_ID_STACKS : id;
}

static __always_inline void make_key(const struct scratch *s, struct pybpf_count_key *key)
{
	*key = (struct pybpf_count_key){
		.stack_id = s->walk.stack.stack_id,
		.thread.proc_id = s->walk.proc_id,
		.kind = kind_of(s),
		.no_frames_reason = s->walk.stack.pseudo.no_frames_reason,
	};
	if (!cfg_threads)
		return;
	key->thread.tid = s->tid;
	key->thread.tid_start_ms = (__u32)(compat_thread_start(compat_task()) / NS_PER_MS);
}

/* Keeps the name of the current thread. The first time, user space is told of it: it looks for a name in Python. */
static __always_inline void name_thread(const struct pybpf_thread_key *current)
{
	const struct pybpf_thread_key thread = *current; /* what it is in may change meanwhile */
	struct pybpf_thread_name name;

	if (!bpf_map_lookup_elem(&thread_names, &thread))
		send_thread(&thread);

	bpf_get_current_comm(&name.comm, sizeof(name.comm));
	bpf_map_update_elem(&thread_names, &thread, &name, BPF_ANY);
}

/* Counts a sample that found no room in map counts. err: of stack_count. */
static __always_inline void count_no_room(long err)
{
	count(CONTEXT, err == -ENOMEM  ? PYBPF_COUNT_MEMORY_FULL
		       : err == -E2BIG ? PYBPF_COUNT_TABLE_FULL
				       : PYBPF_COUNT_TABLE_BUSY);
}

/* Makes the stack record that stands for samples without Python frames. */
static __always_inline void make_pseudo_stack(struct scratch *s, __u32 reason, bool named)
{
	struct pybpf_stack_event *stack = &s->walk.stack;
	__u64 comm[2] = {};

	if (named)
		bpf_get_current_comm(comm, sizeof(comm));
	stack->depth = 0;
	stack->flags = 0;
	stack->task_id = 0;
	stack->opcode = 0;
	stack->pseudo.no_frames_reason = reason;
	__builtin_memcpy(stack->pseudo.comm, comm, sizeof(comm));
	stack->stack_id = stack_id_of(s, walk_mix(walk_mix(walk_mix(reason, comm[0]), comm[1]), s->walk.proc_id));
}

/* Returns whether a new key of a sample without Python frames would be one too many. */
static __always_inline bool no_frames_is_full(__u32 sets, const struct pybpf_count_key *key)
{
	void *map;

	if (no_frames_keys[PYBPF_COUNTS_SET(sets)] < cfg_max_no_frames)
		return false;
	map = counts_of(sets);
	return map && !bpf_map_lookup_elem(map, key);
}

/* Sends the time of a sample, if times are kept. Returns 1 if it is lost. */
static __always_inline int lose_time(__u32 sets, const struct pybpf_count_key *key)
{
	return cfg_times && (!takes_new_stacks() || times_full || send_time(sets, key));
}

/*
 * Counts a sample of a chosen Python process that has no Python frames, in the account and in a pseudo stack of the
 * profile: that of a thread without Python is by thread name. A global function (kernel 5.6), so that the verifier
 * checks it once.
 */
__noinline int count_without_frames(__u32 reason)
{
	struct scratch *s = scratch_get(CONTEXT);
	struct pybpf_count_key key;
	int fresh, send;
	long err;

	if (!s || reason >= PYBPF_NR_COUNTERS || cfg_gil_waits)
		return 0;
	if (cfg_python_only) {
		count(CONTEXT, reason);
		return 0;
	}
	make_pseudo_stack(s, reason, reason == PYBPF_COUNT_NO_THREAD_STATE);
	make_key(s, &key);
	s->sets = sets_now();
	if (no_frames_is_full(s->sets, &key)) {
		s->nr_kernel = 0;
		native_forget(s, CONTEXT);
		make_pseudo_stack(s, reason, false);
		make_key(s, &key);
		key.thread.tid = key.thread.tid_start_ms = 0;
	}
	err = stack_count(s->sets, &key, value_of(s), takes_new_stacks(), &fresh, &send);
	if (err) {
		count_no_room(err);
		return 0;
	}
	if (fresh)
		__sync_fetch_and_add(&no_frames_keys[PYBPF_COUNTS_SET(s->sets)], 1);
	if (fresh && key.thread.tid)
		name_thread(&key.thread);
	count(CONTEXT, reason);
	send_touch(s, &key);
	if (lose_time(s->sets, &key))
		count(CONTEXT, PYBPF_COUNT_UNTIMED);
	if (send && send_stack(s))
		stack_unsent(s->sets, key.stack_id);
	return 0;
}

/* Returns the counter for a sample whose walk is finished; PYBPF_COUNT_PYTHON if it has a stack. */
static __always_inline enum pybpf_counter classify(const struct walk *w)
{
	if (w->result == WALK_NO_INTERPRETER)
		return PYBPF_COUNT_NO_INTERPRETER;
	if (w->result == WALK_NO_THREAD_STATE)
		return PYBPF_COUNT_NO_THREAD_STATE;
	if (w->result == WALK_UNREADABLE)
		return PYBPF_COUNT_UNREADABLE;
	if (!w->stack.depth)
		return w->stack.flags & PYBPF_STACK_FAULT ? PYBPF_COUNT_UNREADABLE : PYBPF_COUNT_NO_FRAMES;
	return PYBPF_COUNT_PYTHON;
}

/* Gives the walked stack its number. */
static __always_inline void number_stack(struct scratch *s)
{
	struct walk *w = &s->walk;
	__u64 hash = walk_mix(walk_mix(w->hash, w->proc_id), (__u64)w->stack.flags << 32 | w->stack.depth);

	w->stack.pseudo.no_frames_reason = 0;
	if (cfg_async && w->stack.task_id)
		hash = walk_mix(walk_mix(hash, w->stack.task_id), w->stack.task_depth);
	if (cfg_opcodes)
		hash = walk_mix(hash, w->stack.opcode);
	w->stack.stack_id = stack_id_of(s, hash);
}

/* Raises the counters of a sample that has been added to map counts. */
static __always_inline void count_python(const struct walk *w, int untimed)
{
	struct pybpf_counters *c = counters_get(CONTEXT);
	__u32 flags = w->stack.flags;

	if (!c)
		return;
	c->value[PYBPF_COUNT_PYTHON]++;
	if (untimed)
		c->value[PYBPF_COUNT_UNTIMED]++;
	if (w->in_jit)
		c->value[PYBPF_COUNT_JIT]++;
	if (w->compiled)
		c->value[PYBPF_COUNT_COMPILED]++;
	if (!flags)
		return;
	c->value[PYBPF_COUNT_CUT] += !!(flags & PYBPF_STACK_CUT);
	c->value[PYBPF_COUNT_NO_ROOT] += !!(flags & PYBPF_STACK_NO_ROOT);
	c->value[PYBPF_COUNT_FAULT] += !!(flags & PYBPF_STACK_FAULT);
	c->value[PYBPF_COUNT_NOT_CODE] += !!(flags & PYBPF_STACK_NOT_CODE);
	c->value[PYBPF_COUNT_CYCLE] += !!(flags & PYBPF_STACK_CYCLE);
	c->value[PYBPF_COUNT_OUTER] += !!(flags & PYBPF_STACK_OUTER);
	c->value[PYBPF_COUNT_BESIDE] += !!(flags & PYBPF_STACK_BESIDE);
	c->value[PYBPF_COUNT_NO_CALLERS] += !!(flags & PYBPF_STACK_NO_CALLERS);
}

/*
 * Looks at the finished walk. Returns 1 when the sample has a stack, which is then numbered; else it has been counted,
 * if it was wanted.
 */
static __noinline int sample_describe(struct scratch *s)
{
	enum pybpf_counter outcome = classify(&s->walk);

	if (s->nr_runtimes < 2)
		remember_thread(s);
	if (cfg_gil_waits) {
		state_count_holder(s);
		return 0;
	}
	if (outcome == PYBPF_COUNT_UNREADABLE) {
		count(CONTEXT, outcome);
		return 0;
	}
	if (outcome != PYBPF_COUNT_PYTHON) {
		count_without_frames(outcome);
		return 0;
	}
	if (cfg_gil || cfg_exception || cfg_gc) {
		outcome = state_judge(s);
		if (outcome != PYBPF_COUNT_PYTHON) {
			count(CONTEXT, outcome);
			return 0;
		}
	}
	if (cfg_async)
		take_tasks(s, CONTEXT);
	if (cfg_opcodes)
		take_opcode();
	number_stack(s);
	return 1;
}

/* Returns why the finished walk has no stack, an enum pybpf_stack_id; 0 when it has one, whose tasks are then known. */
static __noinline __u64 find_no_stack(struct scratch *s)
{
	enum pybpf_counter outcome = classify(&s->walk);

	if (s->nr_runtimes < 2)
		remember_thread(s);
	if (cfg_states_only)
		return PYBPF_STACK_ID_SHORT;
	if (outcome == PYBPF_COUNT_NO_THREAD_STATE)
		return PYBPF_STACK_ID_NO_THREAD;
	if (outcome == PYBPF_COUNT_NO_INTERPRETER)
		return PYBPF_STACK_ID_NO_INTERPRETER;
	if (outcome == PYBPF_COUNT_NO_FRAMES)
		return PYBPF_STACK_ID_NO_FRAMES;
	if (outcome != PYBPF_COUNT_PYTHON)
		return PYBPF_STACK_ID_UNREADABLE;
	if (cfg_async)
		take_tasks(s, PYBPF_CONTEXT_SWITCH);
	return 0;
}

/*
 * Counts the stack. Returns 1 when it has to be sent now: then this caller, and no other one on any CPU, announces its
 * code objects, sends it, and calls stack_unsent if that fails.
 */
static __noinline int sample_count(struct scratch *s)
{
	struct pybpf_count_key key;
	int fresh, send;
	long err;

	if (cfg_loop_block_ns) {
		run_sampled();
		callback_see(CONTEXT, 0);
	}
	make_key(s, &key);
	s->sets = sets_now();
	err = stack_count(s->sets, &key, value_of(s), takes_new_stacks(), &fresh, &send);
	if (err) {
		count_no_room(err);
		return 0;
	}
	if (fresh && cfg_threads)
		name_thread(&key.thread);
	send_touch(s, &key);
	count_python(&s->walk, lose_time(s->sets, &key));
	if (!first_sample_ns)
		first_sample_ns = compat_monotonic_ns();
	return send;
}

#endif
