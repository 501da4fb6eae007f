// SPDX-License-Identifier: Apache-2.0
/* The native frames of threads that stand, between the functions of Python that they belong to. */
#ifndef DUMP_NATIVE_H
#define DUMP_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helper/helper.h"
#include "native/demangle.h"
#include "symbols/walk/unwind.h"

/* Most frames of a thread; the rest, its outermost ones, are missing then. */
#define DUMP_NATIVE_MAX 1024

struct dump_native_frame {
	uint64_t pc;
	char name[NATIVE_NAME_MAX]; /* of the function, as native_demangle() writes it; "": not known */
	char file[512];             /* path of the file that it is in; "": in none */
	bool is_loop;               /* of the interpreter: it runs functions of Python, and stands for them */
	uint32_t after;             /* the frame of dump_frames() that called it, DUMP_NO_FRAME: none did */
};

struct dump_native {
	struct dump_native_frame *frames; /* the innermost first */
	size_t count;
	bool is_whole; /* up to the thread's first function */
	bool fits; /* each run of the loop but the innermost has its functions of Python, and each of these has one */
};

struct dump_thread;

/*
 * Reads the frames of a thread that is stopped with these registers, in a helper. moment: differs between two times at
 * which the process stood. eval_loop: the function of C that evaluates frames, or "". Returns 0 or negative errno;
 * dump_native_free() in any case.
 */
int dump_read_native(pid_t pid, uint64_t moment, const struct unwind_registers *registers, const char *eval_loop,
		     struct dump_native *out);
/*
 * Likewise in steps, so that a thread that is stopped for it does not stand for longer than it takes to find its
 * frames. dump_find_native() says whether something was missing that takes longer: then dump_prepare_native() does it,
 * when the thread runs again, and it is to be stopped once more. dump_name_native() tells what was found last.
 */
int dump_find_native(pid_t pid, uint64_t moment, const struct unwind_registers *registers, bool *is_late);
int dump_prepare_native(pid_t pid, uint64_t moment);
int dump_name_native(pid_t pid, uint64_t moment, const char *eval_loop, struct dump_native *out);
/* Has the helper let go of what it has read for that. */
void dump_end_native(void);
void dump_native_free(struct dump_native *native);

/*
 * Finds the function of Python that called each frame: the thread's frames as walked, with their numbers, are known.
 * Where it does not fit, callers are left out.
 */
void dump_native_merge(struct dump_thread *thread);

/* How helpers answer: a row of the table in cli/services.c. */
helper_service dump_serve_native;

#endif
