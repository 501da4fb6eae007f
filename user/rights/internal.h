// SPDX-License-Identifier: Apache-2.0
/* Functions that the .c files of rights share. */
#ifndef RIGHTS_INTERNAL_H
#define RIGHTS_INTERNAL_H

#include "rights/rights.h"

#define RIGHTS_IN(level) (1u << (level))

/* Refuses every system call that the level does not need. Returns 0 or negative errno. */
int rights_filter_install(const struct rights_wanted *wanted);

/*
 * Allows making, changing and removing files below the folders only, which are descriptors; reads: and reading them.
 * Returns 0 or negative errno.
 */
int rights_landlock_restrict(const int *folders, size_t count, bool reads);

/*
 * Allows opening files for reading only, and only what the C library, libcurl and TLS need: libraries, settings and
 * certificates. /proc, and so every process, is out of reach. Returns 0 or negative errno.
 */
int rights_landlock_read_settings(void);

#endif
