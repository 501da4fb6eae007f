// SPDX-License-Identifier: Apache-2.0
/* Descriptions of terminals for a host that has none: an empty root, or a container without terminfo's files. */
#ifndef TOP_TERMINALS_H
#define TOP_TERMINALS_H

struct terminal {
	const char *name;
	const char *description; /* compiled, as the variable TERMINFO takes it (ncurses 6.1) */
};

/*
 * Returns the description of the terminal that TERM names, or of the family that its name begins with (xterm-kitty is
 * an xterm), or NULL.
 */
const struct terminal *terminals_find(const char *term);

#endif
