// SPDX-License-Identifier: Apache-2.0
/* Lines of native functions: which files have them, and what they cost. */
#ifndef SESSION_NATIVE_LINES_H
#define SESSION_NATIVE_LINES_H

#include <stdint.h>

#include "base/intern.h"

struct session;
struct session_native_account;
struct session_native_state;

struct native_lines_files {
	struct intern files;
};

void native_lines_init(struct native_lines_files *l);
void native_lines_free(struct native_lines_files *l);

/* Goes on with the question about the job's places. Returns 0 when it is answered, or -EINPROGRESS. */
int native_find_lines(struct session *s);

/*
 * Returns the pc at which the row begins that has an instruction of the file with this number, or the instruction's own
 * where the table is not there, or the row has no rule.
 */
uint32_t native_find_row(const struct session *s, uint32_t number, uint32_t pc);

/* Adds to the account what was found. */
void native_tell_lines(const struct session_native_state *n, struct session_native_account *out);
/* Says what each file took, for -v. */
void native_log_lines(const struct session_native_state *n);

#endif
