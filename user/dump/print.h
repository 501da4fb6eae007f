// SPDX-License-Identifier: Apache-2.0
/* What the printing of threads and of tasks has in common. */
#ifndef DUMP_PRINT_H
#define DUMP_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dump/dump.h"

struct json;

/* text_stack.c */

/* Prints the functions of a stack, each line behind this many blanks; with a thread's variables or NULL. */
void dump_print_stack(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
		      enum dump_style style, int indent, FILE *out);

/* text_thread.c */

/* Prints a time with the unit that fits it. */
void dump_print_seconds(double seconds, FILE *out);
/* Prints the start of a thread's line: what it is called. */
void dump_print_thread_name(const struct dump_thread *thread, FILE *out);
/* Prints what a thread does, from its state to what it did since the earlier snapshot, which may be NULL. */
void dump_print_doing(const struct dump_process *process, const struct dump_process *before,
		      const struct dump_thread *thread, FILE *out);
/* Prints the thread's stack, or why there is none. */
void dump_print_thread_stack(const struct dump_process *process, const struct dump_thread *thread,
			     enum dump_style style, FILE *out);

/* short.c, task_text.c */

/* Prints the threads as DUMP_SHORT has them. */
void dump_print_short(const struct dump_process *process, const struct dump_process *before, FILE *out);
/* Prints the tree of asyncio's tasks; nothing if they are not wanted. */
void dump_print_tasks(const struct dump_process *process, enum dump_style style, FILE *out);

/* json_frames.c, greenlet_print.c, task_json.c */

/* Writes the functions of a stack as the array "frames"; with a thread's variables or NULL. */
void dump_write_frames(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
		       struct json *j);
/* Prints the greenlets of the thread that do not run. */
void dump_print_greenlets(const struct dump_process *process, const struct dump_thread *thread, enum dump_style style,
			  FILE *out);
/* Says whether there are greenlets that are not printed. */
void dump_print_greenlets_left_out(const struct dump_process *process, FILE *out);
/* Writes the greenlets of the thread as the array "greenlets". */
void dump_write_greenlets(const struct dump_process *process, const struct dump_thread *thread, struct json *j);

/* Writes asyncio's tasks, or null where they are not wanted. */
void dump_write_tasks(const struct dump_process *process, struct json *j);

/* Returns the TID of the thread that runs a task; 0: there is none, or it is not known. */
int dump_task_tid(const struct dump_process *process, const struct dump_task *task);

/* Returns whether a native frame is in the file of one of the process's Pythons. */
bool dump_is_interpreter(const struct dump_process *process, const struct dump_native_frame *frame);

#endif
