// SPDX-License-Identifier: Apache-2.0
/* Finds native frames from user space, as the kernel side does: of threads that sleep. */
#ifndef NATIVE_WALKER_H
#define NATIVE_WALKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf_native.h"

struct native_walker;

/* Reads a page of the kernel side's memory by its number. Returns 0 or negative errno. */
typedef int native_walker_read_page(void *arg, uint32_t number, struct pybpf_native_page *out);

/* A thread, as it entered the kernel. */
struct native_thread {
	pid_t pid; /* of its process */
	uint64_t pc, sp, bp;
	/* All, in the order below; NULL: they are not known. */
	const uint64_t *all;
};

/* The registers of struct pt_regs before its orig_ax: r15, r14, r13, r12, bp, bx, r11 to r8, ax, cx, dx, si, di. */
#define NATIVE_WALKER_REGISTERS 15

/* Where a frame stands. */
struct native_place {
	uint64_t pc;
	bool is_exact; /* it is at this instruction; else a call will return there */
};

/* What was found; the frames are valid until the next call. */
struct native_walked {
	const uint64_t *frames;            /* PYBPF_NATIVE_FRAME, from the innermost outwards */
	const struct native_place *places; /* likewise */
	uint32_t count;
	enum pybpf_native_end end;
	uint64_t hash; /* of the frames and the end */
};

/* Returns NULL without memory. */
struct native_walker *native_walker_new(native_walker_read_page *read_page, void *arg, enum pybpf_native_exact exact);
void native_walker_free(struct native_walker *w);

/* Pages may have been written since the last call. */
void native_walker_forget_pages(struct native_walker *w);

/* list: of the thread's process; NULL: it has none. The memory of the thread is read by remote_read(). */
void native_walker_follow(struct native_walker *w, const struct native_thread *thread,
			  const struct pybpf_native_list *list, struct native_walked *out);

#endif
