// SPDX-License-Identifier: Apache-2.0
/* Makes requests of a profile, each kind as its receivers want it, and pushes them. */
#ifndef PUSH_PROFILE_H
#define PUSH_PROFILE_H

#include "output/otlp.h"
#include "output/output.h"
#include "push/push.h"

enum push_protocol {
	PUSH_OTLP,      /* OpenTelemetry's: bodies of at most OTLP_BODY_MAX bytes before they are compressed */
	PUSH_PYROSCOPE, /* Pyroscope's /ingest: a name with labels and the time in the query, and pprof */
	PUSH_PPROF,     /* pprof alone */
};

/* What receivers get for a service without a name, which they refuse. */
#define PUSH_NAMELESS "unknown_service"

/*
 * Most samples of a request to Pyroscope, and bytes before it is compressed: it refuses more than 16,000 samples (2.2,
 * validation.max-profile-stacktrace-samples), and what is above 2 MiB with 429, however often that is repeated
 * (distributor.ingestion-burst-size-mb).
 */
#define PUSH_PYROSCOPE_SAMPLES 4000
#define PUSH_PYROSCOPE_BYTES   (31u << 16)

struct push_profile {
	enum push_protocol protocol;
	/* PUSH_OTLP: as in struct otlp_options. */
	void (*describe)(void *arg, const struct profile *p, uint32_t process, struct otlp_resource *resource);
	void *describe_arg;
	/* PUSH_PYROSCOPE: by push.v1, whose URL push_is_v1() knows, in place of /ingest. */
	bool v1;
	/*
	 * PUSH_PYROSCOPE: the service's name; NULL: the container's or program's, if there is only one, else "pybpf";
	 * an empty name is sent as PUSH_NAMELESS.
	 */
	const char *service;
	/* PUSH_PYROSCOPE, beside it, and PUSH_PPROF, of each sample: at most OUTPUT_LABELS_MAX. */
	const struct output_label *labels;
	size_t nr_labels;
	/* Asked before each request; false ends it with -ETIME. NULL: there is time. */
	bool (*has_time)(void *arg);
	void *has_time_arg;
	uint64_t *left; /* set to the sum of the values that were not pushed; NULL: not wanted */
	uint32_t *from; /* PUSH_OTLP: as in struct otlp_options */
};

/* Pushes the profile. One without samples is not sent. Returns 0, -ENOMEM, -ETIME, or what push_send() returned. */
int push_profile(struct push *push, const struct profile *p, const struct push_profile *how);

/* Returns whether the URL is that of Pyroscope's push.v1. */
bool push_is_v1(const char *url);

/*
 * Writes Pyroscope's query, "?name=SERVICE{KEY=VALUE}&from=...", encoded, to text. In names and values, characters that
 * end them become underscores, and so does what Pyroscope refuses in the name of a service; what is not plain UTF-8 is
 * \\xNN. Returns 0, -E2BIG or -ENOMEM.
 */
int push_pyroscope_query(const struct profile *p, const struct push_profile *how, char *text, size_t room);

#endif
