// SPDX-License-Identifier: Apache-2.0
/* Names of the kernel's functions by address, from /proc/kallsyms. */
#ifndef SYMBOLS_KERNEL_NAMES_H
#define SYMBOLS_KERNEL_NAMES_H

#include <stdint.h>

/* Bytes of a name with its suffix and NUL: KSYM_NAME_LEN is 512 (include/linux/kallsyms.h, Linux 6.1). */
#define KERNEL_NAME_MAX 528

struct kernel_names;

/*
 * Opens the kernel's list, which is read at the first name that is asked for: whether it holds addresses depends on the
 * rights of the one who opens it (kallsyms_show_value). Returns NULL without memory.
 */
struct kernel_names *kernel_names_new(void);
/* As kernel_names_new(), of another list. */
struct kernel_names *kernel_names_open(const char *path);
/* Accepts NULL. */
void kernel_names_free(struct kernel_names *n);

/*
 * Writes "NAME_[k]", NAME being the function that has the address; "[unknown]_[k]" if it is not in the list. If the
 * list has no addresses, says once why.
 */
void kernel_names_find(struct kernel_names *n, uint64_t address, char name[KERNEL_NAME_MAX]);

#endif
