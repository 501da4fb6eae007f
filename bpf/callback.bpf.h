/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Callbacks that keep an event loop from its other work. A loop runs each callback in a context (contextvars), and the
 * thread state counts how often one is entered or left: context_ver, in _PyContext_Enter() and _PyContext_Exit()
 * (Python/context.c). So two samples or switches with the same task and the same count are of one callback, and the
 * thread was in it all the time between them. What it took before the first and after the last of them is not known.
 */
#ifndef PYBPF_CALLBACK_BPF_H
#define PYBPF_CALLBACK_BPF_H

#include "maps.bpf.h"

/* User space sets the sizes. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pybpf_callback);
} callbacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct pybpf_block_key);
	__type(value, struct pybpf_wait_time);
} blocks SEC(".maps");

/* Callbacks that take this long are kept in map blocks; 0: callbacks are not followed. */
const volatile __u64 cfg_loop_block_ns;

/* Threads and callbacks that found no room in these maps. */
__u64 callbacks_lost;

/* The callback has lasted until now, with the stack that was seen last. */
static __always_inline void callback_lasts(struct pybpf_callback *callback, __u64 now)
{
	__u64 ns = now - callback->seen_ns;

	if (callback->seen_stack_id == callback->stack_id) {
		callback->stack_ns += ns;
	} else if (ns > callback->stack_ns) {
		callback->stack_id = callback->seen_stack_id;
		callback->stack_ns = ns;
	}
	callback->seen_ns = now;
	callback->last_ns = now;
	callback->left = 0;
}

/* Keeps a callback that is over, if it took long. */
static __always_inline void callback_ended(const struct pybpf_callback *callback)
{
	const __u64 ns = callback->last_ns - callback->first_ns;
	const struct pybpf_wait_time first = {.count = 1, .ns = ns, .longest_ns = ns};
	const struct pybpf_block_key key = {
		.stack_id = callback->stack_id,
		.proc_id = callback->proc_id,
		.tid = callback->tid,
		.has_task = callback->task != 0,
	};
	struct pybpf_wait_time *time;

	if (ns < cfg_loop_block_ns)
		return;
	time = bpf_map_lookup_elem(&blocks, &key);
	if (!time) {
		/* The key is of one thread, which is in one place. */
		if (bpf_map_update_elem(&blocks, &key, &first, BPF_ANY))
			__sync_fetch_and_add(&callbacks_lost, 1);
		return;
	}
	time->count++;
	time->ns += ns;
	if (ns > time->longest_ns)
		time->longest_ns = ns;
}

/*
 * Notes the callback of the current thread, whose walk has just led to a stack that has its number. left: it leaves its
 * CPU. A global function (kernel 5.6), so that the verifier checks it once.
 */
__noinline int callback_see(__u32 context, __u32 left)
{
	struct scratch *s = scratch_get((enum pybpf_context)context);
	__u32 pid = (__u32)bpf_get_current_pid_tgid();
	struct pybpf_callback *callback = bpf_map_lookup_elem(&callbacks, &pid);
	__u64 now = bpf_ktime_get_ns();
	struct pybpf_callback fresh = {.first_ns = now, .last_ns = now, .seen_ns = now, .left = left};

	if (!s)
		return 0;
	fresh.proc_id = s->walk.proc_id;
	fresh.task = s->walk.task;
	fresh.contexts = s->walk.contexts;
	fresh.seen_stack_id = fresh.stack_id = s->walk.stack.stack_id;
	fresh.tid = s->tid;
	if (!callback) {
		/* A thread without a task may have no loop. */
		if (fresh.task && bpf_map_update_elem(&callbacks, &pid, &fresh, BPF_NOEXIST))
			__sync_fetch_and_add(&callbacks_lost, 1);
		return 0;
	}
	if (callback->proc_id != fresh.proc_id || callback->task != fresh.task ||
	    callback->contexts != fresh.contexts || !fresh.contexts) {
		callback_ended(callback);
		*callback = fresh;
		return 0;
	}
	callback_lasts(callback, now);
	callback->seen_stack_id = fresh.stack_id;
	callback->left = left;
	return 0;
}

/* The current thread leaves its CPU, and where it is was not seen. */
static __always_inline void callback_unseen(__u32 pid)
{
	struct pybpf_callback *callback = bpf_map_lookup_elem(&callbacks, &pid);

	if (callback)
		callback->left = 0;
}

/* The thread comes back to a CPU: where it left it, which was seen, it has been until now. */
static __always_inline void callback_returns(__u32 pid, __u64 now)
{
	struct pybpf_callback *callback = bpf_map_lookup_elem(&callbacks, &pid);

	if (callback && callback->left)
		callback_lasts(callback, now);
}

#endif
