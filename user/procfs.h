// SPDX-License-Identifier: Apache-2.0
/* /proc of one process. */
#ifndef PROCFS_H
#define PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_map {
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable;
	bool deleted;
	const char *path; /* "" for anonymous memory; " (deleted)" is cut off; octal escapes of \n undone */
};

/*
 * Parses one line of /proc/PID/maps (without its newline; modified in place, path points into it).
 * Returns 0, or -EBADMSG.
 */
int procfs_parse_map(char *line, struct procfs_map *out);

/* Calls visit for each mapping until it returns non-zero, and returns that; 0 at the end; -errno if
 * unreadable. */
int procfs_each_map(pid_t pid, int (*visit)(const struct procfs_map *map, void *arg), void *arg);

struct procfs_stat {
	char comm[64];
	char state; /* R S D Z T … */
	pid_t ppid;
	uint64_t start_time;   /* clock ticks since boot (field 22) */
	uint64_t utime, stime; /* clock ticks */
};
/* Parses the text of /proc/PID/stat; comm may hold spaces and parentheses. Returns 0, or -EBADMSG. */
int procfs_parse_stat(const char *text, struct procfs_stat *out);
/* Returns 0, -ESRCH when there is no such process, or another negative errno. */
int procfs_stat(pid_t pid, struct procfs_stat *out);

/* The process that thread tid belongs to into *out (Tgid in /proc/TID/status). Returns 0 or negative errno. */
int procfs_thread_group(pid_t tid, pid_t *out);

/* The most memory, in KiB, that the process has had resident since its exec. Returns 0 or negative errno. */
int procfs_peak_rss(pid_t pid, uint64_t *kib);

/*
 * Opens, for reading, the file that is mapped at [start, end) of the process: through map_files, else through
 * /proc/PID/root, then checks that device and inode are the mapping's. Never blocks on a FIFO or device,
 * never follows a link out of the process's root. Returns a descriptor, or negative errno.
 */
int procfs_open_map(pid_t pid, const struct procfs_map *map);

#endif
