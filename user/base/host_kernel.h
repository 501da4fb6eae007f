// SPDX-License-Identifier: Apache-2.0
/* Tells by the kernel's version which changes it has, where neither a helper nor a type shows it. */
#ifndef BASE_HOST_KERNEL_H
#define BASE_HOST_KERNEL_H

#include <stdbool.h>

/* The version texts of a kernel. */
struct host_kernel {
	char release[128];   /* uname -r */
	char version[128];   /* uname -v; on Debian it has the number of the stable release */
	char signature[128]; /* /proc/version_signature; on Ubuntu it has that number; "" if missing */
};

void host_kernel_look(struct host_kernel *kernel);

/* Compares the release alone; one that cannot be read counts as the oldest. */
bool host_kernel_at_least(const struct host_kernel *kernel, int major, int minor);

/*
 * Returns whether copy_from_user_nofault() has the checks of d319f344561d (Linux 6.4, 6.3.10, 6.1.36). False when that
 * is unknown; a vendor may have put it into an older kernel.
 */
bool host_kernel_checks_reads(const struct host_kernel *kernel);

/*
 * Returns whether it is known that a hardened copy does not look destinations up in vmalloc's areas. The look-up came
 * with 5.19 (0aef499f3172), and went with d319f344561d for copies from interrupts. False when that is unknown: vendors
 * that keep a version for years put later changes into it.
 */
bool host_kernel_reads_without_lock(const struct host_kernel *kernel);

#endif
