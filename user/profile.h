// SPDX-License-Identifier: Apache-2.0
/*
 * The aggregated profile in memory: strings, frames, stacks as a tree, samples with their value. Knows nothing of BPF
 * or of processes. Every index that a function returns stays valid until profile_free.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <stddef.h>
#include <stdint.h>

/* Returned instead of an index when memory is exhausted. */
#define PROFILE_NONE UINT32_MAX
/* The stack of no frames: every stack grows from it. */
#define PROFILE_ROOT 0
/* A frame without a line. */
#define PROFILE_NO_LINE (-1)

enum profile_frame_kind {
	PROFILE_PYTHON,
	PROFILE_NOTE, /* stands for what is missing, e.g. frames that were cut: text is printed as it is */
};

struct profile_frame {
	uint32_t name, file; /* strings; file 0 (the empty string) where there is none */
	int32_t line;
	uint32_t kind; /* enum profile_frame_kind */
};

/* A stack: its leaf frame, and the stack below it. */
struct profile_stack {
	uint32_t parent, frame;
};

struct profile_process {
	int32_t pid;        /* 0: several processes that are shown as one */
	int32_t inner_pid;  /* in its own PID namespace; 0: the same */
	uint32_t name;      /* string: its comm, or what stands for it */
	uint32_t container; /* string; 0 (the empty string): in none */
};

struct profile_process_info {
	int32_t pid, inner_pid; /* as above */
	const char *name;
	const char *container; /* NULL: in none */
};

struct profile_thread {
	uint32_t process;
	int32_t tid;
	uint32_t name; /* string */
};

/* What stands below the frames of a stack; a thread is there where samples have one. */
enum profile_root {
	PROFILE_ROOT_PROCESS = 1u << 0,
	PROFILE_ROOT_CONTAINER = 1u << 1, /* below the process */
};

/* Samples that share everything. */
struct profile_sample {
	uint32_t stack;
	uint32_t process;
	uint32_t thread; /* PROFILE_NONE where threads are not told apart */
	uint64_t value;
};

struct profile;

struct profile *profile_new(void);
void profile_free(struct profile *p);

uint32_t profile_add_string(struct profile *p, const char *text);
uint32_t profile_add_frame(struct profile *p, enum profile_frame_kind kind, const char *name, const char *file,
			   int32_t line);
/* The stack that has `frame` on top of `parent`. */
uint32_t profile_add_stack(struct profile *p, uint32_t parent, uint32_t frame);
uint32_t profile_add_process(struct profile *p, const struct profile_process_info *info);
uint32_t profile_add_thread(struct profile *p, uint32_t process, int32_t tid, const char *name);
/* Adds value to the samples of that stack, process and thread. Returns 0 or -ENOMEM. */
int profile_add_sample(struct profile *p, uint32_t stack, uint32_t process, uint32_t thread, uint64_t value);

const char *profile_string(const struct profile *p, uint32_t index);
const struct profile_frame *profile_frame(const struct profile *p, uint32_t index);
const struct profile_stack *profile_stack(const struct profile *p, uint32_t index);
const struct profile_process *profile_process(const struct profile *p, uint32_t index);
const struct profile_thread *profile_thread(const struct profile *p, uint32_t index);

/* All samples, each distinct one once, and how many. */
const struct profile_sample *profile_samples(const struct profile *p, size_t *count);
uint32_t profile_frame_count(const struct profile *p);
uint32_t profile_process_count(const struct profile *p);

/* Roots of stacks, a set of enum profile_root. Where none were set: processes, if there is more than one. */
void profile_set_roots(struct profile *p, unsigned roots);
unsigned profile_roots(const struct profile *p);

/* Memory that the profile takes. */
size_t profile_bytes(const struct profile *p);

#endif
