// SPDX-License-Identifier: Apache-2.0
/*
 * Native stacks of a process by the tables and the search that the kernel side uses. Tables are made here, of the files
 * on its stacks, and of single instructions where these say nothing. To be used in a helper process (helper.h). x86-64.
 */
#ifndef NATIVE_FOLLOW_H
#define NATIVE_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "native/walker.h"

/* The walker's, and what else is known of the frame. */
struct native_followed_frame {
	uint64_t pc;
	bool is_exact;
	bool is_loop; /* its function evaluates Python's frames */
	bool is_made; /* its code is in no file (native/made.h) */
	bool is_vdso; /* its code is the kernel's */
	/* As its maker writes it, of such code; NULL: not known, or not asked for yet. */
	const char *name;
	uint64_t linked; /* its address in its file, if that is known; a call's last byte */
};

/* The frames, the innermost first, are valid until the next call. */
struct native_followed {
	const struct native_followed_frame *frames;
	uint32_t count;
	enum pybpf_native_end end; /* NO_TABLE: of a file whose table cannot be made, or would take long, or for which
				    the list of mappings had no room */
};

struct native_follower;
/* Reads the mappings of a process, or of a core file. Returns 0 or negative errno. */
int native_follower_new(pid_t pid, struct native_follower **out);
void native_follower_free(struct native_follower *f);

/*
 * thread: of the process; its PID is not used. is_quick: no table is made, as the thread stands meanwhile. Returns
 * false if one is missing: native_follower_prepare() makes it.
 */
bool native_follow(struct native_follower *f, const struct native_thread *thread, bool is_quick,
		   struct native_followed *out);
void native_follower_prepare(struct native_follower *f);
/* Fills in the names of code in no file of the process's own, which live as long as the follower. */
void native_follower_name(struct native_follower *f, struct native_followed_frame *frames, uint32_t count);

#endif
