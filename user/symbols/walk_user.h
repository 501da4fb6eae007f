// SPDX-License-Identifier: Apache-2.0
/* The walk of bpf/walk.h, compiled for user space, over another process's memory or any other source of bytes. */
#ifndef SYMBOLS_WALK_USER_H
#define SYMBOLS_WALK_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"

/* The source of bytes: copies exactly size bytes at addr and returns 0, or returns negative errno. */
struct walk_memory {
	int (*read)(void *source, uint64_t addr, void *dst, size_t size);
	void *source;
};

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
	uint32_t depth;
	uint32_t flags;  /* enum pybpf_stack_flags */
	uint64_t gil;    /* address of the GIL that the thread needs, or 0 */
	bool has_gil;    /* it held it after the walk */
	uint64_t tstate; /* its PyThreadState */
};

/*
 * Walks the stack of the thread whose pthread_self() is thread_id, as the kernel would. Returns 0, -ENOENT when no
 * interpreter has such a thread, -ENOMEM.
 */
int walk_thread(const struct walk_memory *memory, const struct pybpf_layout *layout,
		const struct pybpf_runtime *runtime, uint64_t thread_id, struct walk_stack *out);

/* Returns the PyThreadState that holds the GIL at this moment, or 0. */
uint64_t walk_gil_holder(const struct walk_memory *memory, const struct pybpf_layout *layout, uint64_t gil);

/*
 * Makes a stack the record that the kernel would send. runtime: the index of the Python in its process. Returns it, for
 * the caller to free, or NULL without memory or frames.
 */
struct pybpf_stack_event *walk_stack_event(const struct walk_stack *stack, uint64_t proc_id, uint32_t runtime);

#endif
