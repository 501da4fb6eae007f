// SPDX-License-Identifier: Apache-2.0
/* Makes requests of a profile: of OpenTelemetry's protocol, of Pyroscope's, of pprof alone. */
#include "push/profile.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/text_stream.h"
#include "output/output.h"
#include "output/type_name.h"
#include "push/push_v1.h"

#define PPROF_CONTENT_TYPE "application/octet-stream"

struct pushing {
	struct push *push;
	const struct push_profile *how;
};

static bool has_time(const struct push_profile *how)
{
	return !how->has_time || how->has_time(how->has_time_arg);
}

static int take_body(void *arg, const void *body, size_t size)
{
	const struct pushing *pushing = arg;

	if (!has_time(pushing->how))
		return -ETIME;
	return push_send(
		pushing->push,
		&(struct push_request){
			.suffix = "", .content_type = OTLP_CONTENT_TYPE, .compress = true, .body = body, .size = size});
}

/* Returns what all processes are called, or NULL. */
static const char *only_service(const struct profile *p)
{
	uint32_t found = PROFILE_NONE;

	for (uint32_t i = 0; i < profile_process_count(p); i++) {
		const struct profile_process *process = profile_process_at(p, i);
		uint32_t name = process->container ? process->container : process->name;

		if (found != PROFILE_NONE && name != found)
			return NULL;
		found = name;
	}
	return found == PROFILE_NONE ? NULL : profile_string(p, found);
}

static const char *service_of(const struct profile *p, const struct push_profile *how)
{
	const char *name = how->service ?: only_service(p) ?: "pybpf";

	return *name ? name : PUSH_NAMELESS;
}

/* A text of a URL's query that grows within its room. */
struct query {
	char *text;
	size_t room, size;
	bool full, no_memory;
};

static void append_byte(struct query *to, char byte)
{
	if (to->size + 1 < to->room)
		to->text[to->size++] = byte;
	else
		to->full = true;
	to->text[to->size] = '\0';
}

/* Appends characters with a meaning in a query as %XX. */
static void append_encoded(struct query *to, const char *text)
{
	for (; *text; text++) {
		if (isalnum((unsigned char)*text) || strchr("-._~", *text)) {
			append_byte(to, *text);
		} else {
			append_byte(to, '%');
			append_byte(to, "0123456789ABCDEF"[(unsigned char)*text >> 4]);
			append_byte(to, "0123456789ABCDEF"[(unsigned char)*text & 15]);
		}
	}
}

static bool ends_value(char c)
{
	return strchr("{},=\"", c);
}

/* Pyroscope's /ingest takes no other names (2.2, api/model/labelset/validate.go, IsServiceNameRuneAllowed()). */
static bool is_refused_in_service(char c)
{
	return !isalnum((unsigned char)c) && !strchr("-._/", c);
}

/* Likewise, as plain UTF-8, with an underscore for each byte that is refused. */
static void append_name(struct query *to, const char *name, bool (*is_refused)(char))
{
	char *plain = text_printable(name);

	to->no_memory |= !plain;
	for (char *c = plain; c && *c; c++)
		*c = (char)(is_refused(*c) ? '_' : *c);
	append_encoded(to, plain ?: "");
	free(plain);
}

static void append_text(struct query *to, const char *text)
{
	while (*text)
		append_byte(to, *text++);
}

/* Returns whether the label has a name that another one has, which stays: the host's, or one before it. */
static bool is_taken(const struct push_profile *how, size_t label)
{
	const char *key = how->labels[label].key;

	for (size_t i = 0; i < label; i++) {
		if (strcmp(how->labels[i].key, key) == 0)
			return true;
	}
	return strcmp(key, "host") == 0;
}

int push_pyroscope_query(const struct profile *p, const struct push_profile *how, char *text, size_t room)
{
	struct query query = {.text = text, .room = room};
	const char *start = profile_find_fact(p, PROFILE_FACT_START), *host = profile_find_fact(p, PROFILE_FACT_HOST);
	const char *duration = profile_find_fact(p, PROFILE_FACT_DURATION);
	const uint64_t from = start ? strtoull(start, NULL, 10) / 1000000000 : 0;
	char times[96];

	append_text(&query, "?name=");
	append_name(&query, service_of(p, how), is_refused_in_service);
	append_encoded(&query, "{");
	for (size_t i = 0; i < how->nr_labels; i++) {
		if (is_taken(how, i))
			continue;
		append_name(&query, how->labels[i].key, ends_value);
		append_encoded(&query, "=");
		append_name(&query, how->labels[i].value, ends_value);
		append_encoded(&query, ",");
	}
	append_encoded(&query, "host=");
	append_name(&query, host ?: "", ends_value);
	append_encoded(&query, "}");
	/* Whole seconds, of which there is at least one. */
	snprintf(times, sizeof(times), "&from=%" PRIu64 "&until=%" PRIu64, from,
		 from + 1 + (uint64_t)(duration ? strtod(duration, NULL) : 0));
	append_text(&query, times);
	append_text(&query, "&format=pprof&spyName=pybpf");
	return query.no_memory ? -ENOMEM : query.full ? -E2BIG : 0;
}

bool push_is_v1(const char *url)
{
	const size_t size = strcspn(url, "?"), path = sizeof(PUSH_V1_PATH) - 1;

	return size > path && !memcmp(url + size - path, PUSH_V1_PATH, path);
}

/* Pushes pprof as a request of push.v1, which has the time from pprof itself. */
static int push_v1(struct push *push, const struct profile *p, const struct push_profile *how, const void *pprof,
		   size_t size)
{
	const struct profile_measure measure = profile_get_measure(p);
	/* As Pyroscope calls the CPU profiles of all languages. */
	char *name = output_type_name(measure.period_ns ? "process_cpu" : measure.name);
	const struct push_v1 from = {
		.name = name,
		.service = service_of(p, how),
		.host = profile_find_fact(p, PROFILE_FACT_HOST) ?: "",
		.labels = how->labels,
		.nr_labels = how->nr_labels,
		.pprof = pprof,
		.pprof_size = size,
	};
	struct proto_bytes body = proto_bytes();
	int err = name ? push_v1_make(&from, &body) : -ENOMEM;

	free(name);
	err = err
		      ?: push_send(push, &(struct push_request){.suffix = "",
								.content_type = PUSH_V1_CONTENT_TYPE,
								.body = body.bytes,
								.size = body.size});
	proto_bytes_free(&body);
	return err;
}

/* Makes a body of this many samples from the first one on. Returns 0 or negative errno. */
static int make_pprof(const struct profile *p, const struct push_profile *how, size_t first, size_t count, char **body,
		      size_t *size)
{
	FILE *out = text_stream_open(body, size);
	const struct output_options options = {.labels = how->labels,
					       .nr_labels = how->protocol == PUSH_PPROF ? how->nr_labels : 0,
					       .first_sample = first,
					       .nr_samples = count};
	int err = out ? output_pprof(p, &options, out) : -ENOMEM;

	return out && fclose(out) ? -ENOMEM : err;
}

/* Returns the size of what a gzip file of one member holds (RFC 1952: ISIZE, little-endian, modulo 2^32). */
static uint32_t unpacked_size(const char *file, size_t size)
{
	uint32_t value = 0;

	if (size >= sizeof(value))
		memcpy(&value, file + size - sizeof(value), sizeof(value));
	return le32toh(value);
}

/*
 * Pushes samples from the first one on: as many as *count, or fewer, which it is set to, if these are more than a
 * request may have. Returns 0 or negative errno.
 */
static int push_part(struct push *push, const struct profile *p, const struct push_profile *how, const char *suffix,
		     size_t first, size_t *count)
{
	char *body = NULL;
	size_t size = 0;
	int err = make_pprof(p, how, first, *count, &body, &size);

	while (!err && how->protocol != PUSH_PPROF && *count > 1 && unpacked_size(body, size) > PUSH_PYROSCOPE_BYTES) {
		free(body);
		body = NULL;
		*count /= 2;
		err = has_time(how) ? make_pprof(p, how, first, *count, &body, &size) : -ETIME;
	}
	/* It is compressed already, as the format asks for. */
	if (!err && how->v1)
		err = push_v1(push, p, how, body, size);
	else if (!err)
		err = push_send(push, &(struct push_request){.suffix = suffix,
							     .content_type = PPROF_CONTENT_TYPE,
							     .body = body,
							     .size = size});
	free(body);
	return err;
}

static uint64_t values_of(const struct profile *p, size_t first, size_t most)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(p, &count);
	uint64_t sum = 0;

	for (size_t i = first; i < count && i - first < most; i++)
		sum += samples[i].stack == PROFILE_ROOT ? 0 : samples[i].value;
	return sum;
}

/* Sets *left to the values that were not pushed. */
static int push_pprof(struct push *push, const struct profile *p, const struct push_profile *how, const char *suffix,
		      uint64_t *left)
{
	size_t count, part, most;
	int err = 0;

	profile_samples(p, &count);
	most = how->protocol == PUSH_PPROF ? count : PUSH_PYROSCOPE_SAMPLES;
	for (size_t i = 0; i < count && !err; i += part) {
		part = most < count - i ? most : count - i;
		if (!values_of(p, i, part))
			continue;
		err = has_time(how) ? push_part(push, p, how, suffix, i, &part) : -ETIME;
		*left -= err ? 0 : values_of(p, i, part);
	}
	return err;
}

static int push_otlp(struct push *push, const struct profile *p, const struct push_profile *how)
{
	struct pushing pushing = {push, how};

	return otlp_encode(p, &(struct otlp_options){.body_max = OTLP_BODY_MAX,
						     .describe = how->describe,
						     .describe_arg = how->describe_arg,
						     .take = take_body,
						     .take_arg = &pushing,
						     .left = how->left,
						     .from = how->from});
}

int push_profile(struct push *push, const struct profile *p, const struct push_profile *how)
{
	uint64_t left = profile_total(p);
	char query[PUSH_SUFFIX_MAX] = "";
	int err = 0;

	if (how->left)
		*how->left = 0;
	if (!left)
		return 0;
	if (how->protocol == PUSH_OTLP)
		return push_otlp(push, p, how);
	if (how->protocol == PUSH_PYROSCOPE && !how->v1)
		err = push_pyroscope_query(p, how, query, sizeof(query));
	err = err ?: push_pprof(push, p, how, query, &left);
	if (how->left)
		*how->left = left;
	return err;
}
