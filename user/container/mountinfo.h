// SPDX-License-Identifier: Apache-2.0
/* /proc/PID/mountinfo: what is mounted where. */
#ifndef CONTAINER_MOUNTINFO_H
#define CONTAINER_MOUNTINFO_H

#include <stdbool.h>
#include <sys/types.h>

struct mountinfo {
	const char *device; /* "98:0" */
	char *root;         /* the mounted part of the device's file system */
	const char *point;  /* where, in the mount namespace of the process and below its root */
	const char *type;   /* of the file system */
	char *options;      /* of the file system, with commas between them */
};

/* Reads the text, which the caller frees. Returns 0 or negative errno. */
int mountinfo_read(pid_t pid, char **text);
/*
 * Parses the next line with a mount of the text, which is modified; *rest: the text at first. Returns false at its end.
 */
bool mountinfo_next(char **rest, struct mountinfo *out);

#endif
