// SPDX-License-Identifier: Apache-2.0
/* What system calls do, as far as a wait in them is concerned. */
#ifndef KERNEL_CALLS_H
#define KERNEL_CALLS_H

#include <stdint.h>

#include "pybpf_wait.h"

/* Fills the table by the numbers of this machine: values of enum pybpf_call. */
void kernel_fill_calls(uint8_t calls[PYBPF_MAX_SYSCALL + 1]);

/* Returns the name of a system call of this machine, such as "close"; "" for a number without one. */
const char *kernel_call_name(uint32_t number);

/* The calls that change the memory of their process. */
extern const struct pybpf_memory_calls kernel_memory_calls;

#endif
