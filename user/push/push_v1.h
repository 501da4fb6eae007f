// SPDX-License-Identifier: Apache-2.0
/* Requests of Pyroscope's push.v1.PusherService: a profile of pprof with labels. */
#ifndef PUSH_PUSH_V1_H
#define PUSH_PUSH_V1_H

#include <stdbool.h>
#include <stddef.h>

#include "base/proto_bytes.h"
#include "push/profile.h"

#define PUSH_V1_PATH         "/push.v1.PusherService/Push"
#define PUSH_V1_CONTENT_TYPE "application/proto"

/* What a request has. */
struct push_v1 {
	const char *name;    /* of the kind of profile: process_cpu */
	const char *service; /* its label service_name */
	const char *host;    /* "": not known */
	const struct output_label *labels;
	size_t nr_labels;
	const void *pprof;
	size_t pprof_size;
};

/*
 * Appends a request to *to. Labels of a name that is there already are left out: Pyroscope refuses a name that occurs
 * twice. Returns 0 or -ENOMEM.
 */
int push_v1_make(const struct push_v1 *from, struct proto_bytes *to);

#endif
