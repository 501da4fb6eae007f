// SPDX-License-Identifier: Apache-2.0
/*
 * What a process maps, the tables of these files, and the names in them, read in a helper process (helper.h). The
 * functions return -EINPROGRESS when the answer is not there yet: ask for the same some milliseconds later.
 */
#ifndef NATIVE_ASK_H
#define NATIVE_ASK_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "helper/helper.h"
#include "native/demangle.h"
#include "pybpf_native.h"

/* Tells a file from all others, and from what it was before. */
struct native_identity {
	uint64_t inode, size, mtime_ns;
	uint32_t dev_major, dev_minor;
};

/* An executable mapping. */
#define NATIVE_PATH_MAX 256
struct native_mapped {
	uint64_t start, end, offset;
	struct native_identity file; /* inode 0: the kernel's own code, [vdso], or none at all (native/made.h) */
	char path[NATIVE_PATH_MAX];  /* its end, if it is longer */
};

/* Most mappings of an answer, the first ones. */
#define NATIVE_MAPPED_MAX 3072
struct native_mappings {
	uint32_t count;
	uint32_t left_out;   /* that found no room, or whose file could not be opened */
	uint64_t code_pages; /* that the process has mapped, of files or not */
	struct native_mapped items[NATIVE_MAPPED_MAX];
};
_Static_assert(sizeof(struct native_mappings) <= HELPER_ANSWER_MAX, "an answer holds all mappings");

#define NATIVE_BUILD_ID_MAX 32
/* A process that has the file mapped, by which it is opened. */
struct native_source {
	pid_t pid;     /* 0: no process maps it now; it is opened by its path, as the helper sees it */
	uint64_t life; /* as in struct helper_subject */
	struct native_mapped mapped;
	/* Its build-id, if its file for debuggers was fetched, which is read in place of it; size 0: it was not. */
	uint8_t fetched[NATIVE_BUILD_ID_MAX];
	uint32_t fetched_size;
	uint32_t pad;
};

/* Where the code of a file is: an address in a mapping is a pc of the table when mapping and delta are taken off. */
#define NATIVE_SEGMENTS_MAX 16
struct native_segment {
	uint64_t offset, size; /* in the file */
	uint64_t delta;        /* pc = address - (start of the mapping - offset of the mapping + delta) */
};

struct native_file {
	struct native_identity id;
	uint8_t build_id[NATIVE_BUILD_ID_MAX];
	uint32_t build_id_size; /* 0: it has none */
	uint32_t nr_segments;
	uint32_t is_interpreter; /* it has the function that evaluates Python's frames */
	uint32_t has_flow;       /* as in native_table */
	uint64_t base;           /* of pcs, an address as linked */
	uint64_t nr_rows;
	struct native_segment segments[NATIVE_SEGMENTS_MAX];
};

/* Rows of one answer: whole pages. */
#define NATIVE_ROWS_MAX (255u * PYBPF_NATIVE_PAGE_ROWS)
struct native_rows {
	struct native_file file;
	uint64_t cpu_ns; /* CPU time that the answer took */
	uint32_t count;
	uint32_t pad;
	struct pybpf_native_row rows[NATIVE_ROWS_MAX];
};
_Static_assert(sizeof(struct native_rows) <= HELPER_ANSWER_MAX, "an answer holds all rows");

struct native_name {
	char text[NATIVE_NAME_MAX]; /* as native_demangle() writes it; "" for a pc without a function */
	uint8_t is_demangled;       /* it is of C++ or Rust */
	uint64_t start;             /* first address of the function, as linked */
};

/* A function at a place in the code, which may be inlined there. */
struct native_line {
	uint32_t place; /* number of the place that was asked for */
	int32_t line;   /* that is executed, or on which what is inlined here is called; 0: not known */
	char function[NATIVE_NAME_MAX];
	char file[NATIVE_PATH_MAX]; /* its end, if it is longer; "": not known */
	uint8_t is_demangled;       /* as in struct native_name */
};

/* Most names of one question. */
#define NATIVE_NAMES_MAX 2048
struct native_names {
	struct native_identity file;
	uint32_t count;
	uint32_t is_stripped; /* its symbols were not found, but for those that it exports */
	uint64_t cpu_ns;      /* CPU time that the answer took */
	struct native_name names[NATIVE_NAMES_MAX];
};
_Static_assert(sizeof(struct native_names) <= HELPER_ANSWER_MAX, "an answer holds all names");

/*
 * Lists the executable mappings of a process or a core file, but for code_pages; to be called in a helper. Returns 0 or
 * negative errno.
 */
int native_list_mappings(pid_t pid, struct native_mappings *out);

/* Reads the executable mappings of files. Returns 0; -EAGAIN when they changed meanwhile; or another negative errno. */
int native_ask_mappings(pid_t pid, uint64_t life, struct native_mappings *out);

/*
 * Reads rows of a file from the first one asked for, which are made as native_table_make() says; out->file is the same
 * in all answers about a file. Returns 0, -ENOENT when it has no call frame information (out->file is then valid but
 * for nr_rows, which is 0), or another negative errno: its table cannot be made.
 */
int native_ask_rows(const struct native_source *source, bool flow, uint64_t first, struct native_rows *out);

/*
 * Reads the names of the functions at pcs, which are in order. Returns 0 or negative errno; of a file that was fetched
 * as native_fetched_open().
 */
int native_ask_names(const struct native_source *source, uint64_t base, const uint32_t *pcs, uint32_t count,
		     struct native_names *out);

/* Rows of the table in cli/services.c. */
helper_service native_serve_mappings, native_serve_rows, native_serve_names;

#endif
