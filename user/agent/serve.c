// SPDX-License-Identifier: Apache-2.0
/* The sink that answers requests by HTTP: profiles of the next seconds, metrics, health. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "output/output.h"
#include "profile/edit.h"
#include "profile/profile.h"
#include "serve/metrics.h"
#include "session/account/account.h"

#define TEXT_CONTENT_TYPE  "text/plain; charset=utf-8"
#define PPROF_CONTENT_TYPE "application/octet-stream"
/* Requests that are taken in one turn: samples wait meanwhile. */
#define REQUESTS_PER_TURN 16
/* Requests that are taken in a second: what they cost would lower the rate of samples, whoever the client is. */
#define REQUESTS_PER_S 32
/*
 * Seconds between moments at which profiles begin, those that are asked for by then together: for each moment all maps
 * of the kernel are read, also if the clients leave at once.
 */
#define PROFILES_INTERVAL_S 1.0
/* Stacks that all profiles for clients keep near the memory limit; a stack takes some 100 bytes with its frames. */
#define STACKS_NEAR_LIMIT 50000

static bool is_wanted(const struct agent_options *options)
{
	return options->serve.listen != NULL;
}

static int open_server(struct agent *a, struct error *error)
{
	int err = serve_start(&a->options.serve, &a->server, error);

	if (!err)
		log_info("serving profiles and metrics at %s", serve_address(a->server));
	return err;
}

static void answer_text(struct agent *a, const struct serve_request *request, unsigned status, const char *text)
{
	const struct serve_answer answer = {
		.status = status, .content_type = TEXT_CONTENT_TYPE, .body = text, .size = strlen(text)};

	/* Its client may have gone. */
	serve_answer(a->server, request->id, &answer);
}

static void answer_metrics(struct agent *a, const struct serve_request *request)
{
	struct serve_answer answer = {.status = 200, .content_type = SERVE_METRICS_CONTENT_TYPE};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int err = out ? agent_write_metrics(a, out) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	answer.body = text;
	answer.size = size;
	if (err)
		answer_text(a, request, 500, "The metrics could not be written.\n");
	else
		serve_answer(a->server, request->id, &answer);
	free(text);
}

/* Profiles */

static enum serve_what what_has(enum session_mode mode)
{
	switch (mode) {
	case SESSION_CPU:
		return SERVE_PROFILE;
	case SESSION_GIL:
		return SERVE_GIL;
	default:
		return SERVE_WALL;
	}
}

/* Returns the part that measures this, or NULL. */
static struct agent_part *find_part(struct agent *a, enum serve_what what)
{
	for (size_t i = 0; i < a->nr_parts; i++) {
		if (what_has(a->parts[i].mode) == what)
			return &a->parts[i];
	}
	return NULL;
}

/* Notes a profile that will begin soon, or answers why it cannot. */
static void note_profile(struct agent *a, const struct serve_request *request)
{
	struct agent_part *part = find_part(a, request->what);

	if (!part)
		answer_text(a, request, 404,
			    "This agent measures something else: --mode=cpu has /debug/pprof/profile, wall and offcpu "
			    "have /debug/pprof/wall, gil has /debug/pprof/gil.\n");
	else if (a->nr_pulled == AGENT_PULLED_MAX)
		answer_text(a, request, 503, "Too many profiles are made at this moment; try again later.\n");
	else
		a->pulled[a->nr_pulled++] =
			(struct agent_pulled){.id = request->id, .part = part, .seconds = request->seconds};
}

static void cancel(struct agent *a, uint64_t id)
{
	for (size_t i = 0; i < a->nr_pulled; i++) {
		if (a->pulled[i].id == id) {
			agent_remove_pulled(a, i);
			return;
		}
	}
}

static int write_profile(const struct agent_pulled *pulled, FILE *out)
{
	struct session *session = pulled->part->session;
	const struct output_options options = {0};
	struct session_account now;
	int err = session_count_samples(session, &now);

	if (!err) {
		struct session_account since = session_account_since(&now, &pulled->account);

		since.duration_s = session_get_epoch_end(session) - pulled->begin;
		err = agent_describe(pulled->part, &since, pulled->begin_ns, pulled->profile);
	}
	return err ?: output_pprof(pulled->profile, &options, out);
}

static void answer_profile(struct agent *a, struct agent_pulled *pulled)
{
	const struct serve_request request = {.id = pulled->id};
	struct serve_answer answer = {.status = 200, .content_type = PPROF_CONTENT_TYPE};
	char *body = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&body, &size);
	int err = out ? write_profile(pulled, out) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	answer.body = body;
	answer.size = size;
	if (err) {
		log_warn("a profile that was asked for by HTTP could not be made: %s", strerror(-err));
		answer_text(a, &request, 500, "The profile could not be made.\n");
	} else {
		serve_answer(a->server, pulled->id, &answer);
	}
	free(body);
}

/*
 * Begins a profile whose part's samples were just taken; account: that of the session before. begin_ns: now, since
 * 1970.
 */
static void begin_profile(struct agent *a, size_t i, const struct session_account *account, uint64_t begin_ns)
{
	struct agent_pulled *pulled = &a->pulled[i];

	pulled->profile = profile_new();
	if (!pulled->profile) {
		answer_text(a, &(struct serve_request){.id = pulled->id}, 503, "Out of memory.\n");
		agent_remove_pulled(a, i);
		return;
	}
	pulled->account = *account;
	pulled->begin = session_get_epoch_end(pulled->part->session);
	pulled->begin_ns = begin_ns;
	pulled->end = pulled->begin + pulled->seconds;
}

/* Returns whether a profile is to be answered, or to begin. */
static bool is_due(const struct agent_pulled *pulled, double now)
{
	return !pulled->is_lost && now >= (pulled->profile ? pulled->end : pulled->part->next_pulled);
}

/*
 * Ends and begins the profiles of a part that are due. Its samples are taken once for all of them. Returns 0, or
 * negative errno that ends the run, after a report.
 */
static int turn_profiles(struct agent *a, struct agent_part *part, double now)
{
	struct session_account account;
	uint64_t begin_ns;
	bool begun = false;
	int err = session_count_samples(part->session, &account);

	if (err)
		log_error("cannot read the counters of the kernel: %s", strerror(-err));
	err = err ?: agent_take_samples(part, false);
	session_count_states(part->session, &account);
	begin_ns = clock_ns(CLOCK_REALTIME);
	for (size_t i = a->nr_pulled; i-- > 0 && !err;) {
		if (a->pulled[i].part != part || !is_due(&a->pulled[i], now))
			continue;
		if (a->pulled[i].profile) {
			answer_profile(a, &a->pulled[i]);
			agent_remove_pulled(a, i);
		} else {
			begin_profile(a, i, &account, begin_ns);
			begun = true;
		}
	}
	if (begun)
		part->next_pulled = session_get_epoch_end(part->session) + PROFILES_INTERVAL_S;
	return err;
}

/* Returns the profile that has the most stacks, and sets *stacks to those of all; NULL: none has begun. */
static struct agent_pulled *find_largest(struct agent *a, uint64_t *stacks)
{
	struct agent_pulled *largest = NULL;

	*stacks = 0;
	for (size_t i = 0; i < a->nr_pulled; i++) {
		struct agent_pulled *pulled = &a->pulled[i];

		if (!pulled->profile)
			continue;
		*stacks += profile_stack_count(pulled->profile);
		if (!largest || profile_stack_count(pulled->profile) > profile_stack_count(largest->profile))
			largest = pulled;
	}
	return largest;
}

static bool nears_memory_limit(const struct agent *a)
{
	for (size_t i = 0; i < a->nr_parts; i++) {
		if (session_nears_memory_limit(a->parts[i].session))
			return true;
	}
	return false;
}

/*
 * Near the memory limit the largest profiles are given up: they outlive epochs; otherwise the epochs would lose
 * samples.
 */
static void spare_memory(struct agent *a)
{
	struct agent_pulled *largest;
	uint64_t stacks;

	while (nears_memory_limit(a) && (largest = find_largest(a, &stacks)) && stacks > STACKS_NEAR_LIMIT) {
		answer_text(a, &(struct serve_request){.id = largest->id}, 503,
			    "pybpf is near its memory limit, and this profile was the largest one; choose fewer "
			    "seconds.\n");
		agent_remove_pulled(a, (size_t)(largest - a->pulled));
	}
}

/* Answers the clients of profiles that are lost. */
static void drop_lost(struct agent *a)
{
	for (size_t i = a->nr_pulled; i-- > 0;) {
		if (!a->pulled[i].is_lost)
			continue;
		answer_text(a, &(struct serve_request){.id = a->pulled[i].id}, 503,
			    "pybpf had no memory for this profile; choose fewer seconds.\n");
		agent_remove_pulled(a, i);
	}
}

static bool has_due_profile(const struct agent *a, const struct agent_part *part, double now)
{
	for (size_t i = 0; i < a->nr_pulled; i++) {
		if (a->pulled[i].part == part && is_due(&a->pulled[i], now))
			return true;
	}
	return false;
}

/* Answers with the profiles that are due, and begins those that may begin. Returns as turn_profiles(). */
static int do_profiles(struct agent *a)
{
	const double now = clock_s(CLOCK_MONOTONIC);
	int err = 0;

	drop_lost(a);
	spare_memory(a);
	for (size_t i = 0; i < a->nr_parts && !err; i++) {
		if (has_due_profile(a, &a->parts[i], now))
			err = turn_profiles(a, &a->parts[i], now);
	}
	return err;
}

static void take_request(struct agent *a, const struct serve_request *request)
{
	if (request->cancelled)
		cancel(a, request->id);
	else if (request->what == SERVE_METRICS)
		answer_metrics(a, request);
	else
		note_profile(a, request);
}

/* Adds to the requests that may be taken what the time since the last turn gives. */
static void allow_requests(struct agent *a)
{
	const double now = clock_s(CLOCK_MONOTONIC);

	a->requests_allowed += (now - a->requests_allowed_at) * REQUESTS_PER_S;
	if (a->requests_allowed > REQUESTS_PER_TURN)
		a->requests_allowed = REQUESTS_PER_TURN;
	a->requests_allowed_at = now;
}

static int do_periodic_work(struct agent *a)
{
	struct serve_request request;
	int more = 1;

	serve_tell_well(a->server, a->metrics.epochs > 0);
	allow_requests(a);
	while (a->requests_allowed >= 1 && more > 0) {
		more = serve_next(a->server, &request);
		if (more <= 0)
			break;
		a->requests_allowed -= !request.cancelled;
		take_request(a, &request);
	}
	if (more >= 0)
		return do_profiles(a);
	log_error("the process that serves at %s has ended: profiles and metrics are no longer served, and the agent "
		  "ends",
		  serve_address(a->server));
	return more;
}

static void count(const struct agent *a, struct agent_metrics *metrics)
{
	serve_count(a->server, &metrics->serve);
}

static void close_server(struct agent *a)
{
	agent_drop_pulled(a);
	serve_end(&a->server);
}

const struct agent_sink agent_serve_sink = {
	.name = "serve",
	.is_wanted = is_wanted,
	.open = open_server,
	.do_periodic_work = do_periodic_work,
	.count = count,
	.close = close_server,
};
