// SPDX-License-Identifier: Apache-2.0
/*
 * The aggregated profile in memory: strings, frames, stacks as a tree, samples with their value, and facts about the
 * run. It does not depend on BPF or on live processes. Every index that a function returns stays valid until
 * profile_free; pointers stay valid until something is added. Indices are dense: 0 to count - 1. Strings are any bytes
 * but NUL, usually UTF-8: the output formats escape them.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returned instead of an index when memory is exhausted. */
#define PROFILE_NONE UINT32_MAX
/* The stack without frames: the root of the tree of stacks. */
#define PROFILE_ROOT 0
/* The line of a frame without a line. */
#define PROFILE_NO_LINE (-1)

enum profile_frame_kind {
	PROFILE_PYTHON,
	PROFILE_NOTE,   /* a remark in place of missing frames, e.g. those that were cut: its name is printed alone */
	PROFILE_THREAD, /* the name of a thread without Python, in brackets; likewise */
	PROFILE_KERNEL, /* a function of the kernel: its name, and _[k] behind it; it has no file */
	/* A function of compiled code: its file is the library or program that has it, or, of one with a line, its
	 * source. */
	PROFILE_NATIVE,
	PROFILE_FRAME_KINDS,
};

struct profile_frame {
	uint32_t name, file; /* strings; file 0 (the empty string): no file */
	int32_t line;        /* that was executed; PROFILE_NO_LINE where unknown or not wanted */
	int32_t first_line;  /* of the function, its decorators included; PROFILE_NO_LINE where unknown */
	/* Where the expression ends and begins, in bytes of its lines; end_line 0: not known or not wanted. */
	int32_t end_line, column, end_column;
	uint32_t kind;  /* enum profile_frame_kind */
	uint32_t state; /* string: the state of a thread that waits, "network" for one; 0 (empty): it does not */
	int32_t waker;  /* of a wait's note that names who ended it: its TID on the host; 0: it does not */
	/* The place of compiled code, see struct profile_code; 0 in other frames. */
	uint32_t mapping; /* 1 + index of the mapping that has it; 0: not known */
	uint32_t marks;   /* bits of enum profile_code_mark */
	uint64_t address; /* in the mapping, as linked; 0: not known, or those of several functions */
};

enum profile_code_mark {
	PROFILE_CODE_NAMELESS = 1u << 0, /* no symbol names it: its name is made of its file and address */
	PROFILE_CODE_INLINED = 1u << 1,  /* the compiler has put it into the function below it in the stack */
};

/* Where a function of compiled code is. */
struct profile_code {
	uint32_t mapping; /* index; PROFILE_NONE: not known */
	uint32_t marks;
	uint64_t address; /* of a function its first, of a line one of its instructions; 0: not known */
	int32_t line;     /* PROFILE_NO_LINE: not known */
};

/* The note of stacks whose native frames are not all there. */
#define PROFILE_NATIVE_INCOMPLETE "[native frames incomplete]"

/* A stack: its leaf frame, and the stack below it. */
struct profile_stack {
	uint32_t parent, frame;
};

struct profile_process {
	int32_t pid;        /* 0: several processes that are shown as one */
	int32_t inner_pid;  /* in its own PID namespace; 0: the same */
	uint32_t name;      /* string: its comm, or the text that replaces it */
	uint32_t container; /* string; 0 (the empty string): not in a container */
	uint32_t service;   /* string: what it is a part of, whatever its PID; 0 (the empty string): not known */
	uint32_t
		attributes; /* string: what else is known of it (profile/attributes.h); 0 (the empty string): nothing */
};

struct profile_process_info {
	int32_t pid, inner_pid; /* as above */
	const char *name;
	const char *container;  /* NULL: not in a container */
	const char *service;    /* NULL: not known */
	const char *attributes; /* NULL: none */
};

struct profile_thread {
	uint32_t process;
	int32_t tid;
	uint32_t name; /* string */
};

/* Bits for the entries shown below the frames of a stack; a thread is shown if the sample has one. */
enum profile_root {
	PROFILE_ROOT_PROCESS = 1u << 0,
	PROFILE_ROOT_CONTAINER = 1u << 1, /* below the process */
	PROFILE_ROOT_THREAD = 1u << 2,    /* above the process */
	PROFILE_ROOT_BY_COUNT = 1u << 3,  /* the process, if there is more than one */
	PROFILE_ROOT_PARENTS = 1u << 4,   /* those that started the process, below it */
};

/* All samples with the same stack, process and thread. */
struct profile_sample {
	uint32_t stack;
	uint32_t process;
	uint32_t thread; /* PROFILE_NONE: threads are not distinguished */
	uint64_t value;
	uint64_t count; /* where the value is time: how many waits, or CPU samples, it is the time of; else 0 */
};

/* The time when a part of a sample's value was taken; where values are time, a wait's start, and value is its length.
 */
struct profile_event {
	uint64_t time_ns; /* since the run began */
	uint32_t sample;  /* index */
	uint32_t value;
};

/* What values measure, such as "samples" in "count"; only profiles with the same measure are added or compared. */
struct profile_measure {
	const char *name, *unit;
	uint64_t period_ns; /* CPU time that a value of 1 represents; 0: unknown, or none */
};

/*
 * A count of samples or processes by what happened to them, e.g. "lost", "ring_buffer_full", "whose stack never came
 * through...", 12.
 */
struct profile_account {
	uint32_t group, key, text; /* strings; text follows the number in a sentence, or is empty */
	uint64_t value;
};

/* The source text of a file that frames have; both strings. */
struct profile_source {
	uint32_t file, text;
};

/* Whose the functions of a file are, the program's own first. */
enum profile_origin {
	PROFILE_OWN,
	PROFILE_THIRD_PARTY, /* of an installed package */
	PROFILE_STDLIB,
	PROFILE_ORIGINS,
};

/* A fact about the run or its host; both are strings. See PROFILE_FACT_... */
struct profile_fact {
	uint32_t key, value;
};

/* The group of the account that has the time of threads in each state, in nanoseconds; keys are states. */
#define PROFILE_ACCOUNT_STATES "thread_ns"
/* The group of the account that has what filters left out, in the unit of values. */
#define PROFILE_ACCOUNT_LEFT_OUT "left out"
/* The unit of values that are time of threads. */
#define PROFILE_UNIT_TIME "microseconds"
/* The state of a stack whose leaf has none. */
#define PROFILE_STATE_RUNNING "on CPU"
/* The state of stacks whose time is that of a suspended task, and of no thread. */
#define PROFILE_STATE_SUSPENDED "awaits"

/*
 * Keys of facts that pybpf sets; numbers are decimal. Each may be missing. The table in facts.c says how those of
 * several runs become one, and which are left with --anonymize.
 */
#define PROFILE_FACT_VERSION  "pybpf"      /* version of the pybpf that sampled */
#define PROFILE_FACT_HOST     "host"       /* name of the machine */
#define PROFILE_FACT_KERNEL   "kernel"     /* release of the kernel */
#define PROFILE_FACT_ARCH     "arch"       /* as uname -m */
#define PROFILE_FACT_CPUS     "cpus"       /* number of CPUs that were sampled */
#define PROFILE_FACT_START    "start_ns"   /* start of sampling, since 1970 */
#define PROFILE_FACT_DURATION "duration_s" /* duration of sampling */
/* Time of the whole machine while it was sampled, in seconds; all three may be missing. */
#define PROFILE_FACT_OTHERS  "others_s" /* CPU time of all programs and of the kernel, less that of the samples */
#define PROFILE_FACT_STOLEN  "stolen_s" /* CPU time that a hypervisor gave to other machines */
#define PROFILE_FACT_WAITED  "waited_s" /* time in which some thread waited for a CPU */
#define PROFILE_FACT_FREQ    "freq_hz"
#define PROFILE_FACT_WEIGHT  "weight"  /* for how many of freq_hz a sample counts, if not 1: the rate was lowered */
#define PROFILE_FACT_EVENT   "event"   /* cpu-clock or cycles */
#define PROFILE_FACT_PYTHON  "python"  /* versions of the sampled Pythons: "3.10, 3.12" */
#define PROFILE_FACT_COMMAND "command" /* command lines of the processes, if --cmdline asked for them */

struct profile;

struct profile *profile_new(void);
void profile_free(struct profile *p);

uint32_t profile_add_string(struct profile *p, const char *text);
/* file: "": no file. */
uint32_t profile_add_frame(struct profile *p, enum profile_frame_kind kind, const char *name, const char *file,
			   int32_t line, int32_t first_line);
/* Adds a function of compiled code. */
uint32_t profile_add_code(struct profile *p, const char *name, const char *file, const struct profile_code *code);
/* Adds the leaf of a stack that waits, a PROFILE_NOTE; state: not empty. waker: 0, or as in struct profile_frame. */
uint32_t profile_add_wait(struct profile *p, const char *state, const char *name, int32_t waker);
/* Where a function of Python is; as in struct profile_frame. */
struct profile_place {
	int32_t line, first_line, end_line, column, end_column;
};
/* Likewise, a function of Python. */
uint32_t profile_add_python(struct profile *p, const char *name, const char *file, const struct profile_place *place);
/* Returns where a frame is. */
struct profile_place profile_place_of(const struct profile_frame *frame);
/*
 * Adds a frame of another profile, in which it has that index, with other lines. Compiled code gets the library that
 * has it, but no address, which differs from build to build.
 */
uint32_t profile_add_frame_of(struct profile *p, const struct profile *from, uint32_t frame, int32_t line,
			      int32_t first_line);
/* Adds the stack that has `frame` on top of `parent`. */
uint32_t profile_add_stack(struct profile *p, uint32_t parent, uint32_t frame);
uint32_t profile_add_process(struct profile *p, const struct profile_process_info *info);
/*
 * Adds a process that started others. above: who started it, of those added before, or PROFILE_NONE; ended: it had
 * ended when the run did. Returns its index among the parents (profile/parents.h), or PROFILE_NONE.
 */
uint32_t profile_add_parent(struct profile *p, uint32_t above, const struct profile_process_info *info, bool ended);
/* Says which of the parents started a process. Returns 0 or -ENOMEM. */
int profile_set_parent(struct profile *p, uint32_t process, uint32_t parent);
uint32_t profile_add_thread(struct profile *p, uint32_t process, int32_t tid, const char *name);
/* Adds value to the samples of that stack, process and thread. Returns 0 or -ENOMEM. */
int profile_add_sample(struct profile *p, uint32_t stack, uint32_t process, uint32_t thread, uint64_t value);
/* Likewise, of values that are time: count waits, or CPU samples, took it. */
int profile_add_time(struct profile *p, uint32_t stack, uint32_t process, uint32_t thread, uint64_t value,
		     uint64_t count);
/* Returns the index of the samples of that stack, process and thread, or PROFILE_NONE. */
uint32_t profile_find_sample(const struct profile *p, uint32_t stack, uint32_t process, uint32_t thread);
/* Removes all samples and their events; frames, stacks, processes and threads stay. */
void profile_clear_samples(struct profile *p);
/* Records when a part of a sample's value was taken; the sample's value must include it. Returns 0 or -ENOMEM. */
int profile_add_event(struct profile *p, uint64_t time_ns, uint32_t sample, uint32_t value);
/* The measure's texts are copied. Until set it is "samples" in "count", of no period. Returns 0 or -ENOMEM. */
int profile_set_measure(struct profile *p, const struct profile_measure *measure);
/* Adds value to the account's entry of that group and key; the text of the first one stays. Returns 0 or -ENOMEM. */
int profile_add_account(struct profile *p, const char *group, const char *key, const char *text, uint64_t value);
/* Replaces a fact. Returns 0 or -ENOMEM. */
int profile_set_fact(struct profile *p, const char *key, const char *value);
/* Adds a value to a fact that is a list of distinct ones; what does not fit is left out. Returns 0 or -ENOMEM. */
int profile_join_fact(struct profile *p, const char *key, const char *value);
/*
 * Sets the source of a file; "": none is known. A file of which two texts were set has none from then on: nothing says
 * which samples are of which. Returns 0 or -ENOMEM.
 */
int profile_set_source(struct profile *p, const char *file, const char *text);

/*
 * Says whose the functions of a file are. Files are shown alike that are not the same: the first origin in the order of
 * enum profile_origin stays. Returns 0 or -ENOMEM.
 */
int profile_set_origin(struct profile *p, const char *file, enum profile_origin origin);
/* Returns the origin of a string that is a file; PROFILE_OWN where it was never set. */
enum profile_origin profile_origin_of(const struct profile *p, uint32_t file);

struct intern;
/*
 * Returns the parts of files that functions of compiled code are in, struct profile_mapping; others are added to them
 * (profile/mappings.h).
 */
struct intern *profile_mappings_of(struct profile *p);
const struct intern *profile_get_mappings(const struct profile *p);
/* Returns the string of the library or program that has a function of compiled code; 0 (the empty string): none. */
uint32_t profile_library_of(const struct profile *p, const struct profile_frame *frame);

const char *profile_string(const struct profile *p, uint32_t index);
const struct profile_frame *profile_frame_at(const struct profile *p, uint32_t index);
const struct profile_stack *profile_stack_at(const struct profile *p, uint32_t index);
const struct profile_process *profile_process_at(const struct profile *p, uint32_t index);
/* Returns the index of a process that is equal, or PROFILE_NONE. */
uint32_t profile_find_process(const struct profile *p, const struct profile_process *process);
struct profile_parents;
/* Returns who started the processes. */
const struct profile_parents *profile_get_parents(const struct profile *p);
const struct profile_thread *profile_thread_at(const struct profile *p, uint32_t index);

/* Returns all samples, each distinct one once, and their number. */
const struct profile_sample *profile_samples(const struct profile *p, size_t *count);
/* All events, in the order of their times after profile_sort_events. */
const struct profile_event *profile_events(const struct profile *p, size_t *count);
void profile_sort_events(struct profile *p);
/* Moves all events later by ns. Returns 0, or -EOVERFLOW, with nothing moved, if one would pass 2^63 ns. */
int profile_delay_events(struct profile *p, uint64_t ns);
const struct profile_account *profile_account_entries(const struct profile *p, size_t *count);
const struct profile_source *profile_sources(const struct profile *p, size_t *count);
const struct profile_fact *profile_facts(const struct profile *p, size_t *count);
/* Returns the value of a fact, or NULL. */
const char *profile_find_fact(const struct profile *p, const char *key);
/* Valid until the measure is set again. */
struct profile_measure profile_get_measure(const struct profile *p);

uint32_t profile_string_count(const struct profile *p);
uint32_t profile_frame_count(const struct profile *p);
/* PROFILE_ROOT included; a parent has a smaller index than its children. */
uint32_t profile_stack_count(const struct profile *p);
uint32_t profile_process_count(const struct profile *p);
uint32_t profile_thread_count(const struct profile *p);
/* Returns the sum of the values of all samples that have frames. */
uint64_t profile_total(const struct profile *p);
/* Returns whether samples have counts beside their values. */
bool profile_has_counts(const struct profile *p);
/* Returns whether a frame has a state: the profile tells how threads wait. */
bool profile_has_states(const struct profile *p);
/* Returns whether a frame has the columns of its expression. */
bool profile_has_columns(const struct profile *p);
/* Returns whether a frame of compiled code has a mapping or marks. */
bool profile_has_code_places(const struct profile *p);
/* Returns whether a frame has a waker. */
bool profile_has_wakers(const struct profile *p);
/* Returns the string of the state that a stack's leaf has; 0 (the empty string): the thread runs. */
uint32_t profile_state_of(const struct profile *p, uint32_t stack);
/*
 * Returns the stack that waits: without its leaf, the frames behind that one and the kernel's functions before it; the
 * stack itself if it runs.
 */
uint32_t profile_waiter_of(const struct profile *p, uint32_t stack);

/* Returns the TID of the thread that ended the waits of a stack, or 0 where that is not known or the stack runs. */
int32_t profile_waker_of(const struct profile *p, uint32_t stack);

/*
 * Makes the samples with frames as the roots distinguish them: process and thread are PROFILE_NONE unless they are
 * among the roots (for a container, the process is kept), and samples that are then equal are added up, in the order of
 * first appearance. The caller frees *samples. Returns 0 or -ENOMEM.
 */
int profile_by_roots(const struct profile *p, struct profile_sample **samples, size_t *count);

/* Sets the roots of stacks, bits of enum profile_root; PROFILE_ROOT_BY_COUNT until set. */
void profile_set_roots(struct profile *p, unsigned roots);
/* Returns the roots as they were set. */
unsigned profile_wanted_roots(const struct profile *p);
/* Returns the roots that apply: PROFILE_ROOT_BY_COUNT is resolved by the number of processes. */
unsigned profile_roots(const struct profile *p);

#endif
