// SPDX-License-Identifier: Apache-2.0
/* The walk of bpf/walk.h, compiled for user space, over another process's memory or any other source of bytes. */
#ifndef SYMBOLS_WALK_USER_H
#define SYMBOLS_WALK_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"
#include "walk_thread_cache.h"

/* Bytes of memory. */
struct walk_part {
	uint64_t addr;
	size_t size;
};

/* The source of bytes: copies exactly size bytes at addr and returns 0, or returns negative errno. */
struct walk_memory {
	int (*read)(void *source, uint64_t addr, void *dst, size_t size);
	void *source;
	/* Copies many parts, one behind the other, within as short a time as it can; NULL: there is only read. */
	int (*read_parts)(void *source, const struct walk_part *parts, size_t count, void *dst);
};

/* Copies parts in their order, one behind the other. Returns as a read of walk_memory. */
int walk_read_parts(const struct walk_memory *memory, const struct walk_part *parts, size_t count, void *dst);

/* Makes *memory the memory of a live process; pid must outlive the use of *memory. */
void walk_process_memory(struct walk_memory *memory, const pid_t *pid);

/* What the walk reads of a code object. */
struct walk_code {
	uint64_t name, file, lines; /* addresses of the objects; name is co_qualname where there is one */
	uint32_t sig;
	int32_t first_line;
};

/*
 * Reads a code object. texts: include its texts in its signature even if its version would be enough (PYBPF_SIG_TEXTS).
 * Returns 0, -EFAULT when it cannot be read, -ENOMEM.
 */
int walk_read_code(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t addr, bool texts,
		   struct walk_code *out);

struct walk_stack {
	struct pybpf_frame *frames; /* leaf first, as many as min(depth, PYBPF_MAX_FRAMES); caller frees */
	uint64_t *addresses;        /* of these, freed with them; 0: a frame without variables of Python's */
	uint32_t depth;
	uint32_t flags;      /* enum pybpf_stack_flags */
	uint64_t gil;        /* address of the GIL that the thread needs, or 0 */
	bool wants_gil;      /* the futex is that GIL's */
	bool has_gil;        /* it held its GIL after the walk */
	uint64_t tstate;     /* its PyThreadState */
	uint64_t task;       /* the asyncio task that its loop runs, if the runtime says where that is; else 0 */
	uint64_t contexts;   /* that it has entered and left (contextvars); 0: not known */
	uint32_t task_depth; /* frames from the leaf to the one of the task's coroutine; 0: not met */
	uint64_t interp;     /* the interpreter whose function is the leaf */
	uint64_t exception;  /* that it raises or handles, or its class; 0: none, or not known */
	bool exception_known;
	enum pybpf_collection collection; /* OWN: it collects garbage, in whichever of its functions */
};

/*
 * Walks the stack of the thread whose pthread_self() is thread_id, as the kernel would. futex: on which it sleeps, or
 * 0. stack_pointer: 0 if it is not known; it proves what is on the thread's C stack. Returns 0, -ENOENT when no
 * interpreter has such a thread, -EFAULT when none was found and some could not be read, -ENOMEM.
 */
int walk_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		const struct pybpf_runtime *runtime, uint64_t thread_id, uint64_t futex, uint64_t stack_pointer,
		struct walk_stack *out);

/* The thread states that a thread has, in the order of the interpreters' lists. */
struct walk_known_states {
	uint64_t tstates[WALK_STATES];
	uint32_t count; /* may be more than WALK_STATES: they are searched for then */
	bool exact;     /* the process has stood still since */
};

/*
 * As walk_thread(), without a search through the lists of all threads where the thread has no other states than the
 * known ones: for many threads of one process.
 */
int walk_known_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		      const struct pybpf_runtime *runtime, uint64_t thread_id, const struct walk_known_states *known,
		      uint64_t futex, uint64_t stack_pointer, struct walk_stack *out);

/* The thread states of a runtime, for the walks of many of its threads: each walk would search all of them. */
struct walk_list;

struct walk_list *walk_list_new(void);
/* Accepts NULL. */
void walk_list_free(struct walk_list *list);
/* Forgets what was read before. The source of *memory outlives the reading and all walks; the rest is copied. */
void walk_list_begin(struct walk_list *list, const struct walk_memory *memory, const struct pybpf_layout *layout,
		     const struct pybpf_runtime *runtime);
/*
 * Reads the thread states. Returns 0; -ETIMEDOUT when the time is up (CLOCK_MONOTONIC), to be called again; -EAGAIN
 * when the end of a list changed while it was read, so that threads may be missing; -ENOMEM.
 */
int walk_list_read(struct walk_list *list, uint64_t until_ns);
/*
 * As walk_thread(), for a thread that was there when the list was read and has not run since. Leaves task, contexts,
 * interp, exception and collection empty. Also returns -ETIMEDOUT.
 */
int walk_listed_thread(struct walk_list *list, uint64_t thread_id, uint64_t futex, uint64_t stack_pointer,
		       uint64_t until_ns, struct walk_stack *out);

/* Returns the PyThreadState that holds the GIL at this moment, or 0. */
uint64_t walk_gil_holder(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t gil);

/*
 * Makes a stack the record that the kernel would send. frames: min(depth, PYBPF_MAX_FRAMES); flags: enum
 * pybpf_stack_flags; runtime: the index of the Python in its process. Returns it, for the caller to free, or NULL
 * without memory or frames.
 */
struct pybpf_stack_event *walk_stack_event(const struct pybpf_frame *frames, uint32_t depth, uint32_t flags,
					   uint64_t proc_id, uint32_t runtime);

/* Reads frames one by one, and remembers code objects as long as the walk would. */
struct walk_frames;

struct walk_frames *walk_frames_new(void);
/* Accepts NULL. */
void walk_frames_free(struct walk_frames *frames);

/*
 * To be called before the frames of one moment are read. All arguments outlive these reads. proc_id: as in struct
 * pybpf_proc; interp: address of the interpreter that the frames are of.
 */
void walk_frames_begin(struct walk_frames *frames, const struct walk_memory *memory, const struct pybpf_layout *layout,
		       const struct pybpf_runtime *runtime, uint64_t proc_id, uint64_t interp);
/*
 * Reads the frame at that address inside a generator that does not run. Returns 0, or -EFAULT when it is not readable
 * or no such frame.
 */
int walk_frames_read(struct walk_frames *frames, uint64_t addr, struct pybpf_frame *out);

#endif
