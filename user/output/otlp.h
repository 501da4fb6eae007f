// SPDX-License-Identifier: Apache-2.0
/*
 * Profiles as OpenTelemetry's collectors take them (OTLP, profiles/v1development): a profile becomes one or more bodies
 * of requests, each whole in itself. The version of the protocol, and the path below which a collector takes it, are
 * known here and nowhere else.
 */
#ifndef OUTPUT_OTLP_H
#define OUTPUT_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

/* Where a collector's receiver takes the bodies, and what they are. */
#define OTLP_PATH         "/v1development/profiles"
#define OTLP_CONTENT_TYPE "application/x-protobuf"
/* Bytes that many receivers refuse to exceed: the default limit of gRPC, which proxies and stores have taken over. */
#define OTLP_BODY_MAX ((size_t)4 << 20)

/* Attributes of who was profiled: those of OpenTelemetry's semantic conventions. */
#define OTLP_SERVICE_NAME    "service.name"
#define OTLP_CONTAINER_NAME  "container.name"
#define OTLP_K8S_POD         "k8s.pod.name"
#define OTLP_K8S_CONTAINER   "k8s.container.name"
#define OTLP_HOST_NAME       "host.name"
#define OTLP_EXECUTABLE_NAME "process.executable.name"

/* Processes with equal attributes are one resource. */
#define OTLP_ATTRIBUTES_MAX 32
struct otlp_resource {
	struct {
		char *key, *value; /* owned */
	} attributes[OTLP_ATTRIBUTES_MAX];
	size_t count;
	bool no_memory;
};

/* Sets an attribute, in place of the one of that key; NULL or "": removes it. Texts are copied. */
void otlp_resource_set(struct otlp_resource *resource, const char *key, const char *value);

struct otlp_options {
	/* Most bytes of a body, whose profiles are no more than Pyroscope takes at once, too; 0: one of any size. */
	size_t body_max;
	/*
	 * Changes the attributes of a process, which at first are those that the profile tells: service.name (the
	 * service's, else the container's name, else the program's), container.name, or in Kubernetes k8s.pod.name and
	 * k8s.container.name, host.name, process.executable.name, and the process's attributes (profile/attributes.h).
	 * NULL: they stay.
	 */
	void (*describe)(void *arg, const struct profile *p, uint32_t process, struct otlp_resource *resource);
	void *describe_arg;
	/* Takes a body, which is the caller's until it returns. Returns 0, or a negative errno that ends the encoding.
	 */
	int (*take)(void *arg, const void *body, size_t size);
	void *take_arg;
	/* Set to the sum of the values that are in no body which was taken: 0 unless it fails. NULL: not wanted. */
	uint64_t *left;
	/*
	 * The resource of the process at *from, whatever the number of processes, comes first; set to a process of the
	 * first one that is in no body which was taken, so that the next profile begins with it. One that fills all
	 * bodies alone is not first twice in a row. NULL: the first process is.
	 */
	uint32_t *from;
};

/*
 * Encodes the profile. A body is larger than that only if one stack alone is. A profile without samples makes one body
 * without profiles if body_max is 0, else none. Returns 0, -ENOMEM, or what options->take returned.
 */
int otlp_encode(const struct profile *p, const struct otlp_options *options);

#endif
