/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Walks one thread in the Pythons of its process. Most processes have one Python. If there are several, a thread can be
 * in more than one at once: a function of one calls C code that calls a function of another. All of them are walked,
 * and the sample counts the innermost stack: the one whose innermost run of the evaluation loop lies lowest on the C
 * stack.
 */
#ifndef PYBPF_RUNTIMES_BPF_H
#define PYBPF_RUNTIMES_BPF_H

#include "maps.bpf.h"

/* Returns whether the runtime has an interpreter. */
static __always_inline bool is_running(const struct pybpf_runtime *runtime)
{
	__u64 interp = 0;

	compat_read_user(&interp, sizeof(interp), runtime->interp_head);
	return interp;
}

/* Returns the thread that a thread state belongs to. */
static __always_inline __u64 thread_of(const struct pybpf_layout *l, __u64 tstate)
{
	__u64 thread = 0;

	if (tstate)
		compat_read_user(&thread, sizeof(thread), tstate + l->tstate_thread_id);
	return thread;
}

/* Interpreters whose lists of threads are watched; with more of them, each sample of a foreign thread is a search. */
#define WATCHED_INTERPRETERS 16

/* The interpreters whose lists of threads have been hashed so far. */
struct hashed_lists {
	__u64 next; /* address of the pointer to the next interpreter */
	__u64 hash;
};

/*
 * Adds the next interpreter's list. Returns 1 when there is none. A global function, so that the verifier goes through
 * it once, and not once for each interpreter.
 */
__noinline int hash_list(struct hashed_lists *lists, const struct pybpf_layout *l)
{
	__u64 interp = 0, id_and_head[2] = {};

	if (!lists || !l)
		return 1;
	compat_read_user(&interp, sizeof(interp), lists->next);
	if (!interp)
		return 1;
	compat_read_user(id_and_head, sizeof(id_and_head), interp + l->interp_threads_head - sizeof(id_and_head[0]));
	lists->hash = walk_mix(walk_mix(lists->hash, interp), id_and_head[0]);
	lists->hash = walk_mix(walk_mix(lists->hash, id_and_head[1]), thread_of(l, id_and_head[1]));
	lists->next = interp + l->interp_next;
	return 0;
}

/*
 * Returns a hash that changes when an interpreter or a thread state is made; 0 if it is not known. Lists have the
 * newest thread state first. The next one, of the same thread, may be at the same address: from 3.11 on the word before
 * the list's head, threads.next_unique_id, tells them apart. A thread state is in the list before its thread runs, and
 * names its thread only when that has begun. A global function with numbers for arguments (kernel 5.6), so that the
 * verifier checks it once, and not for each path that leads to it.
 */
__noinline __u64 thread_lists(__u32 layout, __u64 interp_head)
{
	const struct pybpf_layout *l = layout_get(layout);
	struct hashed_lists lists = {.next = interp_head};

	if (!l)
		return 0;
	for (int i = 0; i < WATCHED_INTERPRETERS; i++) {
		if (hash_list(&lists, l))
			return lists.hash;
	}
	return 0;
}

/* Samples after which a thread that was found to be no Python thread is searched for anew in any case. */
#define NEGATIVE_AGE 64

/* Returns whether an earlier search found that this is no Python thread, and its result is still valid. */
static __always_inline bool is_foreign(struct thread_cache *cache, const struct pybpf_runtime *runtime)
{
	return cache->lists && ++cache->age < NEGATIVE_AGE &&
	       cache->lists == thread_lists(runtime->layout, runtime->interp_head);
}

/*
 * Says whose frames are walked, where pthread_self() is not the thread pointer. Where its distance is not known, it is
 * in a range. While there is no thread pointer, the only thread of a process has any thread state.
 */
static __always_inline void choose_thread(struct scratch *s, __u16 bias)
{
	struct walk *w = &s->walk;

	w->thread_id = w->thread_last = s->thread_pointer;
	if (!s->thread_pointer && compat_is_only_thread(compat_task())) {
		w->thread_id = 1;
		w->thread_last = ~0ull;
	} else if (s->thread_pointer && bias == PYBPF_NO_THREAD_BIAS) {
		w->thread_id -= PYBPF_THREAD_BIAS_MAX;
	} else if (s->thread_pointer) {
		w->thread_id = w->thread_last = s->thread_pointer - bias;
	}
}

/* Keeps how far pthread_self() is from the thread pointer, which a walk in a range has found. */
static __noinline void keep_thread_bias(const struct scratch *s)
{
	__u64 bias = s->walk.thread_last - s->walk.thread_id;
	__u32 tgid = compat_pid_tgid(compat_task()) >> 32;
	struct pybpf_proc *proc;

	if (!bias || bias >= PYBPF_THREAD_BIAS_MAX || !s->walk.states.count)
		return;
	proc = bpf_map_lookup_elem(&procs, &tgid);
	if (proc && proc->proc_id == s->walk.proc_id)
		proc->runtimes[s->runtime & (PYBPF_MAX_RUNTIMES - 1)].thread_bias = (__u16)bias;
}

/*
 * Begins the walk of the current thread in a runtime. Returns 0, and leaves the walk unchanged, if the thread is
 * known to have no thread state in it. A global function, as thread_lists.
 */
__noinline int begin_runtime(struct scratch *s, const struct pybpf_layout *l, const struct pybpf_runtime *runtime,
			     __u32 index)
{
	struct walk_states *known;
	struct thread_cache *cache;
	__u64 current = 0;

	if (!s || !l || !runtime)
		return 0;
	known = &s->last.states;
	if (COMPAT_THREAD_BIAS)
		choose_thread(s, runtime->thread_bias);
	if (runtime->tstate_current)
		compat_read_user(&current, sizeof(current), runtime->tstate_current);
	if (!known->count || s->nr_runtimes > 1) {
		cache = compat_thread_cache(index);
		if (cache && cache->proc_id != s->walk.proc_id)
			cache = NULL;
		if (cache && !cache->states.count && thread_of(l, current) != s->walk.thread_id &&
		    is_foreign(cache, runtime))
			return 0;
		known->count = 0;
		if (cache)
			*known = cache->states;
	}
	s->runtime = index;
	s->layout = runtime->layout;
	s->current = current;
	s->walk.interp_head = runtime->interp_head;
	s->walk.code_type = runtime->code_type;
	if (cfg_async) {
		s->walk.asyncio = runtime->asyncio;
		s->walk.layout = runtime->layout;
	}
	s->walk.nr_candidates = s->nr_registers;
	walk_start(&s->walk, l, current, known);
	return 1;
}

/*
 * A thread that began later than this before its sample may be one of Python's that has not said so: to 3.11 its thread
 * state names the thread that made it until then (new_threadstate, t_bootstrap), and the list's head may be another.
 */
#define YOUNG_NS 1000000000ull

static __always_inline bool is_young(void)
{
	return bpf_ktime_get_boot_ns() < compat_thread_start(compat_task()) + YOUNG_NS;
}

/* Caches what the walk found out about the thread, for its next samples. */
static __always_inline void remember_thread(struct scratch *s)
{
	struct thread_cache *cache;

	if (s->walk.remembered || s->walk.result == WALK_UNREADABLE)
		return;
	if (COMPAT_THREAD_BIAS) {
		/* Nothing was found out about a thread of which nothing is known. */
		if (!s->thread_pointer && !s->walk.states.count)
			return;
		keep_thread_bias(s);
	}
	s->last.states = s->walk.states;
	cache = compat_thread_cache(s->runtime);
	if (!cache)
		return;
	cache->states = s->walk.states;
	cache->lists =
		cache->states.count || s->walk.unbound || is_young() ? 0 : thread_lists(s->layout, s->walk.interp_head);
	cache->proc_id = s->walk.proc_id;
	cache->age = 0;
}

/* Outcomes of a runtime's walk for the thread: a greater one is better. */
enum runtime_rank {
	RUNTIME_NO_INTERPRETER,
	RUNTIME_NO_THREAD_STATE,
	RUNTIME_NO_FRAMES,
	RUNTIME_UNREADABLE,
	RUNTIME_FRAMES,
};

static __always_inline enum runtime_rank rank_of(const struct walk *w)
{
	if (w->result == WALK_NO_INTERPRETER)
		return RUNTIME_NO_INTERPRETER;
	if (w->result == WALK_NO_THREAD_STATE)
		return RUNTIME_NO_THREAD_STATE;
	if (w->result == WALK_UNREADABLE)
		return RUNTIME_UNREADABLE;
	if (w->stack.depth)
		return RUNTIME_FRAMES;
	return w->stack.flags & PYBPF_STACK_FAULT ? RUNTIME_UNREADABLE : RUNTIME_NO_FRAMES;
}

/*
 * Compares the walk's outcome with the best one so far. The place of a run on the C stack is known from Python 3.10 on;
 * without it the Python that the thread is attached to is taken, and the stack is flagged, as the other may be running.
 */
static __always_inline void judge_runtime(struct scratch *s)
{
	struct runtime_turns *turns = &s->turns;
	struct walk *w = &s->walk;
	__u64 run = w->run ? w->run : w->entry;
	__u32 rank = rank_of(w), attached = w->attached || w->current;

	if (rank >= RUNTIME_UNREADABLE && turns->rank >= RUNTIME_UNREADABLE) {
		if (run && turns->run) {
			turns->flags |= PYBPF_STACK_OUTER;
			if (run > turns->run)
				return;
		} else {
			turns->flags |= PYBPF_STACK_BESIDE;
			if (rank < turns->rank || (rank == turns->rank && attached <= turns->attached))
				return;
		}
	} else if (rank <= turns->rank) {
		return;
	}
	turns->best = s->runtime;
	turns->rank = rank;
	turns->run = run;
	turns->attached = attached;
}

/* Sets the outcome of the walk after all turns; the walk holds the best runtime's stack, unless no runtime has one. */
static __always_inline void settle_runtimes(struct scratch *s)
{
	const struct runtime_turns *turns = &s->turns;
	struct thread_cache *cache;

	if (turns->rank < RUNTIME_UNREADABLE) {
		walk_clear_stack(&s->walk);
		s->walk.attached = 0;
		s->walk.current = 0;
		s->walk.result = turns->rank == RUNTIME_NO_INTERPRETER    ? WALK_NO_INTERPRETER
				 : turns->rank == RUNTIME_NO_THREAD_STATE ? WALK_NO_THREAD_STATE
									  : WALK_OK;
		return;
	}
	s->walk.stack.flags |= turns->flags & PYBPF_STACK_BESIDE ? PYBPF_STACK_BESIDE : turns->flags;
	cache = compat_thread_cache(0);
	if (cache)
		cache->runtime = turns->best;
}

static __always_inline int begin_turn(struct scratch *s, __u32 index)
{
	const struct pybpf_runtime *runtime = &s->turns.of[index & (PYBPF_MAX_RUNTIMES - 1)];
	const struct pybpf_layout *l = layout_get(runtime->layout);

	/* A library that is mapped but not used, as a rule as an extension module was linked with it, has no
	 * interpreter. */
	if (!l || runtime->refused || !is_running(runtime))
		return 0;
	if (begin_runtime(s, l, runtime, index)) {
		s->turns.walked = index;
		return 1;
	}
	if (s->turns.rank < RUNTIME_NO_THREAD_STATE)
		s->turns.rank = RUNTIME_NO_THREAD_STATE;
	return 0;
}

/*
 * Called before the first walk and after each. Returns 1 when another walk has to be done, with s->layout; 0 when the
 * walk holds the outcome. The runtime whose stack was taken at the thread's last sample comes last, as the walk then
 * holds its stack already if it is the best one.
 */
static __noinline int next_runtime(struct scratch *s)
{
	struct runtime_turns *turns = &s->turns;

	if (turns->turn) {
		remember_thread(s);
		if (!turns->repeats_best)
			judge_runtime(s);
	}
	for (__u32 i = 0; i < PYBPF_MAX_RUNTIMES; i++) {
		if (turns->turn >= s->nr_runtimes)
			break;
		if (begin_turn(s, (turns->first + turns->turn++) % s->nr_runtimes))
			return 1;
	}
	if (!turns->repeats_best && turns->rank >= RUNTIME_UNREADABLE && turns->walked != turns->best) {
		turns->repeats_best = 1;
		if (begin_turn(s, turns->best))
			return 1;
		walk_no_stack(&s->walk);
	}
	settle_runtimes(s);
	return 0;
}

/* Prepares the turns of several runtimes: next_runtime comes before the first walk. */
static __always_inline void prepare_turns(struct scratch *s, const struct pybpf_proc *proc)
{
	const struct thread_cache *cache = compat_thread_cache(0);
	struct runtime_turns *turns = &s->turns;

	__builtin_memcpy(turns->of, proc->runtimes, sizeof(turns->of));
	turns->turn = 0;
	turns->first = (cache ? cache->runtime & (PYBPF_MAX_RUNTIMES - 1) : 0) + 1;
	turns->walked = PYBPF_MAX_RUNTIMES;
	turns->repeats_best = 0;
	turns->best = PYBPF_MAX_RUNTIMES;
	turns->rank = RUNTIME_NO_INTERPRETER;
	turns->run = 0;
	turns->attached = 0;
	turns->flags = 0;
	s->runtime = 0;
	s->layout = proc->runtimes[0].layout;
	s->walk.task_due = 0;
	/* Where no runtime is walked, nothing of an earlier sample's thread is taken for this one's. */
	s->walk.interp_head = proc->runtimes[0].interp_head;
	s->walk.tstate = 0;
	s->walk.tstate_interp = 0;
}

/* Returns whether there is a walk to do before next_runtime is called. */
static __always_inline bool has_walk(const struct scratch *s)
{
	return s->nr_runtimes < 2 || s->turns.turn;
}

#endif
