// SPDX-License-Identifier: Apache-2.0
/*
 * Whether a text can be the source of functions that have run. Nothing in a code object says which text it was compiled
 * from: a file can be replaced under a program that keeps running the old one. But its source must define a function of
 * that name at that line, reach to the lines that ran, and contain its names and strings.
 */
#ifndef SESSION_SOURCE_CHECK_H
#define SESSION_SOURCE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "symbols/pysym.h"
#include "symbols/stacks.h"

/* What a function says of its source. */
struct source_claim {
	const char *name;         /* qualified or not */
	int32_t first_line, line; /* line: the last one of which an instruction ran, or -1 */
	const char *words;        /* as pysym_read_words() returns them; NULL: not known */
	size_t words_size;
};

/* Returns whether the text can be this function's source. Lines end as Python has them: "\n", "\r\n" or "\r". */
bool source_fits(const char *text, const struct source_claim *claim);

/* What the functions of a file say. */
struct source_claims {
	struct intern functions;
};

void source_claims_init(struct source_claims *claims);
/* Takes what a function says that has run, reading its words. Returns 0 or -ENOMEM. */
int source_claims_add(struct source_claims *claims, struct pysym *pysym, const struct stacks_function *met);
/*
 * Returns whether the text can be the source of all. It is CPU time that is limited, since a program could make it take
 * long: *left_ns is what is left, from which it is taken; without any it is said that the text cannot.
 */
bool source_fits_all(const char *text, const struct source_claims *claims, uint64_t *left_ns);
void source_claims_free(struct source_claims *claims);

#endif
