// SPDX-License-Identifier: Apache-2.0
/* Perf maps: names of code made at run time (tools/perf/Documentation/jit-interface.txt in Linux). */
#ifndef NATIVE_PERF_MAP_H
#define NATIVE_PERF_MAP_H

#include <stddef.h>
#include <stdio.h>

#include "native/functions.h"

/* Most bytes of a perf map: 100 of them name a function. */
#define NATIVE_PERF_MAP_MAX (64 << 20)

/*
 * Finds the names of addresses, which are in order, in a perf map: native_give_name(). Lines of another shape are left
 * out, as is what lies behind NATIVE_PERF_MAP_MAX bytes. The last name of an address is its own.
 */
void native_perf_map_find(FILE *in, struct native_named *named, size_t count);

#endif
