// SPDX-License-Identifier: Apache-2.0
/* Reads /proc of one process. */
#ifndef BASE_PROCFS_H
#define BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct procfs_map {
	uint64_t start, end, offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool readable, writable, executable;
	bool deleted;
	const char *path; /* "" for anonymous memory; " (deleted)" is cut off; octal escapes of \n undone */
};

/* Returns what follows "\nNAME:" in the text of /proc/PID/status, or "". */
const char *procfs_status_line(const char *status, const char *name);
/* The same as a number, or 0. */
uint64_t procfs_status_number(const char *status, const char *name);

/* Returns the length of a file's path without what the kernel adds to that of a file that was removed: " (deleted)". */
size_t procfs_path_size(const char *path);

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
	uint64_t start_time; /* clock ticks since boot (field 22) */
	unsigned threads;
	bool kernel_thread;
	/* Where the stack of the program begins (field 28); 0 where the reader may not trace it. */
	uint64_t stack_start;
};
/* Parses the text of /proc/PID/stat; comm may hold spaces and parentheses. Returns 0, or -EBADMSG. */
int procfs_parse_stat(const char *text, struct procfs_stat *out);
/* Returns 0, -ESRCH when there is no such process, or another negative errno. */
int procfs_read_stat(pid_t pid, struct procfs_stat *out);
/*
 * Returns the start of the first process that had the memory which this one runs in: it, its parent and so on, as far
 * as they were forked without an exec in between, which places the stack anew. Clock ticks since boot. start: of the
 * process, which is returned when it has ended.
 */
uint64_t procfs_program_start(pid_t pid, uint64_t start);

/*
 * Reads the state that tells most about the process's threads: R if one can run, else D, t, T, or S if all are asleep.
 * Returns 0, -ESRCH when there is no such process, or another negative errno.
 */
int procfs_read_state(pid_t pid, char *state);
/*
 * Calls visit for each thread of the process, also for a first one that has ended, until visit returns non-zero.
 * Returns that; 0 at the end, and if there is no such process.
 */
int procfs_each_task(pid_t pid, int (*visit)(pid_t tid, void *arg), void *arg);
/* As procfs_read_stat, of one thread of the process: start time and state are its own. */
int procfs_read_task_stat(pid_t pid, pid_t tid, struct procfs_stat *out);
/* The system call that a thread sleeps in. */
struct procfs_call {
	long number; /* -1: it sleeps in none, such as for a page */
	uint64_t args[4];
	uint64_t stack_pointer; /* of the program; 0: not known */
	uint64_t pc;            /* where it goes on in the program; 0: not known, as of a core file */
};
/*
 * Returns 0, -EAGAIN if the thread does not sleep (of a core file with the stack pointer), or another negative errno
 * where that is not known.
 */
int procfs_read_call(pid_t pid, pid_t tid, struct procfs_call *out);
/* What the scheduler has counted of a thread since its start. */
struct procfs_sched {
	uint64_t running_ns; /* what it has run since the last tick may be missing */
	uint64_t queued_ns;  /* ready to run, and waiting for a CPU; without the wait that goes on */
};
/* Returns 0, -ESRCH when there is no such thread or the kernel does not say, or another negative errno. */
int procfs_read_sched(pid_t pid, pid_t tid, struct procfs_sched *out);
/* Reads the CPU time of all threads of the process, also of ended ones, in ns. Returns 0 or negative errno. */
int procfs_cpu_ns(pid_t pid, uint64_t *ns);

/*
 * Reads the process that started another one. pid, inside: those of the other one, outside and inside of its PID
 * namespace; *stat: its stat, which becomes that of the process that started it. Returns that one's PID; 0 if the chain
 * ends: it is init, in another PID namespace (a container's first process was started by its runtime), or gone.
 */
struct procfs_status;
pid_t procfs_read_parent(pid_t pid, pid_t inside, struct procfs_stat *stat, struct procfs_status *status);

/*
 * Returns the task whose directory in /proc shows the process's memory, files and cgroups: pid itself, or, if its first
 * thread has ended and others go on, one of those (do_exit() takes mm, files and, in v1, cgroups from each thread on
 * its own). Returns 0 if the whole process has ended. stat: the process's, or NULL to have it read.
 */
pid_t procfs_task(pid_t pid, const struct procfs_stat *stat);

/* Writes the process that thread tid belongs to into *out (Tgid in /proc/TID/status). Returns 0 or negative errno. */
int procfs_thread_group(pid_t tid, pid_t *out);

/*
 * Reads the number after `name` (with its colon) in the fdinfo of one of pybpf's own descriptors. Returns 0 or negative
 * errno.
 */
int procfs_fdinfo(int fd, const char *name, uint64_t *out);

/* Reads the memory, in KiB, that the process has resident now. Returns 0 or negative errno. */
int procfs_rss(pid_t pid, uint64_t *kib);
struct procfs_status {
	uid_t uid;    /* effective, as the user namespace of the reader calls it */
	pid_t inside; /* the PID in the process's own namespace */
	pid_t tracer; /* who traces it (ptrace(2)); 0: nobody whom the reader can see */
};
/* Parses the text of /proc/PID/status. Returns 0, or -EBADMSG. */
int procfs_parse_status(const char *text, struct procfs_status *out);
/* Returns 0, -ESRCH when there is no such process, or another negative errno. */
int procfs_read_status(pid_t pid, struct procfs_status *out);

/* Reads a file of /proc/PID as far as it fits, NUL-terminated. Returns its length, or negative errno with "" in buf. */
ssize_t procfs_read_some(pid_t pid, const char *name, char *buf, size_t size);
/*
 * Reads a whole file of /proc/PID, NUL-terminated, into *text, which the caller frees; *len may be NULL. -EFBIG when
 * it has more than max bytes. Returns 0 or negative errno.
 */
int procfs_read(pid_t pid, const char *name, size_t max, char **text, size_t *len);

/* Reads the most memory, in KiB, that the process has had resident since its exec. Returns 0 or negative errno. */
int procfs_peak_rss(pid_t pid, uint64_t *kib);

/*
 * Opens the root directory of the process (O_PATH). *path is a path of its mappings, or one as it sees it; it is moved
 * past the root. Returns a descriptor, or negative errno.
 */
int procfs_open_root(pid_t pid, const char **path);

/*
 * Opens a regular file for reading below such a root, without leaving it; fills *st, and *placed as
 * path_below_open_placed() does. Never blocks on a FIFO or device. Returns a descriptor, or negative errno.
 */
int procfs_open_below(int root, const char *path, struct stat *st, struct timespec *placed);

/*
 * Opens, for reading, the file that is mapped at [start, end) of the process: through map_files, else through
 * /proc/PID/root, then checks that device and inode are the mapping's. Never blocks on a FIFO or device,
 * never follows a link out of the process's root. Returns a descriptor, or negative errno.
 */
int procfs_open_map(pid_t pid, const struct procfs_map *map);

#endif
