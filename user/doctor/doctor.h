// SPDX-License-Identifier: Apache-2.0
/* What this host offers, item by item. Looks; changes nothing. session_doctor.c adds what needs BPF programs. */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdio.h>

/* The oldest supported kernel (docs/kernels-and-pythons.md). */
#define DOCTOR_KERNEL_MAJOR 5
#define DOCTOR_KERNEL_MINOR 10

enum doctor_mark {
	DOCTOR_OK,
	DOCTOR_SKIP, /* could not be looked at; what stands in the way is an item of its own */
	DOCTOR_WARN, /* works, but not as well as it could */
	DOCTOR_FAIL, /* the main job cannot run */
};

struct doctor_item {
	enum doctor_mark mark;
	char found[256];
	char advice[512]; /* "" where there is nothing to change */
};

struct doctor {
	FILE *out;
	unsigned fails;
	char failed[512]; /* names of the failed items, for the sentence at the end */
};

struct doctor_check {
	const char *name;
	/* Fills *item; d tells what has failed before. */
	void (*look)(const struct doctor *d, struct doctor_item *item);
};

/* What /proc, /sys and a few system calls tell. Ended by one without a name. */
extern const struct doctor_check doctor_host_checks[];
/* What is left of the rights of pybpf while it samples. */
extern const struct doctor_check doctor_rights_checks[];

/* Runs the checks and prints a line of each. */
void doctor_run(struct doctor *d, const struct doctor_check *checks);
/* Prints the sentence at the end. Returns 0 when the main job can run, -ENOTSUP when not, -EIO if out failed. */
int doctor_verdict(struct doctor *d);

/* What a check says. */
void doctor_found(struct doctor_item *item, enum doctor_mark mark, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_advise(struct doctor_item *item, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "6.18.44-cloud" -> 6, 18. Returns 0 or -EBADMSG. */
int doctor_parse_release(const char *release, int *major, int *minor);
/* The word in brackets of "none [integrity] confidentiality", into out. Returns 0 or -EBADMSG. */
int doctor_parse_choice(const char *text, char *out, size_t out_size);

#endif
