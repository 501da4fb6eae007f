// SPDX-License-Identifier: Apache-2.0
/*
 * The part of the kernel's BTF that the BPF programs' CO-RE relocations can name, as bpftool's `gen min_core_btf` makes
 * it. libbpf searches all of the kernel's types (60,000 to 200,000) once for each type that is relocated, 0.6 ms each.
 */
#ifndef KERNEL_MIN_BTF_H
#define KERNEL_MIN_BTF_H

struct btf;
struct kernel_types;

/* Writes to the file fd what the object, with these types of its own, can name. Returns 0 or negative errno. */
int kernel_write_min_btf(const struct kernel_types *kernel, const struct btf *object, int fd);

#endif
