// SPDX-License-Identifier: Apache-2.0
/* Executable files: what the kernel is told of programs, and what is remembered of what they map. */
#ifndef PROCESSES_FILES_H
#define PROCESSES_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery/discovery.h"
#include "kernel/watch.h"
#include "pybpf.h"

struct session_files;

/* What a mapping makes of its process. */
enum session_files_found {
	SESSION_FILES_NOTHING,
	SESSION_FILES_UNKNOWN, /* the file could not be opened (any more) */
	SESSION_FILES_LOOK,    /* a Python: look at the process */
	SESSION_FILES_PLACED,  /* a Python whose addresses are known */
};

struct session_files *session_files_new(struct kernel *k);
void session_files_free(struct session_files *f);

/*
 * A process that runs the program `key` was found to be this Python, whose layout has that index: the kernel and
 * session_files_mapped know it from now on. Returns true when a process of the file with the runtime has been validated
 * before. key is NULL for a Python that is not its process's first: what the program is, the first one says.
 */
bool session_files_add(struct session_files *f, const struct pybpf_file_key *key, const struct discovery_python *python,
		       uint32_t layout);
/* Processes of the program run no Python. */
void session_files_add_other(struct session_files *f, const struct pybpf_file_key *key);
bool session_files_is_other(const struct session_files *f, const struct pybpf_file_key *key);
/* The Python agrees with its layout. */
void session_files_validated(struct session_files *f, const struct discovery_python *python);
/* It does not: from now on each process is looked at. */
void session_files_distrust(struct session_files *f, const struct pybpf_file_key *key,
			    const struct discovery_python *python);

/* Says what the mapping is; SESSION_FILES_PLACED: fills *place. */
enum session_files_found session_files_mapped(struct session_files *f, const struct kernel_mapping *mapping,
					      struct pybpf_runtime *place);

#endif
