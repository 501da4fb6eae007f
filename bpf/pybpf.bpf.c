/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The sampler: from a perf event's interrupt to a counted stack. */
#include "announce.bpf.h"
#include "compat.bpf.h"
#include "maps.bpf.h"
#include "count.h"
#include "native.bpf.h"
#include "opcode.bpf.h"
#include "process.bpf.h"
#include "runtimes.bpf.h"
#include "state.bpf.h"
#include "task.bpf.h"
#include "wait_time.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Counts are kept per thread. */
const volatile bool cfg_threads;
/* Hits of a tracepoint or a function per sample; perf counts the period of its events by itself. */
const volatile __u64 cfg_tracepoint_period;
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

/* The context of all programs in this file. */
#define CONTEXT PYBPF_CONTEXT_EVENT

/* Counts a sample of an undecided process, for user space to classify once it knows what the process is. */
static __always_inline void count_undecided(const struct pybpf_proc *proc)
{
	/* The sample counts as 1, whatever its kind. */
	struct pybpf_count_key key = {.stack_id = PYBPF_STACK_ID_UNDECIDED, .thread.proc_id = proc->proc_id};
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

enum verdict {
	SAMPLE_DONE,   /* not of a wanted process whose interpreter is known: counted, if the process is wanted */
	SAMPLE_ENDING, /* of such a process; its thread is ending and has no memory any more */
	SAMPLE_WANTED,
};

/* A process without Python costs one look-up. */
static __always_inline enum verdict judge_sample(const struct pybpf_proc *proc, struct task_struct *task)
{
	__u64 mm = compat_current_mm(task);

	if (cfg_all && (proc->state == PYBPF_PROC_OTHER || proc->state == PYBPF_PROC_UNWANTED))
		return SAMPLE_DONE;
	if (!filter_passes())
		return SAMPLE_DONE;
	if (proc->state == PYBPF_PROC_READY && !mm)
		return SAMPLE_ENDING;
	if (proc->state == PYBPF_PROC_READY && proc->mm == mm) {
		if (compat_memory_is_current())
			return SAMPLE_WANTED;
		count(CONTEXT, PYBPF_COUNT_UNREADABLE);
		return SAMPLE_DONE;
	}
	if (proc->state == PYBPF_PROC_READY || proc->state == PYBPF_PROC_OTHER)
		count(CONTEXT, PYBPF_COUNT_OTHER_PROGRAM);
	else if (proc->state != PYBPF_PROC_UNWANTED)
		count_undecided(proc);
	return SAMPLE_DONE;
}

/* The event that starts a program, and the type of its context. */
enum source {
	SOURCE_PERF_EVENT, /* struct bpf_perf_event_data */
	SOURCE_TRACEPOINT, /* the fields of a tracepoint or the registers of a uprobe, which are not used */
	SOURCE_MEMORY,     /* as a tracepoint; the value is there */
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

/* Hashes the addresses in s->kernel. A global function, so that the verifier goes through its loop once. */
__noinline int hash_kernel(__u32 context)
{
	struct scratch *s = scratch_get(context);
	__u64 hash = 0;

	if (!s)
		return 0;
	for (__u32 i = 0; i < PYBPF_KERNEL_FRAMES && i < s->nr_kernel; i++)
		hash = walk_mix(hash, s->kernel[i]);
	s->kernel_hash = hash;
	return 0;
}

/*
 * Takes the stack in the kernel, from the interrupted function on: perf unwinds from the event's registers, so that the
 * interrupt itself is not in it. It is empty if the thread was not in the kernel.
 */
static __always_inline void take_kernel(struct scratch *s, void *ctx, enum pybpf_context context)
{
	long size;

	if (!cfg_kernel_stacks)
		return;
	size = bpf_get_stack(ctx, s->kernel, sizeof(s->kernel), 0);
	s->nr_kernel = size > 0 ? (__u32)size / sizeof(s->kernel[0]) : 0;
	hash_kernel(context);
}

/* Returns the number of a stack of that hash. */
static __always_inline __u64 stack_id_of(const struct scratch *s, __u64 hash)
{
	__u64 id = cfg_kernel_stacks && s->nr_kernel ? walk_mix(hash, s->kernel_hash) : hash;

	if (cfg_native)
		id = walk_mix(id, s->native_hash);
	return id < PYBPF_STACK_ID_STACKS ? id + PYBPF_STACK_ID_STACKS : id;
}

/* loops: bpf_loop is there; its absence is no matter of a constant, as old verifiers refuse what names a callback. */
static __always_inline void take_source(struct scratch *s, void *ctx, enum source source, bool loops)
{
	struct walk *w = &s->walk;

	if (cfg_cookies)
		s->kind = compat_cookie(ctx);
	if (kind_of(s) != PYBPF_KIND_CPU && source != SOURCE_MEMORY)
		s->value = source == SOURCE_PERF_EVENT ? ((struct bpf_perf_event_data *)ctx)->sample_period
						       : cfg_tracepoint_period;
	s->nr_registers = source == SOURCE_PERF_EVENT ? compat_registers(ctx, w->candidates, &w->stack_pointer)
						      : compat_entry_registers(w->candidates, &w->stack_pointer);
	if (cfg_gil_waits && source == SOURCE_PERF_EVENT)
		s->user_ip = compat_user_ip(ctx);
	take_kernel(s, ctx, CONTEXT);
	if (loops)
		native_take(s, CONTEXT, source == SOURCE_PERF_EVENT ? ctx : NULL);
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
	return cfg_times && (memory_full || times_full || send_time(sets, key));
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
	err = stack_count(s->sets, &key, value_of(s), !memory_full, &fresh, &send);
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

/* Says which thread is walked. */
static __always_inline void prepare_walk(struct scratch *s, const struct pybpf_proc *proc, struct task_struct *task,
					 __u32 tid)
{
	s->walk.proc_id = proc->proc_id;
	s->tid = tid;
	if (COMPAT_THREAD_BIAS) {
		s->thread_pointer = compat_thread_pointer(task);
		if (s->thread_pointer == proc->stale_pointer)
			s->thread_pointer = 0;
	} else {
		s->walk.thread_id = compat_thread_pointer(task);
	}
	s->nr_runtimes = proc->nr_runtimes;
}

/*
 * Starts the walk of the current thread, after prepare_walk; its registers are there. l: of the first runtime. Returns
 * 0 when the thread is known to have no frames.
 */
static __always_inline int walk_begin(struct scratch *s, const struct pybpf_proc *proc, struct task_struct *task,
				      const struct pybpf_layout *l)
{
	sample_thread(s, task);
	if (s->nr_runtimes < 2)
		return begin_runtime(s, l, &proc->runtimes[0], 0);
	prepare_turns(s, proc);
	return 1;
}

/* A sample on its way. It is on the stack of the program, whose functions are called one after the other. */
struct loop_context {
	struct scratch *s;
	const struct pybpf_layout *l;
	int full;
};

/*
 * Does everything before the walk. Returns 1 with the walk started, or 0 if the sample ends here; it is then counted if
 * it was wanted.
 */
static __always_inline int begin_sample(void *ctx, enum source source, struct loop_context *c, bool loops)
{
	struct task_struct *task = compat_task();
	__u64 pid_tgid = compat_pid_tgid(task);
	__u32 tgid = pid_tgid >> 32;
	struct pybpf_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	const struct pybpf_layout *l;
	enum verdict verdict;
	struct scratch *s;

	if (cfg_gil_waits && !(proc && proc->state == PYBPF_PROC_READY && proc->mm == compat_current_mm(task)))
		return 0;
	if (!proc) {
		sample_unknown(task);
		return 0;
	}
	verdict = judge_sample(proc, task);
	if (verdict == SAMPLE_DONE)
		return 0;
	s = scratch_get(CONTEXT);
	l = layout_get(proc->runtimes[0].layout);
	if (!s || !l) {
		count(CONTEXT, PYBPF_COUNT_NO_SCRATCH);
		return 0;
	}
	prepare_walk(s, proc, task, (__u32)pid_tgid);
	take_source(s, ctx, source, loops);
	if (verdict == SAMPLE_ENDING || compat_is_kernel_worker(task)) {
		count_without_frames(verdict == SAMPLE_ENDING ? PYBPF_COUNT_NO_INTERPRETER
							      : PYBPF_COUNT_NO_THREAD_STATE);
		return 0;
	}
	if (!walk_begin(s, proc, task, l)) {
		count_without_frames(PYBPF_COUNT_NO_THREAD_STATE);
		return 0;
	}
	c->s = s;
	c->l = l;
	return 1;
}

/*
 * begin_sample out of line, as sample_describe and sample_count are: their stacks are used one after the other, and not
 * with that of the walk.
 */
static __noinline int sample_begin(void *ctx, enum source source, struct loop_context *c)
{
	return begin_sample(ctx, source, c, true);
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
	err = stack_count(s->sets, &key, value_of(s), !memory_full, &fresh, &send);
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

static __noinline int find_task(struct scratch *s, const struct pybpf_layout *l)
{
	walk_find_task(&s->walk, l);
	return 0;
}

/*
 * Does what is due between two steps of the walk, whose stack must not be below a step's. Returns 1 when the walk is
 * done; else s->layout is that of the runtime to walk.
 */
static __always_inline int walk_pause(struct scratch *s, const struct pybpf_layout *l)
{
	if (cfg_async && s->walk.task_due)
		return find_task(s, l);
	return s->nr_runtimes < 2 || !next_runtime(s);
}

/* Does the next step of the sample's walk. Returns 1 when sample_pause is to be called before the next one. */
static __always_inline int sample_step(struct scratch *s, const struct pybpf_layout *l)
{
	return !has_walk(s) || (cfg_async && s->walk.task_due) || walk_step(&s->walk, l);
}

/*
 * With bpf_loop (Linux 5.17, e6f2dd0f8067), one program takes the whole sample. Its steps are global functions, so that
 * the verifier goes through each once, and not once for each path that leads to it.
 */
__noinline int loop_step(struct scratch *s, const struct pybpf_layout *l)
{
	return !s || !l || sample_step(s, l);
}

/* Returns 1 when the walk is done. */
__noinline int loop_pause(struct scratch *s)
{
	const struct pybpf_layout *l = s ? layout_get(s->layout) : NULL;

	return !l || walk_pause(s, l);
}

/* Returns 1 when the ring buffer is full. */
__noinline int loop_announce(struct scratch *s, const struct pybpf_layout *l, __u32 i)
{
	return !s || !l || announce_code(s, l, i);
}

static long loop_walk(__u32 i, struct loop_context *c)
{
	const struct pybpf_layout *l;

	if (!loop_step(c->s, c->l))
		return 0;
	if (loop_pause(c->s))
		return 1;
	l = layout_get(c->s->layout);
	if (!l)
		return walk_no_stack(&c->s->walk);
	c->l = l;
	return 0;
}

/* Walks to the end. */
static __always_inline void loop_to_end(struct loop_context *c)
{
	if (bpf_loop(WALK_STEPS, loop_walk, c, 0) == WALK_STEPS)
		walk_no_stack(&c->s->walk);
}

static long loop_codes(__u32 i, struct loop_context *c)
{
	c->full = is_set(loop_announce(c->s, c->l, i));
	return c->full;
}

static __always_inline int take_sample(void *ctx, enum source source)
{
	struct loop_context c = {};

	if (!sample_begin(ctx, source, &c) || !c.s || !c.l)
		return 0;
	loop_to_end(&c);
	if (!sample_describe(c.s) || !sample_count(c.s))
		return 0;
	bpf_loop(frames_kept(c.s), loop_codes, &c, 0);
	if (c.full || send_stack(c.s))
		stack_unsent(c.s->sets, c.s->walk.stack.stack_id);
	return 0;
}

SEC("?perf_event")
int sample_loop(void *ctx)
{
	return take_sample(ctx, SOURCE_PERF_EVENT);
}

#include "chain.bpf.h"
#include "event.bpf.h"
#include "wait.bpf.h"
#include "wait_waker.bpf.h"
