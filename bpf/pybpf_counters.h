/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What becomes of each sample. */
#ifndef PYBPF_COUNTERS_H
#define PYBPF_COUNTERS_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/*
 * What becomes of a sample. Every sample that hits a wanted process is in exactly one of LOST, WITHOUT and PYTHON: LOST
 * ones have nothing to show, WITHOUT ones met no Python frame and are counted in a pseudo stack (OTHER_PROGRAM: in
 * none), PYTHON is counted with its stack. INCOMPLETE ones are among the latter two. ASKED is the sum of all, which
 * user space makes. OTHER ones are left out because an option asks for threads in a state, and are in no sum; nor are
 * GIL ones, which are all that --mode=gil counts.
 * X(name, class, key in --json-stats, how people are told of it after a number of samples)
 */
#define PYBPF_COUNTERS(X)                                                                                              \
	X(ASKED, ASKED, "asked", "in the profiled processes")                                                          \
	X(NOT_READY, LOST, "not_ready", "taken before the interpreter was found")                                      \
	X(MISSED, LOST, "missed", "in processes that ended before they could be looked at")                            \
	X(NO_ROOM, LOST, "process_table_full", "in processes that found no room in the table (see --max-processes)")   \
	X(NO_SCRATCH, LOST, "no_scratch", "taken on a CPU that is not known")                                          \
	X(TABLE_FULL, LOST, "stack_table_full", "with a new stack when the table was full (see --max-stacks)")         \
	X(TABLE_BUSY, LOST, "stack_table_busy", "while another context held the stack table")                          \
	X(MEMORY_FULL, LOST, "memory_limit", "with a new stack when the memory was used up (see --max-memory)")        \
	X(UNREADABLE, LOST, "unreadable", "whose frames were being switched, or not readable")                         \
	X(NO_INTERPRETER, WITHOUT, "no_interpreter", "where no interpreter ran: starting or ended")                    \
	X(OTHER_PROGRAM, WITHOUT, "other_program", "in other programs, which are not in the profile")                  \
	X(NO_THREAD_STATE, WITHOUT, "no_thread_state", "on threads that Python does not know")                         \
	X(NO_FRAMES, WITHOUT, "no_frames", "on Python threads outside of any Python function")                         \
	X(PYTHON, PYTHON, "python", "with Python frames")                                                              \
	X(OTHER_STATE, OTHER, "other_state", "of threads that --gil or --mode=exception does not ask for")             \
	X(STATE_UNKNOWN, OTHER, "state_unknown",                                                                       \
	  "of Pythons that do not tell what --gil or --mode=exception asks for")                                       \
	X(CUT, INCOMPLETE, "cut", "deeper than 8,192 frames: leaf and root kept")                                      \
	X(NO_ROOT, INCOMPLETE, "no_root", "so deep that the root was not reached")                                     \
	X(FAULT, INCOMPLETE, "fault", "with a frame that could not be read")                                           \
	X(NOT_CODE, INCOMPLETE, "not_code", "with a frame that had no code object")                                    \
	X(CYCLE, INCOMPLETE, "cycle", "with a frame chain that ran in a circle")                                       \
	X(NO_CALLERS, INCOMPLETE, "no_callers", "whose callers in another interpreter could not be told")              \
	X(JIT, INCOMPLETE, "jit", "in code that Python's JIT compiled: the last function is shown without a line")     \
	X(COMPILED, INCOMPLETE, "compiled", "in code that Nuitka compiled: its functions are shown without a line")    \
	X(OUTER, INCOMPLETE, "other_python_outside", "called from another Python's functions, which are not shown")    \
	X(BESIDE, INCOMPLETE, "other_python_beside",                                                                   \
	  "in functions of two Pythons at once, of which one is shown: which of them ran is not known")                \
	X(UNTIMED, INCOMPLETE, "untimed",                                                                              \
	  "without their time: the ring buffer or the memory for times was full, or the process was not known yet")    \
	X(GIL_INTERPRETER, GIL, "interpreter", "in the interpreter, with the GIL")                                     \
	X(GIL_OTHER_CODE, GIL, "other_code", "in code of other files, with the GIL")                                   \
	X(GIL_UNKNOWN_CODE, GIL, "unknown_code",                                                                       \
	  "in code that cannot be distinguished from the interpreter's, with the GIL")                                 \
	X(GIL_KERNEL, GIL, "kernel", "in the kernel, with the GIL")

enum pybpf_counter {
#define X(name, class, key, text) PYBPF_COUNT_##name,
	PYBPF_COUNTERS(X)
#undef X
	PYBPF_NR_COUNTERS,
};

/* Value of map counters. */
struct pybpf_counters {
	__u64 value[PYBPF_NR_COUNTERS];
};

/*
 * Contexts in which programs run. On its own CPU a program may be interrupted by a program of another context, but
 * never of its own: so each context has its own counters and its own working memory.
 */
enum pybpf_context {
	PYBPF_CONTEXT_EVENT,  /* perf events and tracepoints of perf's: one at a time on a CPU (bpf_prog_active) */
	PYBPF_CONTEXT_SWITCH, /* the switch to another thread, with interrupts off */
	PYBPF_CONTEXTS,
};

#endif
