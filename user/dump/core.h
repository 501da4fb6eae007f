// SPDX-License-Identifier: Apache-2.0
/* A core file in place of a process: its memory, which the files that were mapped complete, and its threads. */
#ifndef DUMP_CORE_H
#define DUMP_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "discovery/list.h"
#include "dump/state.h"
#include "helper/helper.h"
#include "symbols/walk/unwind.h"

struct dump_core;

struct dump_core_files {
	const char *core;
	const char *executable; /* the program's file; NULL: where it was */
	const char *sysroot;    /* below which the mapped files are; NULL: where they were */
};

/*
 * Opens a core file, and lets it stand in for PROCESS_SOURCE_PID: to be called before helpers are started, which read
 * it. Returns 0, or negative errno with one sentence in *error. dump_core_close() closes it.
 */
int dump_core_open(const struct dump_core_files *files, struct dump_core **out, struct error *error);
void dump_core_close(struct dump_core *core);
/* Returns 0, or -ESTALE with one sentence in *error if the file was changed since it was opened. */
int dump_core_check(const struct dump_core *core, struct error *error);

/*
 * Finds the Pythons of the process, by a helper, and makes it the only row of the list. Warns if files that were mapped
 * are not there. Returns 0, or negative errno with one sentence in *error.
 */
int dump_core_list(const struct dump_core *core, struct ps_list *list, struct error *error);
/* Replaces PROCESS_SOURCE_PID in a sentence about the process by what it stands for. */
void dump_core_retell(const struct dump_core *core, struct error *error);

/* Returns the thread with this thread pointer, or 0. */
pid_t dump_core_find_thread(const struct dump_core *core, uint64_t thread_pointer);
/* Fills in the registers of a thread. Returns whether there is such a one. */
bool dump_core_registers(const struct dump_core *core, pid_t tid, struct unwind_registers *out);
/*
 * Returns whether the core has the memory that begins at the thread's pthread_self(), and so its C stack: gcore(1)
 * writes zeros in place of a mapping of which it cannot read a page, such as a guard page of glibc 2.42. To be called
 * when helpers run.
 */
bool dump_core_has_stack(const struct dump_core *core, pid_t tid);
/* Returns how a thread stood when the core was written. */
enum dump_stopped dump_core_stopped(const struct dump_core *core, pid_t tid);

struct dump_core_facts {
	const char *file;
	int signal;       /* that ended the process; 0: none, a debugger or gcore(1) wrote the file */
	pid_t signalled;  /* the thread that had it */
	bool has_address; /* of the access that failed: in address */
	uint64_t address;
	uint64_t missing; /* bytes by which the file is too short */
};
struct dump_core_facts dump_core_facts(const struct dump_core *core);
/* Returns the name of a signal, such as "SIGSEGV", or NULL if it has none. */
const char *dump_core_signal_name(int signal, char *out, size_t size);

/* How helpers answer: a row of the table in cli/services.c. */
helper_service dump_serve_core_files;

#endif
