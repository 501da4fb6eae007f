// SPDX-License-Identifier: Apache-2.0
/* Paths that others wrote, walked below a root of theirs. */
#ifndef BASE_PATH_BELOW_H
#define BASE_PATH_BELOW_H

/*
 * Opens a path as if root, a descriptor, were the root directory, as openat2(2) does it with RESOLVE_IN_ROOT, and with
 * the flags; links in procfs are refused. Each step is an openat(2), whose flags a filter of system calls can see:
 * those of openat2 are in memory, so that a helper that has it can open for writing what RLIMIT_FSIZE does not cover,
 * as /proc/PID/mem. Does not wait (a FIFO). Returns a descriptor, or negative errno.
 */
int path_below_open(int root, const char *path, int flags);

#endif
