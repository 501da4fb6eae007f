// SPDX-License-Identifier: Apache-2.0
/*
 * The files of functions in the format of Firefox Profiler: sources of Python's functions, libraries of compiled code,
 * which it shows beside the names and can leave out or merge as a whole.
 */
#ifndef OUTPUT_GECKO_FILES_H
#define OUTPUT_GECKO_FILES_H

#include "base/intern.h"
#include "profile/profile.h"

struct json;

struct gecko_files {
	const struct profile *p;
	struct intern sources, libraries; /* string indices of files */
};

void gecko_files_init(struct gecko_files *f, const struct profile *p);
void gecko_files_free(struct gecko_files *f);
/* Adds the library and the source of a function, strings that are 0 where it has none. Returns 0 or -ENOMEM. */
int gecko_files_add(struct gecko_files *f, uint32_t library, uint32_t source);

/* Write the values of a function whose files were added, in the columns resource and source of funcTable. */
void gecko_files_write_resource(const struct gecko_files *f, uint32_t library, struct json *j);
void gecko_files_write_source(const struct gecko_files *f, uint32_t library, uint32_t file, struct json *j);

/*
 * Returns the address of a function of compiled code in its library, by which the profiler asks for its name, or -1: it
 * has a name, or its library has no build-id, or addresses that are not those of a library.
 */
int64_t gecko_files_address(const struct gecko_files *f, const struct profile_frame *frame);

/* Writes the member libs of the file, and the members resourceTable and sources of what threads share. */
void gecko_files_write_libs(const struct gecko_files *f, struct json *j);
void gecko_files_write_tables(const struct gecko_files *f, struct json *j);

#endif
