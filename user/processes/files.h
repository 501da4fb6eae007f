// SPDX-License-Identifier: Apache-2.0
/* Executable files: tells the kernel which programs are Python, and remembers which mapped files hold a runtime. */
#ifndef PROCESSES_FILES_H
#define PROCESSES_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "discovery/discovery.h"
#include "kernel/watch.h"
#include "pybpf.h"

struct processes_files;

/* What a mapping says about its process. */
enum processes_mapped {
	PROCESSES_MAPPED_NOTHING,
	PROCESSES_MAPPED_UNKNOWN, /* the file could not be opened (any more) */
	PROCESSES_MAPPED_PYTHON,  /* a Python: look at the process */
	PROCESSES_MAPPED_PLACED,  /* a Python whose addresses are known */
	PROCESSES_MAPPED_ASYNCIO, /* the Python's asyncio, if tasks are wanted: look where its fields are */
};

/* tasks: asyncio's tasks are wanted. */
struct processes_files *processes_files_new(struct kernel *k, bool tasks);
void processes_files_free(struct processes_files *f);

/*
 * Records that the program `key` is this Python, whose layout has that index, for the kernel and for
 * processes_files_classify_mapping. Returns true when a process with the same runtime file has been validated before.
 * key is NULL for a Python that is not the first one of its process: the first one decides the kind of the program.
 */
bool processes_files_add_python(struct processes_files *f, const struct pybpf_file_key *key,
				const struct discovery_python *python, uint32_t layout);
/* Records that processes of the program run no Python. */
void processes_files_add_other(struct processes_files *f, const struct pybpf_file_key *key);
bool processes_files_is_other(const struct processes_files *f, const struct pybpf_file_key *key);
/* Records that the memory of the Python agrees with its layout. */
void processes_files_trust_python(struct processes_files *f, const struct discovery_python *python);
/* Records that the memory contradicts the layout: from now on each process of the program is looked at. */
void processes_files_distrust_python(struct processes_files *f, const struct pybpf_file_key *key,
				     const struct discovery_python *python);

/* Returns what the mapping is; fills *place for PROCESSES_MAPPED_PLACED. */
enum processes_mapped processes_files_classify_mapping(struct processes_files *f, const struct kernel_mapping *mapping,
						       struct pybpf_runtime *place);

#endif
