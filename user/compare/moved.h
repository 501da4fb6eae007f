// SPDX-License-Identifier: Apache-2.0
/* Where functions begin in their files, so that a line of one version is found in another one. */
#ifndef COMPARE_MOVED_H
#define COMPARE_MOVED_H

#include "base/intern.h"
#include "profile/profile.h"

/* The first lines of functions, by name and file. To be initialized by diff_beginnings_init(), and freed. */
struct diff_beginnings {
	struct intern table;
};

void diff_beginnings_init(struct diff_beginnings *b);
void diff_beginnings_free(struct diff_beginnings *b);
/* Adds those of a profile. strings: the profile whose strings name them. Returns 0 or -ENOMEM. */
int diff_beginnings_add(struct diff_beginnings *b, struct profile *strings, const struct profile *p);

/*
 * Returns the line of the frame of p, which is of the one side, in the file of the other one: as far from the first
 * line of its function. Where one of these is not known, or several functions have that name, it is the same line.
 */
int32_t diff_moved_line(const struct diff_beginnings *one, const struct diff_beginnings *other, struct profile *strings,
			const struct profile *p, uint32_t frame);

#endif
