/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Records sent to user space: code objects, with copies of their names and lines, and stacks, once each; times; and
 * memory. */
#ifndef PYBPF_ANNOUNCE_BPF_H
#define PYBPF_ANNOUNCE_BPF_H

#include "maps.bpf.h"
#include "native.bpf.h"

/*
 * Bytes that may wait in the ring buffer before user space is woken; it also polls by itself. A wake-up costs the
 * sampled CPU a further interrupt and a switch to pybpf, in the program's time.
 */
#define WAKE_BYTES (256 << 10)

/* Samples have the stack of the thread in the kernel. */
const volatile bool cfg_kernel_stacks;
/* The time of each sample is sent. */
const volatile bool cfg_times;

/* Set by user space when its memory is used up: stacks not known yet are lost while it is set. */
bool stacks_refused;
bool times_full; /* user space takes no more times of samples */

static __always_inline bool takes_new_stacks(void)
{
	return !stacks_refused;
}

#define NS_PER_MS 1000000

static __always_inline __u64 wake_flags(void)
{
	return bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) < WAKE_BYTES ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}

static __always_inline long send(void *data, __u64 size)
{
	return bpf_ringbuf_output(&events, data, size, wake_flags());
}

/* Bytes of a string object's header, which holds length and kind (PyASCIIObject, with room for a tracing debug build).
 */
#define STRING_HEADER 64
/* Appends a copy of a string object, or of its first bytes, at offset end of s->copies. Returns the new end. */
static __always_inline __u32 copy_string(struct scratch *s, const struct pybpf_layout *l, enum pybpf_code_part part,
					 __u64 addr, __u32 end)
{
	struct walk *w = &s->walk;
	__u64 size;

	s->code.part_addr[part] = addr;
	s->code.part_size[part] = PYBPF_SIZE_UNKNOWN;
	s->code.part_copied[part] = 0;
	if (walk_read(w, w->buffer, STRING_HEADER, addr))
		return end;
	size = walk_u64(w, l->str_length);
	if (l->string_kind == PYBPF_STR_BYTES) {
		size += l->str_ascii_data;
	} else {
		__u32 state = walk_u32(w, l->str_state) >> l->str_kind_shift;
		__u32 kind = state & 7, ascii = state & 16; /* kind:3, compact:1, ascii:1 */

		size = size * kind + (ascii ? l->str_ascii_data : l->str_compact_data);
	}
	if (size >= 1u << 30)
		return end;
	s->code.part_size[part] = (__u32)size;
	if (size > PYBPF_COPY_STRING)
		size = PYBPF_COPY_STRING;
	if (walk_read(w, s->copies + (end & COPY_MASK), (__u32)size, addr))
		return end;
	s->code.part_copied[part] = (__u32)size;
	return end + (__u32)size;
}

static __always_inline __u32 copy_lines(struct scratch *s, const struct pybpf_layout *l, __u64 addr, __u32 end)
{
	__u64 size = 0;

	s->code.part_addr[PYBPF_CODE_LINES] = addr + l->bytes_data;
	s->code.part_size[PYBPF_CODE_LINES] = PYBPF_SIZE_UNKNOWN;
	s->code.part_copied[PYBPF_CODE_LINES] = 0;
	if (walk_read(&s->walk, &size, sizeof(size), addr + l->bytes_size) || size >= 1u << 30)
		return end;
	s->code.part_size[PYBPF_CODE_LINES] = (__u32)size;
	if (size > PYBPF_COPY_LINES)
		size = PYBPF_COPY_LINES;
	if (walk_read(&s->walk, s->copies + (end & COPY_MASK), (__u32)size, addr + l->bytes_data))
		return end;
	s->code.part_copied[PYBPF_CODE_LINES] = (__u32)size;
	return end + (__u32)size;
}

/* Sends the code object of one frame, unless it was sent already. Returns 1 when the ring buffer is full. */
static __always_inline int announce_code(struct scratch *s, const struct pybpf_layout *l, __u32 i)
{
	const struct pybpf_frame *frame = &s->walk.frames[i & (PYBPF_MAX_FRAMES - 1)];
	struct pybpf_code_key key = {.code = frame->code, .sig = frame->sig, .proc_id = s->walk.proc_id};
	void *known_codes = codes_of(s->sets);
	struct walk *w = &s->walk;
	__u64 name, file, lines;
	__u32 end = 0;
	__u8 one = 1;

	/* Most code objects are known, and a look-up is cheaper than a failing update. */
	if (!known_codes || frame->kind != PYBPF_FRAME_PYTHON || bpf_map_lookup_elem(known_codes, &key) ||
	    bpf_map_update_elem(known_codes, &key, &one, BPF_NOEXIST))
		return 0;
	if (walk_window(w, key.code, l->code_window, PYBPF_CODE_WINDOW))
		return 0;
	file = walk_u64(w, l->code_filename);
	lines = walk_u64(w, l->code_linetable);
	name = walk_u64(w, l->code_qualname != PYBPF_NO_OFFSET ? l->code_qualname : l->code_name);
	s->code.event.type = PYBPF_EVENT_CODE;
	s->code.code = key.code;
	s->code.sig = key.sig;
	s->code.proc_id = s->walk.proc_id;
	s->code.event.runtime = (__u8)s->runtime;
	s->code.event.sets = (__u8)s->sets;
	s->code.first_line = (__s32)walk_u32(w, l->code_firstlineno);
	end = copy_string(s, l, PYBPF_CODE_NAME, name, end);
	end = copy_string(s, l, PYBPF_CODE_FILE, file, end);
	end = copy_lines(s, l, lines, end);
	end += sizeof(s->code);
	s->code.event.size = end;
	if (end > sizeof(s->code) + sizeof(s->copies))
		return 0;
	if (!send(&s->code, end))
		return 0;
	bpf_map_delete_elem(known_codes, &key);
	return 1;
}

static __always_inline __u32 frames_kept(const struct scratch *s)
{
	return pybpf_kept_frames(s->walk.stack.depth);
}

/* Puts the addresses in the kernel behind the frames of the record. Returns their bytes. */
static __always_inline __u32 append_kernel(struct scratch *s)
{
	__u32 nr = s->nr_kernel, kept = frames_kept(s);

	s->walk.stack.nr_kernel = 0;
	if (!cfg_kernel_stacks || !nr || nr > PYBPF_KERNEL_FRAMES || kept > PYBPF_MAX_FRAMES)
		return 0;
	if (bpf_probe_read_kernel(&s->walk.frames[kept], nr * sizeof(__u64), s->kernel))
		return 0;
	s->walk.stack.nr_kernel = nr;
	return nr * sizeof(__u64);
}

/* Puts the native frames behind those. at: their bytes so far. Returns their bytes. */
static __always_inline __u32 append_native(struct scratch *s, __u32 at)
{
	const struct native_scratch *n = cfg_native ? native_scratch_get(s->context) : NULL;
	__u32 nr;

	s->walk.stack.nr_native = 0;
	s->walk.stack.native_end = PYBPF_NATIVE_NOT_ASKED;
	if (!n || at > sizeof(s->walk.frames) + sizeof(s->kernel))
		return 0;
	nr = n->nr;
	s->walk.stack.native_end = (__u16)n->end;
	if (!nr || nr > PYBPF_NATIVE_FRAMES ||
	    bpf_probe_read_kernel((__u8 *)s->walk.frames + at, nr * sizeof(__u64), n->frames))
		return 0;
	s->walk.stack.nr_native = (__u16)nr;
	return nr * sizeof(__u64);
}

/* Sends the tasks of the sample, if it has any. Returns 1 when the ring buffer is full. */
static __always_inline int send_tasks(struct scratch *s)
{
	__u32 count = s->tasks.count;

	if (!cfg_async || !s->walk.stack.task_id || count > PYBPF_TASKS)
		return 0;
	s->tasks.event.type = PYBPF_EVENT_TASKS;
	s->tasks.event.sets = (__u8)s->sets;
	s->tasks.event.size = offsetof(struct pybpf_task_event, tasks) + count * sizeof(s->tasks.tasks[0]);
	return send(&s->tasks, s->tasks.event.size) != 0;
}

/* Sends the stack of the sample. Returns 1 when the ring buffer is full. */
static __always_inline int send_stack(struct scratch *s)
{
	__u32 behind = frames_kept(s) * sizeof(struct pybpf_frame) + append_kernel(s), size;

	behind += append_native(s, behind);
	size = sizeof(s->walk.stack) + behind;
	if (size > sizeof(s->walk.stack) + sizeof(s->walk.frames) + sizeof(s->walk.room_behind))
		return 1;
	s->walk.stack.event.type = PYBPF_EVENT_STACK;
	s->walk.stack.event.size = size;
	s->walk.stack.proc_id = s->walk.proc_id;
	s->walk.stack.event.runtime = (__u8)s->runtime;
	s->walk.stack.event.sets = (__u8)s->sets;
	compat_rights(&s->walk.stack.rights);
	return send_tasks(s) || send(&s->walk.stack, size) != 0;
}

/* Returns how far pthread_self() of the current thread lies below its thread pointer. */
static __always_inline __u16 current_thread_bias(void)
{
	__u32 tgid;
	struct pybpf_proc *proc;

	if (!COMPAT_THREAD_BIAS)
		return 0;
	tgid = compat_pid_tgid(compat_task()) >> 32;
	proc = bpf_map_lookup_elem(&procs, &tgid);
	return proc ? proc->runtimes[0].thread_bias : PYBPF_NO_THREAD_BIAS;
}

/* Sends the current thread; if the ring buffer is full, it is not sent. */
static __always_inline void send_thread(const struct pybpf_thread_key *thread)
{
	struct pybpf_thread_event record = {
		.event = {.type = PYBPF_EVENT_THREAD, .size = sizeof(record)},
		.thread = *thread,
		.thread_id = compat_thread_id(compat_task(), current_thread_bias()),
	};

	send(&record, sizeof(record));
}

/* Changes of memory are sent, so that user space knows whose memory is held (--mode=memory). */
const volatile bool cfg_held;
/* Changes of memory that found no room in the ring buffer. */
__u64 memory_unsent;

static __always_inline void send_memory(struct pybpf_memory_event *record)
{
	record->event.type = PYBPF_EVENT_MEMORY;
	record->event.size = sizeof(*record);
	if (send(record, sizeof(*record)))
		__sync_fetch_and_add(&memory_unsent, 1);
}

/* Sends where the memory is whose sample is being counted, if that is known. */
static __always_inline void send_touch(struct scratch *s, const struct pybpf_count_key *key)
{
	if (!cfg_held || !s->touch.what)
		return;
	s->touch.event.sets = (__u8)s->sets;
	s->touch.key = *key;
	send_memory(&s->touch);
}

/* Sends the time of the sample that is being counted. Returns 1 when the ring buffer is full. */
static __always_inline int send_time(__u32 sets, const struct pybpf_count_key *key)
{
	struct pybpf_time_event record = {
		.event = {.type = PYBPF_EVENT_TIME, .sets = (__u8)sets, .size = sizeof(record)},
		.time_ns = compat_monotonic_ns(),
		.key = *key,
	};

	return send(&record, sizeof(record)) != 0;
}

#endif
