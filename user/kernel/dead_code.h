// SPDX-License-Identifier: Apache-2.0
/*
 * Removes from a program what this run's constants make unreachable. The verifier does so, too, but only after it has
 * gone through the program, and piece by piece: with each of some hundred pieces it moves the rest of the program and
 * all that it knows of it.
 */
#ifndef KERNEL_DEAD_CODE_H
#define KERNEL_DEAD_CODE_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

/* A program as it would be loaded: its instructions, those of the functions that it calls behind its own. */
struct kernel_code {
	struct bpf_insn *instructions;
	uint32_t nr_instructions;
	struct bpf_func_info *functions;
	uint32_t nr_functions;
	struct bpf_line_info *lines;
	uint32_t nr_lines;
};

/* A map that does not change any more. Programs take a value from it by its descriptor and an offset. */
struct kernel_constants {
	int fd;
	const void *bytes;
	size_t size;
};

/*
 * Removes instructions, functions and lines in place; what remains does the same. A program with instructions that this
 * function does not know stays as it is. Returns 0 or -ENOMEM.
 */
int kernel_remove_dead_code(struct kernel_code *code, const struct kernel_constants *constants);

#endif
