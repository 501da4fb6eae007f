// SPDX-License-Identifier: Apache-2.0
/* Checks of what this host supports. They change nothing on the host. trial.c has those that need BPF programs. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdio.h>

/* The oldest supported kernel (docs/kernels-and-pythons.md). */
#define DOCTOR_KERNEL_MAJOR 5
#define DOCTOR_KERNEL_MINOR 10

enum doctor_mark {
	DOCTOR_OK,
	DOCTOR_SKIP, /* could not be checked; the reason may be an item of its own */
	DOCTOR_WARN, /* works, but not as well as it could */
	DOCTOR_FAIL, /* the main job cannot run */
};

struct doctor_item {
	enum doctor_mark mark;
	char found[256];
	char advice[512]; /* "" if nothing needs to be changed */
};

struct doctor {
	FILE *out;
	unsigned fails, warnings;
	/* Names of such items, for the verdict. */
	char failed[512], warned[512];
};

struct doctor_check {
	const char *name;
	/* Fills *item; d holds the number and names of the items that failed before. */
	void (*look)(const struct doctor *d, struct doctor_item *item);
};

/* Checks by /proc, /sys and a few system calls. Ended by an entry without a name. */
extern const struct doctor_check doctor_host_checks[];
/* Checks of the rights that pybpf keeps while it samples. */
extern const struct doctor_check doctor_rights_checks[];

/* Runs the checks and prints a line for each. */
void doctor_run(struct doctor *d, const struct doctor_check *checks);
/* Prints the closing sentence. Returns 0 if the main job can run, -ENOTSUP if not. */
int doctor_verdict(struct doctor *d);

/* Set a check's result: its mark and finding, and the advice on what to change. */
void doctor_found(struct doctor_item *item, enum doctor_mark mark, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_advise(struct doctor_item *item, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Parses a kernel release: "6.18.44-cloud" -> 6, 18. Returns 0 or -EBADMSG. */
int doctor_parse_release(const char *release, int *major, int *minor);
/* Copies the word in brackets of "none [integrity] confidentiality" into out. Returns 0 or -EBADMSG. */
int doctor_parse_choice(const char *text, char *out, size_t out_size);

#endif
