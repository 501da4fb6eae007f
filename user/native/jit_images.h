// SPDX-License-Identifier: Apache-2.0
/*
 * Names of code that a JIT has registered with debuggers ("JIT Compilation Interface" in GDB's manual): a list in the
 * process's memory, whose entries are ELF files in its memory, with the symbols of code that is there now.
 */
#ifndef NATIVE_JIT_IMAGES_H
#define NATIVE_JIT_IMAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "native/functions.h"

/* The variable with the list, in each program and library that has one. */
#define NATIVE_JIT_SYMBOL "__jit_debug_descriptor"

/*
 * Finds the names of addresses that have none yet. They are in order. descriptor: the address of such a variable. A
 * name is given only if its entry is still in the list afterwards. A list, or a file, that is not one gives no names,
 * and what is read of both is bounded. Returns 0 or -ENOMEM. To be called in a helper.
 */
int native_jit_find(pid_t pid, uint64_t descriptor, struct native_named *named, size_t count);

#endif
