/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler: from a perf event's interrupt to a counted stack. */
#include "announce.bpf.h"
#include "compat.bpf.h"
#include "maps.bpf.h"
#include "count.h"
#include "process.bpf.h"
#include "runtimes.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Counts are kept per thread. */
const volatile bool cfg_threads;
/* The time of each sample is sent. */
const volatile bool cfg_times;

/* Set by user space when its memory is used up: stacks not known yet are lost while it is set. */
bool memory_full;
/* CLOCK_MONOTONIC time of the first counted sample with Python frames, in ns; 0: no such sample yet. */
__u64 first_sample_ns;

#define NS_PER_MS 1000000

/* The context of all programs in this file. */
#define CONTEXT PYBPF_CONTEXT_EVENT

/* Counts a sample of an undecided process, for user space to classify once it knows what the process is. */
static __always_inline void count_undecided(const struct pybpf_proc *proc)
{
	/* The sample counts as 1, whatever its kind. */
	struct pybpf_count_key key = {.stack_id = PYBPF_STACK_ID_UNDECIDED, .proc_id = proc->proc_id};
	void *map = counts_of(sets_now());
	struct pybpf_count *seen;
	int fresh;

	if (!map)
		return;
	seen = bpf_map_lookup_elem(map, &key);
	if (seen)
		count_add(seen, 0);
	else if (count_first(map, &key, 0, &fresh))
		count(CONTEXT, PYBPF_COUNT_TABLE_FULL);
}

/* Counts a sample of a process that is not in map procs because the map is full. Kernel threads are never in it. */
static __always_inline void sample_unknown(struct task_struct *task)
{
	if (!cfg_all || !procs_full || !compat_current_mm(task) || !filter_passes())
		return;
	count(CONTEXT, PYBPF_COUNT_NO_ROOM);
}

/*
 * Returns whether the sample is of a wanted process whose interpreter is known; otherwise counts why not, if the
 * process is wanted. A process without Python costs one look-up.
 */
static __always_inline bool sample_is_wanted(const struct pybpf_proc *proc, struct task_struct *task)
{
	if (cfg_all && (proc->state == PYBPF_PROC_OTHER || proc->state == PYBPF_PROC_UNWANTED))
		return false;
	if (!filter_passes())
		return false;
	if (proc->state == PYBPF_PROC_READY && proc->mm == compat_current_mm(task)) {
		if (compat_memory_is_current())
			return true;
		count(CONTEXT, PYBPF_COUNT_UNREADABLE);
		return false;
	}
	if (proc->state == PYBPF_PROC_READY || proc->state == PYBPF_PROC_OTHER)
		count(CONTEXT, PYBPF_COUNT_NO_INTERPRETER);
	else if (proc->state != PYBPF_PROC_UNWANTED)
		count_undecided(proc);
	return false;
}

/* The event that starts a program, and the type of its context. */
enum source {
	SOURCE_PERF_EVENT, /* struct bpf_perf_event_data */
	SOURCE_TRACEPOINT, /* the tracepoint's fields, which are not used */
};

/* With a single kind cfg_kind is a constant, and the verifier removes the code for other kinds. */
static __always_inline __u32 kind_of(const struct scratch *s)
{
	return cfg_cookies ? s->kind : cfg_kind;
}

static __always_inline __u64 value_of(const struct scratch *s)
{
	return kind_of(s) == PYBPF_KIND_CPU ? 0 : s->value;
}

static __always_inline void take_source(struct scratch *s, void *ctx, enum source source)
{
	struct walk *w = &s->walk;

	if (cfg_cookies)
		s->kind = compat_cookie(ctx);
	if (kind_of(s) != PYBPF_KIND_CPU)
		s->value = source == SOURCE_PERF_EVENT ? ((struct bpf_perf_event_data *)ctx)->sample_period : 1;
	s->nr_registers = source == SOURCE_PERF_EVENT ? compat_registers(ctx, w->candidates, &w->stack_pointer)
						      : compat_entry_registers(w->candidates, &w->stack_pointer);
}

/* Forgets the thread of this CPU's last sample, unless this sample is of the same thread and of a single runtime. */
static __always_inline void sample_thread(struct scratch *s, struct task_struct *task)
{
	__u64 start = compat_thread_start(task);

	if (s->nr_runtimes == 1 && s->last.task == (__u64)task && s->last.start == start &&
	    s->last.proc_id == s->walk.proc_id)
		return;
	s->last.task = s->nr_runtimes == 1 ? (__u64)task : 0;
	s->last.start = start;
	s->last.proc_id = s->walk.proc_id;
	s->last.states.count = 0;
}

/*
 * Does everything before the walk. Returns the scratch memory with the walk started, or NULL if the sample ends here;
 * it is then counted if it was wanted.
 */
static __always_inline struct scratch *sample_begin(void *ctx, enum source source, const struct pybpf_layout **layout)
{
	struct task_struct *task = compat_task();
	__u64 pid_tgid = compat_pid_tgid(task);
	__u32 tgid = pid_tgid >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	const struct pybpf_layout *l;
	struct scratch *s;
	int begun;

	if (!proc) {
		sample_unknown(task);
		return NULL;
	}
	if (!sample_is_wanted(proc, task))
		return NULL;
	if (compat_is_kernel_worker(task)) {
		count(CONTEXT, PYBPF_COUNT_NO_THREAD_STATE);
		return NULL;
	}
	s = scratch_get(CONTEXT);
	l = bpf_map_lookup_elem(&layouts, &proc->runtimes[0].layout);
	if (!s || !l) {
		count(CONTEXT, PYBPF_COUNT_NO_SCRATCH);
		return NULL;
	}
	s->walk.proc_id = proc->proc_id;
	s->tid = (__u32)pid_tgid;
	s->walk.thread_id = compat_thread_pointer(task);
	s->nr_runtimes = proc->nr_runtimes;
	take_source(s, ctx, source);
	sample_thread(s, task);
	if (s->nr_runtimes > 1) {
		begun = first_runtime(s, proc);
		l = bpf_map_lookup_elem(&layouts, &s->layout);
	} else {
		begun = begin_runtime(s, l, &proc->runtimes[0], 0);
	}
	if (!begun) {
		count(CONTEXT, s->nr_runtimes > 1 && s->turns.rank == RUNTIME_NO_INTERPRETER
				       ? PYBPF_COUNT_NO_INTERPRETER
				       : PYBPF_COUNT_NO_THREAD_STATE);
		return NULL;
	}
	*layout = l;
	return s;
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

static __always_inline void make_key(struct scratch *s, struct pybpf_count_key *key)
{
	struct walk *w = &s->walk;

	w->stack.stack_id = walk_mix(walk_mix(w->hash, s->walk.proc_id), (__u64)w->stack.flags << 32 | w->stack.depth);
	if (w->stack.stack_id == PYBPF_STACK_ID_UNDECIDED)
		w->stack.stack_id++;
	*key = (struct pybpf_count_key){
		.stack_id = w->stack.stack_id,
		.proc_id = s->walk.proc_id,
		.kind = kind_of(s),
	};
	if (!cfg_threads)
		return;
	key->tid = s->tid;
	key->tid_start_ms = (__u32)(compat_thread_start(compat_task()) / NS_PER_MS);
}

static __always_inline void name_thread(const struct pybpf_count_key *key)
{
	const struct pybpf_thread_key thread = {key->proc_id, key->tid, key->tid_start_ms};
	struct pybpf_thread_name name;

	bpf_get_current_comm(&name.comm, sizeof(name.comm));
	bpf_map_update_elem(&thread_names, &thread, &name, BPF_ANY);
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
 * Counts the finished walk. Returns 1 when its stack has to be sent now: then this caller, and no other one on any CPU,
 * announces its code objects, sends it, and calls stack_unsent if that fails.
 */
static __always_inline int sample_count(struct scratch *s)
{
	enum pybpf_counter outcome = classify(&s->walk);
	struct pybpf_count_key key;
	int fresh, send;
	long err;

	if (s->nr_runtimes < 2)
		remember_thread(s);
	if (outcome != PYBPF_COUNT_PYTHON) {
		count(CONTEXT, outcome);
		return 0;
	}
	make_key(s, &key);
	s->sets = sets_now();
	err = stack_count(s->sets, &key, value_of(s), !memory_full, &fresh, &send);
	if (err) {
		count(CONTEXT, err == -ENOMEM  ? PYBPF_COUNT_MEMORY_FULL
			       : err == -E2BIG ? PYBPF_COUNT_TABLE_FULL
					       : PYBPF_COUNT_TABLE_BUSY);
		return 0;
	}
	if (fresh && cfg_threads)
		name_thread(&key);
	count_python(&s->walk, cfg_times && (memory_full || send_time(s->sets, &key)));
	if (!first_sample_ns)
		first_sample_ns = compat_monotonic_ns();
	return send;
}

/* With bpf_loop (Linux 5.17, e6f2dd0f8067), one program takes the whole sample. */

struct loop_context {
	struct scratch *s;
	const struct pybpf_layout *l;
	int full;
};

static long loop_walk(__u32 i, struct loop_context *c)
{
	const struct pybpf_layout *l;

	if (!walk_step(&c->s->walk, c->l))
		return 0;
	if (c->s->nr_runtimes < 2 || !next_runtime(c->s))
		return 1;
	l = bpf_map_lookup_elem(&layouts, &c->s->layout);
	if (!l)
		return walk_no_stack(&c->s->walk);
	c->l = l;
	return 0;
}

static long loop_announce(__u32 i, struct loop_context *c)
{
	c->full = announce_code(c->s, c->l, i);
	return c->full;
}

static __always_inline int take_sample(void *ctx, enum source source)
{
	struct loop_context c = {};

	c.s = sample_begin(ctx, source, &c.l);
	if (!c.s || !c.l)
		return 0;
	if (bpf_loop(WALK_STEPS, loop_walk, &c, 0) == WALK_STEPS)
		walk_no_stack(&c.s->walk);
	if (!sample_count(c.s))
		return 0;
	bpf_loop(frames_kept(c.s), loop_announce, &c, 0);
	if (c.full || send_stack(c.s))
		stack_unsent(c.s->sets, c.s->walk.stack.stack_id);
	return 0;
}

SEC("?perf_event")
int sample_loop(void *ctx)
{
	return take_sample(ctx, SOURCE_PERF_EVENT);
}

/*
 * Programs on perf's tracepoints and on perf events exclude each other on a CPU (bpf_prog_active in trace_call_bpf()),
 * so both may use the same context.
 */
SEC("?tracepoint")
int sample_tracepoint(void *ctx)
{
	return take_sample(ctx, SOURCE_TRACEPOINT);
}

/*
 * Without bpf_loop: a bounded loop, then a tail call to the same program; the kernel allows 33 tail calls
 * (MAX_TAIL_CALL_CNT). The loops call global functions, which the verifier checks once and not in every iteration
 * (5.6, 51c39bb1d5d1). User space fills the map.
 */
#define CHAIN_STEPS     1024
#define CHAIN_CALLS     31
#define CHAIN_ANNOUNCED 1024

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, PYBPF_CHAIN_PROGRAMS);
	__type(key, __u32);
	__type(value, __u32);
} chain SEC(".maps");

static __always_inline int chain_next(void *ctx, __u32 program)
{
	bpf_tail_call(ctx, &chain, program);
	return 0;
}

/* Returns the scratch memory of the current sample, and its layout in *l; NULL if either is missing. */
static __always_inline struct scratch *chain_get(const struct pybpf_layout **l)
{
	struct scratch *s = scratch_get(CONTEXT);

	*l = s ? bpf_map_lookup_elem(&layouts, &s->layout) : NULL;
	return *l ? s : NULL;
}

__noinline int chain_step(void)
{
	const struct pybpf_layout *l;
	struct scratch *s = chain_get(&l);

	return !s || (walk_step(&s->walk, l) && (s->nr_runtimes < 2 || !next_runtime(s)));
}

__noinline int chain_announce(__u32 i)
{
	const struct pybpf_layout *l;
	struct scratch *s = chain_get(&l);

	return s && i < frames_kept(s) ? announce_code(s, l, i) : 0;
}

SEC("?perf_event")
int sample_chain(void *ctx)
{
	const struct pybpf_layout *l = NULL;
	struct scratch *s = sample_begin(ctx, SOURCE_PERF_EVENT, &l);

	if (!s)
		return 0;
	s->chain_calls = 0;
	return chain_next(ctx, PYBPF_CHAIN_WALK);
}

SEC("?perf_event")
int chain_walk(void *ctx)
{
	struct scratch *s = scratch_get(CONTEXT);

	if (!s)
		return 0;
	for (int i = 0; i < CHAIN_STEPS; i++) {
		if (chain_step())
			return chain_next(ctx, PYBPF_CHAIN_FINISH);
	}
	if (++s->chain_calls < CHAIN_CALLS)
		return chain_next(ctx, PYBPF_CHAIN_WALK);
	/* As in walk_end: frames reached from the thread state are correct even if the walk did not reach the root. */
	if (s->walk.phase == WALK_FRAME && s->walk.attempt == WALK_FIRST && !s->walk.place && !s->walk.unproved &&
	    s->nr_runtimes < 2)
		s->walk.stack.flags |= PYBPF_STACK_NO_ROOT;
	else
		walk_no_stack(&s->walk);
	return chain_next(ctx, PYBPF_CHAIN_FINISH);
}

SEC("?perf_event")
int chain_finish(void *ctx)
{
	const struct pybpf_layout *l;
	struct scratch *s = chain_get(&l);
	int full = 0;

	if (!s || !sample_count(s))
		return 0;
	for (__u32 i = 0; i < CHAIN_ANNOUNCED && !full; i++)
		full = chain_announce(i);
	if (full || send_stack(s))
		stack_unsent(s->sets, s->walk.stack.stack_id);
	return 0;
}
