// SPDX-License-Identifier: Apache-2.0
/*
 * A machine that is played: what its processes, its kernel, its helper and its clock are in truth. Part of
 * played_machine.h.
 */
#ifndef PLAYED_STATE_H
#define PLAYED_STATE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/procfs.h"
#include "base/remote.h"
#include "base/scan.h"
#include "discovery/ask.h"
#include "helper/helper.h"
#include "kernel/procs.h"
#include "kernel/watch.h"
#include "processes/processes.h"
#include "symbols/pysym.h"

#define FIRST_PID 5000000 /* above every PID (PID_MAX_LIMIT): never the test itself */
#define NR_PIDS   64
#define RING_ROOM 4096
#define TICKS     100 /* per second, as sysconf(_SC_CLK_TCK) has them */

/* A Python as its file holds it; addresses as linked. */
struct python {
	const char *version;
	uint8_t minor;
	uint64_t file_id;
	uint64_t inode;
	bool moves; /* its addresses are not those of its file and the place of that */
};
#define HEAD_LINKED 0x2000
#define TYPE_LINKED 0x4000
#define CODE_LINKED 0x100
#define FILE_SIZE   0x10000

__attribute__((unused)) static const struct python python39 = {"3.9.2", 9, 39, 1039, false};
static const struct python python311 = {"3.11.7", 11, 311, 1311, false};
static const struct python python313 = {"3.13.0", 13, 313, 1313, false};

struct program {
	const char *name;
	uint64_t inode;
	const struct python *python; /* linked into it; NULL: none */
};

static const struct program static_python = {"python3.11", 2311, &python311};
static const struct program thin_python = {"python3.13", 2313, NULL}; /* loads its library */
static const struct program shell = {"sh", 2001, NULL};

struct loaded {
	const struct python *python; /* NULL: a library without Python */
	uint64_t inode, start;
	bool up;          /* it has an interpreter */
	bool contradicts; /* its memory does not say what its file does */
};

struct machine_process {
	bool alive;
	pid_t pid, parent;
	uint64_t start, mm;
	const struct program *program;
	struct loaded loaded[8];
	size_t nr_loaded;
	bool in_kernel; /* there is an entry in map procs */
	struct pybpf_proc entry;
	/*
	 * A copy by fork of a process that had mapped its Python a moment ago, which had not been heard of yet: the
	 * kernel takes it for what the parent was before, and tells nobody.
	 */
	bool early_copy;
	bool kept_out;         /* by the kernel's filters */
	bool left_alone;       /* the helper does not look at it now */
	bool unmapped;         /* it maps no executable file */
	const char *why;       /* its Pythons are refused, for this reason */
	int why_err;           /* error that goes with it; 0: -ENOTSUP */
	const char *cmdline;   /* NULL: "" */
	const char *container; /* NULL: in none */
	const char *id;        /* the container's; NULL: "" */
	const char *runtime;   /* of the container; NULL: docker */
	int container_err, cmdline_err, service_err;
	const char *otel, *unit, *version; /* of its service; NULL: "" */
	const char *image;                 /* of its container, likewise */
};

struct kernel {
	struct kernel_watcher watcher;
	bool attached;
	bool all, follow, hold;
	struct pybpf_process_event events[RING_ROOM];
	size_t events_head, events_tail, events_room;
	struct kernel_losses losses;
	bool deaf; /* what processes map is lost */
	struct kernel_mapping mappings[RING_ROOM];
	size_t mappings_head, mappings_tail;
	struct {
		bool used;
		struct pybpf_file_key key;
		struct pybpf_file file;
	} files[64];
	struct pybpf_layout layouts[16];
	uint32_t nr_layouts, layouts_room;
	size_t procs_room; /* of claims */
	uint64_t last_id;
	void (*before_put)(void); /* something happens between a look at an entry and its change; once */
};

static struct machine {
	double now;
	struct machine_process processes[NR_PIDS];
	struct kernel kernel;
	struct processes *table;
	struct processes_options options;
	uint64_t last_mm;
	/* The helper. */
	unsigned service_questions, container_questions;
	bool one_group; /* all processes are in the same control groups */
	double busy_until;
	bool answered;
	struct helper_subject subject, discarded;
	uint64_t life_of_another_run; /* 0: this run is alone */
	void (*while_looking)(void);  /* something happens while the helper looks; once */
	bool no_answer;
	size_t looks, validations;
	const char *unwanted; /* processes of this name are not wanted */
	/* pysym: what it was told last. */
	uint64_t told_id;
	uint8_t told_minor;
	char said[8192]; /* what was logged, warnings and errors */
	long fail_at;    /* the n-th allocation from now on fails; 0: none */
} machine;

/* NOLINTBEGIN(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name): the names are theirs.
 */
/* Memory that is exhausted at a given moment; the sanitizer's own functions are behind these. */
void *__interceptor_malloc(size_t size);
void *__interceptor_calloc(size_t count, size_t size);

static inline bool allocation_fails(void)
{
	return machine.fail_at && !--machine.fail_at;
}

void *malloc(size_t size)
{
	return allocation_fails() ? NULL : __interceptor_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return allocation_fails() ? NULL : __interceptor_calloc(count, size);
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}
/* NOLINTEND(bugprone-reserved-identifier,readability-inconsistent-declaration-parameter-name) */

static inline struct machine_process *process_of(pid_t pid)
{
	assert_in_range(pid, FIRST_PID, FIRST_PID + NR_PIDS - 1);
	return &machine.processes[pid - FIRST_PID];
}

/* The clock. */

double clock_s(clockid_t clock)
{
	(void)clock;
	return machine.now;
}

uint64_t clock_ns(clockid_t clock)
{
	return (uint64_t)(clock_s(clock) * 1e9);
}

// NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): glibc's are reserved ones.
int nanosleep(const struct timespec *pause, struct timespec *left)
{
	(void)left;
	machine.now += (double)pause->tv_sec + (double)pause->tv_nsec / 1e9;
	return 0;
}

#endif
