/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The maps of all programs, and the working memory of a sample. */
#ifndef PYBPF_MAPS_BPF_H
#define PYBPF_MAPS_BPF_H

#include "compat.bpf.h"
#include "pybpf_wait.h"

/* include/uapi/asm-generic/errno-base.h */
#define E2BIG  7  /* returned by a full hash map */
#define ENOMEM 12 /* returned by a hash map if the kernel has no memory; stack_count: user space has no room */
#define EEXIST 17 /* returned by a hash map that has the key already */

/* User space sets the size of each map below that has max_entries 1. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pybpf_proc);
} procs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pybpf_layout);
} layouts SEC(".maps");

/* The number is on the stack: memory that a global function is given is no key to Linux 6.1. */
static __always_inline const struct pybpf_layout *layout_get(__u32 layout)
{
	return bpf_map_lookup_elem(&layouts, &layout);
}

/* Files of programs that user space has looked at. The least recently used are evicted and looked at anew. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct pybpf_file_key);
	__type(value, struct pybpf_file);
} files SEC(".maps");

/* Filters by user ID and by cgroup; that of a cgroup applies to all its descendants. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u8);
} users SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} cgroups SEC(".maps");

/*
 * Samples by stack. This map and the following ones, down to the ring of events, belong to the sampler: no other
 * program may write to them (see the table in compat.bpf.h). They are preallocated, as maps of perf events must be
 * before Linux 6.1. The second set is used only for a run without end.
 */
struct counts_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pybpf_count_key);
	__type(value, struct pybpf_count);
} counts SEC(".maps"), counts_2 SEC(".maps");

/* Stacks sent to user space: the program that adds one here sends it, and removes it if that fails. */
struct stacks_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u8);
} stacks SEC(".maps"), stacks_2 SEC(".maps");

/* Code objects sent to user space. */
struct codes_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pybpf_code_key);
	__type(value, __u8);
} codes SEC(".maps"), codes_2 SEC(".maps");

/* Inner maps by the number of their set; filled by user space if there are two sets. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PYBPF_SETS);
	__type(key, __u32);
	__array(values, struct counts_map);
} counts_sets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PYBPF_SETS);
	__type(key, __u32);
	__array(values, struct stacks_map);
} stacks_sets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, PYBPF_SETS);
	__type(key, __u32);
	__array(values, struct codes_map);
} codes_sets SEC(".maps");

/* There are two sets; else the maps are used without a look-up of the set. */
const volatile bool cfg_rolling;
/* The sets that samples use, as in struct pybpf_event; set by user space. */
volatile __u32 current_sets;

/* Returns the current sets. Called once per sample: a sample must not change its set halfway. */
static __always_inline __u32 sets_now(void)
{
	return cfg_rolling ? current_sets : 0;
}

static __always_inline void *counts_of(__u32 sets)
{
	__u32 set = PYBPF_COUNTS_SET(sets);

	return cfg_rolling ? bpf_map_lookup_elem(&counts_sets, &set) : &counts;
}

static __always_inline void *stacks_of(__u32 sets)
{
	__u32 set = PYBPF_KNOWN_SET(sets);

	return cfg_rolling ? bpf_map_lookup_elem(&stacks_sets, &set) : &stacks;
}

static __always_inline void *codes_of(__u32 sets)
{
	__u32 set = PYBPF_KNOWN_SET(sets);

	return cfg_rolling ? bpf_map_lookup_elem(&codes_sets, &set) : &codes;
}

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1);
	__type(key, struct pybpf_thread_key);
	__type(value, struct pybpf_thread_name);
} thread_names SEC(".maps");

/* Key: enum pybpf_context. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PYBPF_CONTEXTS);
	__type(key, __u32);
	__type(value, struct pybpf_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

/* Events of processes, in a ring of their own because stacks can fill theirs. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} process_events SEC(".maps");

static __always_inline int walk_read(void *w, void *dst, __u32 size, __u64 addr)
{
	return (int)compat_read_user(dst, size, addr);
}

/* Samples say which asyncio task ran. */
const volatile bool cfg_async;
#define WALK_TASKS cfg_async
/* Samples say which bytecode instruction ran. */
const volatile bool cfg_opcodes;
#define WALK_OPCODES cfg_opcodes
/* Where pthread_self() is not the thread pointer, how far it is from there may not be known. */
#define WALK_THREAD_RANGE COMPAT_THREAD_BIAS

#include "current_task.bpf.h"
#define WALK_CURRENT_TASK(w, tstate) current_task((w)->layout, (w)->asyncio.current_tasks, tstate)

#include "walk.h"
#include "walk_gil.h"

/* Offsets of the copies are masked so that the verifier sees them inside their buffer. */
#define COPY_MASK 4095
_Static_assert(2 * PYBPF_COPY_STRING <= COPY_MASK, "two strings fit before the line table");
_Static_assert(PYBPF_COPY_STRING <= PYBPF_COPY_LINES, "the room behind the mask takes either");

/* The runtimes of a process that has several, while a thread's sample is taken: see runtimes.bpf.h. */
struct runtime_turns {
	struct pybpf_runtime of[PYBPF_MAX_RUNTIMES];
	__u32 turn;         /* number of runtimes whose turn has come */
	__u32 first;        /* index of the runtime that begins, modulo nr_runtimes */
	__u32 walked;       /* index of the runtime whose outcome the walk holds */
	__u32 repeats_best; /* the best runtime is walked once more */
	__u32 best;         /* index of the runtime with the innermost stack so far */
	__u32 rank;         /* enum runtime_rank: the best outcome so far */
	__u64 run;          /* address on the C stack of the best one's innermost run, or 0 */
	__u32 attached;     /* the thread is attached to the best one */
	__u32 flags;        /* enum pybpf_stack_flags: flags that the others add to its stack */
};

/* The thread of a CPU's last sample, if its process has one runtime: saves the look-up for its next sample. */
struct last_thread {
	__u64 task; /* address of its task_struct */
	__u64 start;
	__u64 proc_id;
	struct walk_states states; /* count is 0 when they are to be looked up */
};

/*
 * What is found out about a thread that leaves its CPU, one after the other. It is kept here and not on the stack, so
 * that the verifier forgets which way a value came, and follows what comes after once.
 */
struct leaving {
	__u64 stack_id;
	__u64 gil;      /* address of its GIL, or 0 */
	__u64 with_gil; /* PYBPF_WAIT_WITH_GIL or 0 */
	__u64 futex;
	__u64 use; /* enum gil_futex */
	struct pybpf_wait wait;
	struct gil_owner owner; /* of its GIL; all 0 if it has none */
	struct gil_owner seen;  /* when the holder was looked at */
	__u64 seen_stack_id;    /* of the holder at that time, or 0 */
	__u64 holder_stack_id;  /* of the holder, or an enum pybpf_holder */
};

/* Working memory of a sample: one per CPU and enum pybpf_context, as programs of one context never nest on a CPU. */
struct scratch {
	struct walk walk;
	struct last_thread last;
	__u64 current;        /* the thread state that holds the GIL, or 0 */
	__u64 thread_pointer; /* 0: not known; valid with COMPAT_THREAD_BIAS */
	__u32 layout;
	__u32 nr_runtimes;
	__u32 runtime; /* the runtime being walked: index into pybpf_proc.runtimes */
	__u32 nr_registers;
	__u32 tid;
	__u32 kind;        /* enum pybpf_kind; valid with cfg_cookies */
	__u64 hits;        /* of tracepoints or of a function since the last sample; only with a period */
	__u64 busy;        /* a program on a uprobe uses it, and may have been preempted */
	__u64 value;       /* in the kind's unit, if the kind has values */
	__u64 user_ip;     /* of the program's interrupted instruction, 0 in the kernel; valid with cfg_gil_waits */
	__u64 kernel_hash; /* of the addresses in kernel; with none it is 0 */
	__u64 kernel[PYBPF_KERNEL_FRAMES];
	__u32 nr_kernel;
	__u32 sets;             /* sets in which the sample is counted */
	__u32 context;          /* enum pybpf_context: whose memory this is; valid with cfg_native */
	__u64 native_hash;      /* of the native frames; without any it is 0 */
	__u32 chain_calls;      /* tail calls that this sample has made */
	struct leaving leaving; /* of PYBPF_CONTEXT_SWITCH */
	struct compat_addresses addresses;
	struct pybpf_memory_event touch; /* valid with cfg_held; what is 0 if the place is not known */
	struct runtime_turns turns;      /* valid if nr_runtimes is more than 1 */
	__u64 next_task;                 /* the task or future to look at next, or 0 */
	struct pybpf_task_event tasks;
	struct pybpf_code_event code;
	__u8 copies[COPY_MASK + 1 + PYBPF_COPY_LINES];
};

/* Number of possible CPUs. */
const volatile __u32 cfg_cpus;
/* Number of contexts that have working memory: the first ones of enum pybpf_context. */
const volatile __u32 cfg_contexts;

/*
 * Too large for a per-CPU map (32 KiB, PCPU_MIN_UNIT_SIZE), and for CPUs that are only possible, of which virtual
 * machines have up to 240: an array with cfg_contexts elements for each CPU that is there when the run begins.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static __always_inline struct pybpf_counters *counters_get(enum pybpf_context context)
{
	__u32 row = context;

	return bpf_map_lookup_elem(&counters, &row);
}

static __always_inline void count(enum pybpf_context context, enum pybpf_counter counter)
{
	struct pybpf_counters *c = counters_get(context);

	if (c)
		c->value[counter]++;
}

static __always_inline struct scratch *scratch_get(enum pybpf_context context)
{
	__u32 place = bpf_get_smp_processor_id() * cfg_contexts + context;

	return bpf_map_lookup_elem(&scratches, &place);
}

#endif
