// SPDX-License-Identifier: Apache-2.0
/* Opens paths that other programs wrote, below a root directory. */
#ifndef BASE_PATH_BELOW_H
#define BASE_PATH_BELOW_H

#include <time.h>

/*
 * Opens a path as if root, a descriptor, were the root directory, like openat2(2) with RESOLVE_IN_ROOT and these flags;
 * links in procfs are refused. Each step is an openat(2), whose flags a filter of system calls can see. The flags of
 * openat2 are in memory: a helper that may call it could open for writing files that RLIMIT_FSIZE does not cover, such
 * as /proc/PID/mem. Does not wait for a FIFO. Returns a descriptor, or negative errno.
 */
int path_below_open(int root, const char *path, int flags);

/*
 * The same. *placed gets the time since when the path has led through its links and folders, as far as they tell: the
 * latest change of a link, or of a folder whose last change did not concern its entries, as when it was renamed.
 */
int path_below_open_placed(int root, const char *path, int flags, struct timespec *placed);

#endif
