// SPDX-License-Identifier: Apache-2.0
/* Reads the content of a code object: from the part that the kernel copied, and from the process. */
#ifndef SYMBOLS_CODE_CONTENT_H
#define SYMBOLS_CODE_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "pybpf.h"
#include "symbols/objects/string.h"
#include "symbols/walk/walk_user.h"

/* The content of a code object; unknown members are NULL. */
struct pysym_code_content {
	char *name, *file; /* UTF-8 */
	uint8_t *lines;    /* line table */
	uint32_t lines_size;
	int32_t first_line;
	bool hidden; /* not a function of the program */
};

/* Frees the members. May be called twice. */
void pysym_code_content_free(struct pysym_code_content *content);

/*
 * Fills *content from a record of size bytes, as far as the kernel copied it. lines_room: longest line table that is
 * taken. Returns 0, or -EBADMSG for a record that contradicts itself.
 */
int pysym_code_content_copy(struct pysym_code_content *content, const struct pybpf_layout *layout,
			    const struct pybpf_code_event *event, size_t size, size_t lines_room);

/*
 * Reads from the process the members that are still missing. The object may have been freed since: what was read is
 * used only if the signature is sig before and after.
 */
void pysym_code_content_read(struct pysym_code_content *content, const struct pybpf_layout *layout, pid_t pid,
			     uint64_t code, uint32_t sig, size_t lines_room);

/* Longest line table of a record that pysym_record_code() makes: some 50,000 lines of one function. */
#define PYSYM_RECORD_LINES (256 * 1024)
/* Most bytes before a string's characters: 72 in a build that traces references. */
#define PYSYM_RECORD_HEADER 128
#define PYSYM_RECORD_MAX                                                                                               \
	(sizeof(struct pybpf_code_event) + 2 * (PYSYM_RECORD_HEADER + PYSYM_STRING_MAX) + PYSYM_RECORD_LINES)

/*
 * Makes the record of a frame's code object that the kernel would send, with its parts as far as they can be read. The
 * object may have been freed since: then, as its signature tells, there are no parts. out: has room for
 * PYSYM_RECORD_MAX bytes. Returns the bytes of the record. The fields event and proc_id are left to the caller.
 */
size_t pysym_record_code(const struct walk_memory *memory, const struct pybpf_layout *layout,
			 const struct pybpf_frame *frame, void *out);

#endif
