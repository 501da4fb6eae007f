// SPDX-License-Identifier: Apache-2.0
/* What the printing of threads and of tasks has in common. */
#ifndef DUMP_PRINT_H
#define DUMP_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct dump_process;
struct dump_task;
struct dump_thread;
struct json;

/* Prints the functions of a stack as a traceback, each line behind so many blanks; with a thread's variables or NULL.
 */
void dump_print_stack(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
		      bool reverse, int indent, FILE *out);
/* Prints the tree of asyncio's tasks; nothing if they are not wanted. */
void dump_print_tasks(const struct dump_process *process, bool reverse, FILE *out);

/* Writes the functions of a stack as the array "frames"; with a thread's variables or NULL. */
void dump_write_frames(const struct dump_process *process, const struct dump_thread *thread, uint32_t stack,
		       struct json *j);
/* Writes asyncio's tasks, or null where they are not wanted. */
void dump_write_tasks(const struct dump_process *process, struct json *j);

/* Returns the TID of the thread that runs a task; 0: there is none, or it is not known. */
int dump_task_tid(const struct dump_process *process, const struct dump_task *task);

/* Returns whether a native frame is in the file of one of the process's Pythons. */
bool dump_is_interpreter(const struct dump_process *process, const struct dump_native_frame *frame);

#endif
