// SPDX-License-Identifier: Apache-2.0
/*
 * Starts the process that sends, and does what stdin tells, a line each:
 *
 *	send NAME SIZE    hands it a body of that many bytes, which begins with the name
 *	count             prints the counts as one line of JSON
 *	end SECONDS       ends it, prints the last counts and ends
 *
 * Usage: push-driver URL [OPTION=VALUE]...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "push/push.h"

static void print_counts(const struct push_counts *counts)
{
	printf("{\"submitted\": %lu, \"found\": %lu, \"sent\": %lu, \"retried\": %lu, \"rejected_profiles\": %lu, "
	       "\"waiting\": %lu, \"waiting_bytes\": %lu, \"spooled\": %lu, \"restarts\": %lu, \"gone\": %s, "
	       "\"dropped\": {",
	       counts->submitted, counts->found, counts->sent, counts->retried, counts->rejected_profiles,
	       counts->waiting, counts->waiting_bytes, counts->spooled, counts->restarts,
	       counts->gone ? "true" : "false");
	for (int i = 0; i < PUSH_CAUSES; i++)
		printf("%s\"%s\": %lu", i ? ", " : "", push_cause_name((enum push_cause)i), counts->dropped[i]);
	puts("}}");
	fflush(stdout);
}

static void send_body(struct push *push, const char *name, size_t size)
{
	char *body = malloc(size + 1);
	int err;

	if (!body)
		exit(1);
	/* It does not become smaller when it is compressed. */
	for (size_t i = 0; i < size; i++)
		body[i] = (char)rand();
	/* With its NUL. */
	memcpy(body, name, strlen(name) < size ? strlen(name) + 1 : size);
	err = push_send(push,
			&(struct push_request){
				.suffix = "", .content_type = "application/x-protobuf", .body = body, .size = size});
	free(body);
	printf("%d\n", err);
	fflush(stdout);
}

static void set_option(struct push_options *options, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **to;
	} texts[] = {{"headers", &options->headers},         {"token", &options->token}, {"ca", &options->ca},
		     {"certificate", &options->certificate}, {"key", &options->key},     {"spool", &options->spool}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (strcmp(texts[i].name, name) == 0)
			*texts[i].to = value;
	}
	if (strcmp(name, "spool_max") == 0)
		options->spool_max = strtoull(value, NULL, 10);
	else if (strcmp(name, "queue_max") == 0)
		options->queue_max = strtoull(value, NULL, 10);
	else if (strcmp(name, "retry_s") == 0)
		options->retry_s = strtod(value, NULL);
	else if (strcmp(name, "timeout_s") == 0)
		options->timeout_s = strtod(value, NULL);
}

int main(int argc, char **argv)
{
	struct push_options options = {.url = argc > 1 ? argv[1] : ""};
	struct push_counts counts;
	struct push *push;
	struct error error;
	char line[256], name[64];
	double seconds;
	size_t size;

	for (int i = 2; i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			return 2;
		*equals = '\0';
		set_option(&options, argv[i], equals + 1);
	}
	if (push_start(&options, &push, &error)) {
		fprintf(stderr, "pybpf: %s\n", error.text);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "send %63s %zu", name, &size) == 2) {
			send_body(push, name, size);
		} else if (strcmp(line, "count\n") == 0) {
			push_count(push, &counts);
			print_counts(&counts);
		} else if (sscanf(line, "end %lf", &seconds) == 1) {
			push_end(&push, seconds, &counts);
			print_counts(&counts);
			return 0;
		}
	}
	push_end(&push, 0, NULL);
	return 0;
}
