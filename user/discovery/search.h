// SPDX-License-Identifier: Apache-2.0
/* A search for the Pythons of a process: discovery.c makes it, nothing_found.c says why it found none. */
#ifndef DISCOVERY_SEARCH_H
#define DISCOVERY_SEARCH_H

#include <limits.h>

#include "discovery/internal.h"

/* A file of the process, by its first executable mapping. */
struct discovery_mapped_file {
	struct procfs_map map; /* path is owned */
	bool is_main;
};

struct discovery_search {
	struct discovery *known;
	pid_t pid;
	pid_t task; /* the thread whose /proc directory shows the mappings */
	char exe[PATH_MAX], root[PATH_MAX];
	struct discovery_mapped_file *files;
	size_t count, files_room;
	size_t nr_mapped;     /* files of any kind, again where mappings of another lie between */
	uint64_t last_mapped; /* inode of the last one */
	bool has_heap;        /* what glibc's loader allocates is elsewhere */
	size_t unreadable;
	int unreadable_error;
	bool foreign_main, refused, contradicted, kernel_thread;
	struct pybpf_asyncio asyncio; /* of the file that has the module */
	uint16_t thread_bias;         /* of the C library, as in struct pybpf_runtime */
	struct discovery_python *out;
	size_t room, found;
	/* The analysed executable, whose copies of the library's variables the library uses instead of its own. */
	struct discovery_file main;
	uint64_t main_bias;
	struct error *error;
};

/* The path as the process itself sees it: maps shows a chroot's files from outside. */
const char *discovery_inside_path(const struct discovery_search *search, const char *path);
/* Says why a search has found no Python: returns the result, with one sentence in the search's error. */
enum discovery_result discovery_tell_nothing(struct discovery_search *search, const char *comm);

#endif
