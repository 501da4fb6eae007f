// SPDX-License-Identifier: Apache-2.0
/* Functions of C at which a stack ends, or changes into another one, whatever lies on it below them. */
#ifndef SYMBOLS_NATIVE_ROLES_H
#define SYMBOLS_NATIVE_ROLES_H

enum native_role {
	NATIVE_ROLE_NONE,
	/*
	 * By it greenlet changes stacks: slp_switch() in each file of src/greenlet/platform, of which others have
	 * copies. The stack pointer is the next greenlet's by then, and the stack itself is so when all of it was
	 * copied back.
	 */
	NATIVE_ROLE_SWITCH,
	/* It puts registers of an exception's handler where it has saved its caller's (libgcc/unwind.inc, GCC 4 to 15).
	 */
	NATIVE_ROLE_UNWINDER,
	/*
	 * It runs a greenlet from its start to its end, and has no caller: below it is what happens to run elsewhere
	 * (UserGreenlet::inner_bootstrap(), greenlet 2.0 to 3.5).
	 */
	NATIVE_ROLE_GREENLET,
	NATIVE_ROLE_OLD_GREENLET, /* likewise, or it is about to begin one: g_initialstub(), greenlet 0.4 to 1.1 */
	NATIVE_ROLE_OF_GREENLET,  /* any function of greenlet's own file: it has no name */
};

/* name: as the linker knows it, or demangled, "" without one; file: that it is in, without its folder. */
enum native_role native_role_of(const char *name, const char *file);

#endif
