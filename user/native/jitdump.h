// SPDX-License-Identifier: Apache-2.0
/* Jitdumps: a log of code made at run time (tools/perf/Documentation/jitdump-specification.txt in Linux). */
#ifndef NATIVE_JITDUMP_H
#define NATIVE_JITDUMP_H

#include <stddef.h>
#include <stdio.h>

#include "native/functions.h"

/* Most records that are read, which takes a second. No process is known that has as many made functions. */
#define NATIVE_JITDUMP_MAX (1 << 18)

/*
 * Finds the names of addresses, which are in order, in a jitdump of this machine's kind: native_give_name(). The last
 * name of an address is its own. A record that cannot be one ends it. The code in it is not read.
 */
void native_jitdump_find(FILE *in, struct native_named *named, size_t count);

#endif
