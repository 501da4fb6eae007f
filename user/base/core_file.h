// SPDX-License-Identifier: Apache-2.0
/*
 * Core files: the memory, mappings and threads of a process as the kernel or gcore(1) wrote them (core(5), elf(5)).
 * What is in one is not trusted: sizes and counts are bounded by the file's.
 */
#ifndef BASE_CORE_FILE_H
#define BASE_CORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>
#include <time.h>

#include "base/error.h"

/* A mapping; those of the loaded segments and of the note of files together, in the order of their addresses. */
struct core_map {
	uint64_t start, end;
	uint64_t file_bytes; /* bytes from start on that the core holds, by its headers */
	uint64_t kept;       /* of these, those that the file has: it may be truncated */
	uint64_t at;         /* where, in the core */
	uint64_t offset;     /* in the mapped file */
	const char *path;    /* "": no file, or not known which */
	bool readable, writable, executable;
	bool listed; /* known from the list of files only: gcore(1) leaves out what is unchanged; rights are not known
		      */
};

struct core_thread {
	pid_t tid;               /* in the process's own PID namespace, if it had one */
	uint64_t thread_pointer; /* 0: not known */
	struct user_regs_struct registers;
	/* The system call that it was in, if it was woken from one, and its arguments. */
	int64_t call; /* -1: none */
	uint64_t args[6];
	int signal; /* that it was stopped by */
};

struct core_file {
	int fd; /* 0: none; not mapped, as the file may be made shorter meanwhile, and a mapping then ends its reader */
	uint64_t size;
	struct timespec modified; /* when it was opened */
	struct core_map *maps;
	size_t nr_maps;
	struct core_thread *threads; /* the one that had the signal first, as the kernel writes them */
	size_t nr_threads;
	uint64_t entry; /* address in the program's file at which it began; 0: not known */
	pid_t pid;
	char comm[17], command[81]; /* its name, and the beginning of its command line */
	int signal;                 /* that ended it; 0: not known */
	bool has_address;
	uint64_t address; /* of the access that failed, if has_address */
	uint64_t missing; /* bytes that the headers tell of and the file does not have: it is truncated */
	char *notes;      /* to which paths point */
};

/*
 * Parses a core file of this machine's architecture; the descriptor may be closed afterwards. name: for
 * messages. Returns 0, or negative errno with one sentence in *error; core_file_close() in both cases.
 */
int core_file_open(int fd, const char *name, struct core_file *out, struct error *error);
/* May be called on a zeroed struct. */
void core_file_close(struct core_file *core);

/* Returns whether the file was written to, or made shorter, since it was opened. */
bool core_file_is_changed(const struct core_file *core);

/*
 * Reads exactly size bytes at addr. Returns 0; -EFAULT where nothing was mapped, or the core is truncated; -ENODATA
 * where something was that the core was never to hold: *map is then the mapping, and *done the bytes that were read
 * before it.
 */
int core_file_read(const struct core_file *core, uint64_t addr, void *dst, size_t size, const struct core_map **map,
		   size_t *done);

#endif
