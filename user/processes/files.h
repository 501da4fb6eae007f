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

struct processes_files;

/* What a mapping makes of its process. */
enum processes_mapped {
	PROCESSES_MAPPED_NOTHING,
	PROCESSES_MAPPED_UNKNOWN, /* the file could not be opened (any more) */
	PROCESSES_MAPPED_PYTHON,  /* a Python: look at the process */
	PROCESSES_MAPPED_PLACED,  /* a Python whose addresses are known */
};

struct processes_files *processes_files_new(struct kernel *k);
void processes_files_free(struct processes_files *f);

/*
 * A process that runs the program `key` was found to be this Python, whose layout has that index: the kernel and
 * processes_files_classify_mapping know it from now on. Returns true when a process of the file with the runtime has
 * been validated before. key is NULL for a Python that is not its process's first: what the program is, the first one
 * says.
 */
bool processes_files_add_python(struct processes_files *f, const struct pybpf_file_key *key,
				const struct discovery_python *python, uint32_t layout);
/* Processes of the program run no Python. */
void processes_files_add_other(struct processes_files *f, const struct pybpf_file_key *key);
bool processes_files_is_other(const struct processes_files *f, const struct pybpf_file_key *key);
/* The Python agrees with its layout. */
void processes_files_trust_python(struct processes_files *f, const struct discovery_python *python);
/* It does not: from now on each process is looked at. */
void processes_files_distrust_python(struct processes_files *f, const struct pybpf_file_key *key,
				     const struct discovery_python *python);

/* Says what the mapping is; PROCESSES_MAPPED_PLACED: fills *place. */
enum processes_mapped processes_files_classify_mapping(struct processes_files *f, const struct kernel_mapping *mapping,
						       struct pybpf_runtime *place);

#endif
