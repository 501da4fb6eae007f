// SPDX-License-Identifier: Apache-2.0
/*
 * The types of the running kernel (BTF), read where they lie. libbpf's reader copies their 5 MiB twice, page by page,
 * which takes it 8 ms.
 */
#ifndef KERNEL_KERNEL_TYPES_H
#define KERNEL_KERNEL_TYPES_H

#include <linux/btf.h>
#include <stddef.h>
#include <stdint.h>

struct kernel_types {
	const void *mapped; /* or NULL: the bytes are the caller's */
	size_t size;
	const uint8_t *types;
	uint32_t *offsets; /* in types, by the number of a type; that of 0, which is void, is not used */
	uint32_t count;    /* with void */
	const char *strings;
	uint32_t strings_size;
};

/* Reads them from the kernel. Returns 0, or negative errno: -EINVAL for what is no BTF, or of a later version. */
int kernel_types_open(struct kernel_types *types);
/* Takes BTF in memory, which has to stay. Returns as kernel_types_open. */
int kernel_types_take(struct kernel_types *types, const void *bytes, size_t size);
/* Frees what it has. May be called on a zeroed struct. */
void kernel_types_close(struct kernel_types *types);

/* Returns a type by its number, which is more than 0 and less than types->count. */
const struct btf_type *kernel_types_get(const struct kernel_types *types, uint32_t id);
/* Returns the bytes that a type takes, with its members or values; 0 for an unknown kind. */
size_t kernel_type_size(const struct btf_type *type);
/* Returns the string at an offset that a type has, or "". */
const char *kernel_types_string(const struct kernel_types *types, uint32_t offset);
/* Returns the number of the first type that has this kind and this name, or 0 without such a type. */
uint32_t kernel_types_find(const struct kernel_types *types, uint32_t kind, const char *name);

#endif
