// SPDX-License-Identifier: Apache-2.0
/* What is done to each program after libbpf has put it together and before the kernel verifies it. */
#ifndef KERNEL_PREPARE_H
#define KERNEL_PREPARE_H

struct bpf_map;
struct kernel_types;

/*
 * Has libbpf call this file for the programs of all objects that are opened from now on; can be called again. Returns 0
 * or negative errno.
 */
int kernel_prepare_programs(void);

/*
 * Names what the programs of the next load are made for: this kernel's types, and the map of their constants. Both are
 * used until this is called again, with NULL.
 */
void kernel_prepare_with(const struct kernel_types *types, struct bpf_map *constants);

#endif
