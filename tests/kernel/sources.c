// SPDX-License-Identifier: Apache-2.0
/*
 * Samples a process by any sources, until a line comes on stdin. Prints a line of JSON for each kind that the kernel
 * has counted, one for each stack's leaf, and the account.
 *
 *   sources PID RATE EVENT…
 *
 * EVENT: "TYPE:CONFIG:PERIOD:KIND" of a perf event, or "CATEGORY:NAME:KIND" of a tracepoint.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/services.h"
#include "discovery/discovery.h"
#include "helper/helper.h"
#include "kernel/counts.h"
#include "session/account/account.h"
#include "session/internal.h"

#define MAX_EVENTS 8
#define MAX_KINDS  8

struct kinds {
	uint64_t entries[MAX_KINDS];
	struct pybpf_count sum[MAX_KINDS];
};

static int parse_event(char *text, struct kernel_event *event)
{
	char *part[4];
	int parts = 0;

	for (char *p = strtok(text, ":"); p && parts < 4; p = strtok(NULL, ":"))
		part[parts++] = p;
	if (parts == 3) {
		*event = (struct kernel_event){.category = part[0], .name = part[1], .kind = (uint32_t)atoi(part[2])};
		return 0;
	}
	if (parts != 4)
		return -1;
	*event = (struct kernel_event){
		.type = (uint32_t)atoi(part[0]),
		.config = strtoull(part[1], NULL, 0),
		.period = strtoull(part[2], NULL, 0),
		.kind = (uint32_t)atoi(part[3]),
	};
	return 0;
}

static int add_kind(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg)
{
	struct kinds *kinds = arg;

	if (key->kind >= MAX_KINDS)
		return -1;
	kinds->entries[key->kind]++;
	kinds->sum[key->kind].count += count->count;
	kinds->sum[key->kind].value += count->value;
	return 0;
}

static void print_kinds(const struct kinds *kinds)
{
	for (int i = 0; i < MAX_KINDS; i++) {
		if (kinds->entries[i])
			printf("{\"kind\": %d, \"count\": %llu, \"value\": %llu}\n", i, kinds->sum[i].count,
			       kinds->sum[i].value);
	}
}

static void print_leaves(const struct profile *profile)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(profile, &count);

	for (size_t i = 0; i < count; i++) {
		const struct profile_frame *leaf =
			profile_frame_at(profile, profile_stack_at(profile, samples[i].stack)->frame);

		printf("{\"leaf\": \"%s\", \"value\": %" PRIu64 "}\n", profile_string(profile, leaf->name),
		       samples[i].value);
	}
}

static int run(struct session *s)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	int err = 0;

	puts("ready");
	fflush(stdout);
	while (!err && poll(&in, 1, 10) == 0) {
		do
			err = session_consume(s);
		while (err > 0);
		if (!err && session_do_periodic_work(s) < 0)
			err = -1;
	}
	return err;
}

int main(int argc, char **argv)
{
	struct session_options options = SESSION_OPTIONS_DEFAULT;
	struct kernel_event events[MAX_EVENTS];
	struct session_account account;
	const struct profile *profile;
	struct kinds kinds = {0};
	struct discovery *known;
	struct session *s;
	uint32_t pid;
	int err;

	if (argc < 4 || argc > 3 + MAX_EVENTS)
		return 2;
	pid = (uint32_t)atoi(argv[1]);
	options.freq = (unsigned)atoi(argv[2]);
	options.events = events;
	for (int i = 3; i < argc; i++) {
		if (parse_event(argv[i], &events[options.nr_events++]))
			return 2;
	}
	known = discovery_new();
	if (!known || helper_start(&cli_services, known))
		return 1;
	discovery_free(known);
	s = session_new(&options);
	if (!s)
		return 1;
	err = session_follow(s, &pid, 1);
	err = err ?: session_attach(s);
	err = err ?: run(s);
	session_detach(s);
	err = err ?: kernel_visit_counts(s->kernel, add_kind, &kinds);
	err = err ?: session_collect(s, &profile, &account);
	if (!err) {
		print_kinds(&kinds);
		print_leaves(profile);
		session_account_json(&account, stdout);
	}
	session_free(s);
	helper_stop();
	return err ? 1 : 0;
}
