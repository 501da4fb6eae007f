// SPDX-License-Identifier: Apache-2.0
/*
 * Starts the process that serves, prints what it asks for, a line of JSON each, and does what stdin tells, a line each:
 *
 *	auto              answers all requests from now on, and says so
 *	answer ID SIZE    answers one with that many bytes
 *	count             prints the counts
 *	ready             says from now on that it is ready, and not only well
 *	ill               does not say any more that it is well; prints that
 *	end               ends
 *
 * With confine=1 it first gives up its rights, as the process that samples does.
 *
 * Usage: serve-driver LISTEN [token=FILE] [mode=OCTAL] [seconds_most=N] [confine=1]
 */
#include <inttypes.h>
#include <poll.h>
#include <unistd.h>

#include "profiles.h"
#include "rights/rights.h"
#include "serve/metrics.h"
#include "serve/serve.h"

/* Interval between looks for requests, in ms. */
#define LOOK_MS 10

static struct serve *serve;
static bool answers_all, confines, is_ready, is_ill;

static const char *const names[SERVE_WHATS] = {"profile", "wall", "gil", "metrics"};

static void reply(uint64_t id, const char *content_type, const void *body, size_t size)
{
	const struct serve_answer answer = {.status = 200, .content_type = content_type, .body = body, .size = size};
	int err = serve_answer(serve, id, &answer);

	printf("{\"answered\": %" PRIu64 ", \"error\": %d}\n", id, err);
}

static void reply_profile(uint64_t id, const char *kind, unsigned seconds)
{
	struct profile *p = new_profile();
	uint32_t owner = process(p, 42, "python3"), main = on(p, PROFILE_ROOT, "<module>", "app.py", 90);
	char duration[16];
	size_t size;
	char *bytes;

	snprintf(duration, sizeof(duration), "%u", seconds);
	assert_int_equal(profile_set_measure(p, &(struct profile_measure){"samples", "count", 10000000}), 0);
	assert_int_equal(profile_set_fact(p, PROFILE_FACT_DURATION, duration), 0);
	take_in(p, on(p, main, kind, "app.py", 7), owner, 100);
	take_in(p, main, owner, 11);
	bytes = written_bytes(p, output_pprof, &(struct output_options){0}, &size);
	reply(id, "application/octet-stream", bytes, size);
	free(bytes);
	profile_free(p);
}

static void reply_metrics(uint64_t id)
{
	const struct serve_metric rows[] = {
		{"pybpf_samples_total", "Samples that were taken.", SERVE_COUNTER, {{NULL, NULL}}, 4711},
		{"pybpf_lost_samples_total",
		 "Samples that were lost, by their cause.",
		 SERVE_COUNTER,
		 {{"cause", "ring full"}},
		 3},
		{"pybpf_lost_samples_total", "", SERVE_COUNTER, {{"cause", "a \"quoted\\\n\xff name\""}}, 0},
		{"pybpf_memory_bytes", "Memory of pybpf.", SERVE_GAUGE, {{NULL, NULL}}, 12345678},
	};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(serve_metrics_write(rows, sizeof(rows) / sizeof(*rows), out), 0);
	assert_int_equal(fclose(out), 0);
	reply(id, SERVE_METRICS_CONTENT_TYPE, text, size);
	free(text);
}

static void take_request(const struct serve_request *request)
{
	if (request->cancelled) {
		printf("{\"cancelled\": %" PRIu64 "}\n", request->id);
		return;
	}
	printf("{\"id\": %" PRIu64 ", \"what\": \"%s\", \"seconds\": %u}\n", request->id, names[request->what],
	       request->seconds);
	if (!answers_all)
		return;
	if (request->seconds)
		reply_profile(request->id, names[request->what], request->seconds);
	else
		reply_metrics(request->id);
}

static void print_counts(void)
{
	struct serve_counts c;

	serve_count(serve, &c);
	printf("{\"requests\": %" PRIu64 ", \"answered\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"denied\": %" PRIu64
	       ", \"unavailable\": %" PRIu64 ", \"left\": %" PRIu64 ", \"cut\": %" PRIu64 ", \"restarts\": %" PRIu64
	       ", \"gone\": %s}\n",
	       c.requests, c.answered, c.wrong, c.denied, c.unavailable, c.left, c.cut, c.restarts,
	       c.gone ? "true" : "false");
}

/* Returns whether it goes on. */
static bool obey(const char *line)
{
	uint64_t id;
	size_t size;

	if (sscanf(line, "answer %" SCNu64 " %zu", &id, &size) == 2) {
		char *body = calloc(1, size + 1);

		assert_non_null(body);
		memset(body, 'x', size);
		reply(id, "application/octet-stream", body, size);
		free(body);
	} else if (strcmp(line, "auto\n") == 0) {
		answers_all = true;
		puts("{\"auto\": true}");
	} else if (strcmp(line, "count\n") == 0) {
		print_counts();
	} else if (strcmp(line, "ready\n") == 0) {
		is_ready = true;
	} else if (strcmp(line, "ill\n") == 0) {
		is_ill = true;
		puts("{\"ill\": true}");
	} else {
		return false;
	}
	return true;
}

/* Does what both sides want, until stdin ends or says so. */
static void run(void)
{
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	struct serve_request request;
	char line[256];
	int got = 0;

	while (poll(&input, 1, LOOK_MS) >= 0) {
		if (!is_ill)
			serve_tell_well(serve, is_ready);
		if (input.revents && (!fgets(line, sizeof(line), stdin) || !obey(line)))
			return;
		if (got < 0)
			continue;
		while ((got = serve_next(serve, &request)) > 0)
			take_request(&request);
		if (got < 0)
			puts("{\"gone\": true}");
	}
}

static void set_option(struct serve_options *options, const char *word)
{
	if (strncmp(word, "token=", 6) == 0)
		options->token = word + 6;
	else if (strncmp(word, "mode=", 5) == 0)
		options->socket_mode = (unsigned)strtoul(word + 5, NULL, 8);
	else if (strncmp(word, "seconds_most=", 13) == 0)
		options->seconds_most = (unsigned)strtoul(word + 13, NULL, 10);
	else
		confines |= strcmp(word, "confine=1") == 0;
}

int main(int argc, char **argv)
{
	struct serve_options options = {.listen = argc > 1 ? argv[1] : ""};
	struct error error;

	setvbuf(stdin, NULL, _IONBF, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 2; i < argc; i++)
		set_option(&options, argv[i]);
	if (serve_start(&options, &serve, &error) ||
	    (confines && rights_drop(&(struct rights_wanted){.level = RIGHTS_SAMPLE}, &error))) {
		fprintf(stderr, "pybpf: %s\n", error.text);
		return 1;
	}
	printf("{\"address\": \"%s\"}\n", serve_address(serve));
	run();
	serve_end(&serve);
	return 0;
}
