// SPDX-License-Identifier: Apache-2.0
/* Which changes a kernel has, by its version: for what neither a helper nor a type shows. */
#ifndef BASE_HOST_KERNEL_H
#define BASE_HOST_KERNEL_H

#include <stdbool.h>

/* What a kernel says of itself. */
struct host_kernel {
	char release[128];   /* uname -r */
	char version[128];   /* uname -v: where Debian has the number of the stable release */
	char signature[128]; /* /proc/version_signature: where Ubuntu has it; "" for none */
};

void host_kernel_look(struct host_kernel *kernel);

/* By its release alone, which counts as the oldest where it can't be read. */
bool host_kernel_at_least(const struct host_kernel *kernel, int major, int minor);

/*
 * Has copy_from_user_nofault() the checks of d319f344561d (Linux 6.4, 6.3.10, 6.1.36)? False where it can't be told: a
 * vendor may have put it into an older one.
 */
bool host_kernel_checks_reads(const struct host_kernel *kernel);

/*
 * Is it known that a hardened copy does not look destinations up in vmalloc's areas? That came with 5.19
 * (0aef499f3172), and went with d319f344561d for copies from interrupts. False where it can't be told: vendors that
 * keep a version for years put later changes into it.
 */
bool host_kernel_reads_without_lock(const struct host_kernel *kernel);

#endif
