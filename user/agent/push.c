// SPDX-License-Identifier: Apache-2.0
/* The sink that sends each epoch to receivers: OpenTelemetry's, Pyroscope's, and those that take pprof. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/internal.h"
#include "base/clock.h"
#include "base/log.h"
#include "profile/largest.h"

/*
 * Limit of the CPU time for making the requests of all modes of an epoch, during which samples wait in the kernel: a
 * share of the epoch's length, but no less than some seconds.
 */
#define BUDGET_SHARE   0.02
#define BUDGET_LEAST_S 0.25
#define NS_PER_DAY     UINT64_C(86400000000000)
/* Seconds for which the agent waits at its end until all is sent; the rest is lost, or stays in the spool. */
#define END_S       10.0
#define END_SPOOL_S 2.0

static const struct {
	enum push_protocol protocol;
	const char *name; /* of its folder below the spool's */
} kinds[AGENT_RECEIVERS] = {
	{PUSH_OTLP, "otlp"},
	{PUSH_PYROSCOPE, "pyroscope"},
	{PUSH_PPROF, "pprof"},
};

/* Why requests are lost, as the end of a sentence. */
static const char *const causes[PUSH_CAUSES] = {
	[PUSH_QUEUE_FULL] = "newer ones took their place in memory; --spool keeps them on the disk",
	[PUSH_SPOOL_FULL] = "newer ones took their place in the spool; --spool-size makes it larger",
	[PUSH_SPOOL_ERROR] = "the spool did not take them, or was damaged",
	[PUSH_GIVEN_UP] = "the receiver could not be reached for too long; --spool keeps them on the disk",
	[PUSH_REFUSED] = "the receiver refused them",
	[PUSH_NOT_TRUSTED] = "a certificate was not trusted",
	[PUSH_CRASHED] = "the process that sends ended by a signal while it had them",
	[PUSH_ENDED] = "no time was left for them, or the process that sends is gone",
};

/* An epoch on its way to a receiver. */
struct sending {
	struct agent *agent;
	size_t receiver;
	double until_s; /* of this process's CPU time */
};

static bool is_wanted(const struct agent_options *options)
{
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		if (options->push.urls[i])
			return true;
	}
	return false;
}

/* The URL without its query, which may be secret. */
#define SHOWN(a, i) (int)strcspn((a)->options.push.urls[i], "?"), (a)->options.push.urls[i]

/* Pyroscope's labels have names of letters, digits and underscores, and do not begin with a digit. */
static int make_pyroscope_labels(struct agent *a)
{
	for (size_t i = 0; i < a->options.push.nr_labels; i++) {
		const struct output_label *label = &a->options.push.labels[i];
		char *key = NULL;

		if (asprintf(&key, "%s%s", label->key[0] >= '0' && label->key[0] <= '9' ? "_" : "", label->key) < 0)
			return -ENOMEM;
		for (char *c = key; *c; c++)
			*c = (char)(isalnum((unsigned char)*c) && !(*c & 0x80) ? *c : '_');
		a->pyroscope_labels[i] = (struct output_label){key, label->value};
	}
	return 0;
}

static int open_receiver(struct agent *a, size_t i, struct error *error)
{
	const struct agent_push_options *options = &a->options.push;
	struct push_options one = options->common;
	char spool[PATH_MAX];
	int length = 0;

	one.url = options->urls[i];
	if (one.spool) {
		length = snprintf(spool, sizeof(spool), "%s/%s", options->common.spool, kinds[i].name);
		one.spool = spool;
	}
	if (length >= (int)sizeof(spool))
		return error_set(error, -ENAMETOOLONG, "cannot use the spool folder %s: %s", options->common.spool,
				 strerror(ENAMETOOLONG));
	return push_start(&one, &a->receivers[i].push, error);
}

static int open_receivers(struct agent *a, struct error *error)
{
	int err = a->options.push.common.spool ? agent_make_folder(a->options.push.common.spool, error) : 0;

	if (!err && make_pyroscope_labels(a))
		err = error_set(error, -ENOMEM, "out of memory while starting");
	for (size_t i = 0; i < AGENT_RECEIVERS && !err; i++)
		err = a->options.push.urls[i] ? open_receiver(a, i, error) : 0;
	return err;
}

static void set_labels(void *arg, const struct profile *p, uint32_t process, struct otlp_resource *resource)
{
	const struct agent_push_options *options = arg;

	(void)p;
	(void)process;
	for (size_t i = 0; i < options->nr_labels; i++)
		otlp_resource_set(resource, options->labels[i].key, options->labels[i].value);
}

static bool has_time(void *arg)
{
	const struct sending *s = arg;

	return clock_s(CLOCK_PROCESS_CPUTIME_ID) < s->until_s;
}

/* Sends a service's profile to Pyroscope. */
static int send_service(void *arg, const struct agent_service *service)
{
	struct sending *s = arg;
	const struct agent *a = s->agent;
	struct output_label labels[AGENT_LABELS_MAX + 1];
	size_t count = a->options.push.nr_labels;

	memcpy(labels, a->pyroscope_labels, count * sizeof(*labels));
	if (*service->container)
		labels[count++] = (struct output_label){"container", service->container};
	return push_profile(a->receivers[s->receiver].push, service->profile,
			    &(struct push_profile){.protocol = PUSH_PYROSCOPE,
						   .v1 = push_is_v1(a->options.push.urls[s->receiver]),
						   .service = service->name,
						   .labels = labels,
						   .nr_labels = count,
						   .has_time = has_time,
						   .has_time_arg = s,
						   .left = service->left});
}

/* Makes requests of an epoch and hands them over. Returns 0 or negative errno; *left: values that were not. */
static int send_epoch(struct sending *s, const struct agent_epoch *epoch, uint64_t *left)
{
	struct agent *a = s->agent;
	uint32_t *from = &a->receivers[s->receiver].from[epoch->part - a->parts];
	const struct push_profile how = {
		.protocol = kinds[s->receiver].protocol,
		.describe = set_labels,
		.describe_arg = &a->options.push,
		.labels = a->options.push.labels,
		.nr_labels = a->options.push.nr_labels,
		.has_time = has_time,
		.has_time_arg = s,
		.left = left,
		.from = from,
	};

	if (how.protocol == PUSH_PYROSCOPE)
		return agent_each_service(epoch->profile, from, send_service, has_time, s, left);
	return push_profile(a->receivers[s->receiver].push, epoch->profile, &how);
}

/* Says what was lost since it was last said: a line for each cause. */
static void tell_lost(const struct agent *a, size_t i, const struct push_counts *now)
{
	const struct push_counts *reported = &a->receivers[i].reported;

	for (int cause = 0; cause < PUSH_CAUSES; cause++) {
		if (now->dropped[cause] > reported->dropped[cause])
			log_warn("requests lost on the way to %.*s: %" PRIu64 "; %s", SHOWN(a, i),
				 now->dropped[cause] - reported->dropped[cause], causes[cause]);
	}
	if (now->restarts > reported->restarts)
		log_warn("the process that sends to %.*s ended by a signal, and was restarted", SHOWN(a, i));
}

/* Returns 0, or -EPIPE after reporting that nothing can be sent any more. */
static int look_at(struct agent *a, size_t i)
{
	struct agent_receiver *receiver = &a->receivers[i];
	struct push_counts now;
	bool was_gone = receiver->reported.gone;

	push_count(receiver->push, &now);
	tell_lost(a, i, &now);
	receiver->reported = now;
	if (now.gone && !was_gone)
		log_error("the process that sends to %.*s has ended: nothing can be sent any more", SHOWN(a, i));
	return now.gone ? -EPIPE : 0;
}

/* Says why no request could be made. */
static const char *why_unmade(int err)
{
	if (err == -ETIME)
		return "making the requests took too much CPU time; choose longer epochs";
	if (err == -E2BIG)
		return "the name with its labels is too long, or the profile is too large";
	return strerror(-err);
}

static void tell_unmade(const struct agent *a, size_t i, const struct profile *epoch, uint64_t left, int err)
{
	const struct profile_measure measure = profile_get_measure(epoch);
	const bool is_time = strcmp(measure.unit, PROFILE_UNIT_TIME) == 0;

	log_error("%" PRIu64 " of an epoch's %" PRIu64 " %s cannot be sent to %.*s: %s", left, profile_total(epoch),
		  is_time ? measure.unit : measure.name, SHOWN(a, i), why_unmade(err));
}

static int take_one(struct agent *a, size_t i, const struct agent_epoch *epoch)
{
	double budget_s = (double)epoch->length_ns / 1e9 * BUDGET_SHARE / (double)a->nr_parts;
	struct sending s = {.agent = a, .receiver = i};
	uint64_t left = 0;
	int err;

	budget_s = budget_s > BUDGET_LEAST_S ? budget_s : BUDGET_LEAST_S;
	s.until_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) + budget_s;
	err = send_epoch(&s, epoch, &left);
	/* Those that were made for a process that is gone are counted as requests. */
	if (err && err != -EPIPE) {
		a->receivers[i].unmade[epoch->part - a->parts] += left;
		tell_unmade(a, i, epoch->profile, left, err);
	}
	return look_at(a, i);
}

/* Says once a day whether this host sends, if only some do. Returns whether it does. */
static bool is_chosen(struct agent *a, const struct agent_epoch *epoch)
{
	const double share = a->options.push.hosts_share;
	const char *host = profile_find_fact(epoch->profile, PROFILE_FACT_HOST);
	const bool chosen = !share || agent_host_is_chosen(share, host ?: "", epoch->begin_ns);
	const uint64_t day = 1 + epoch->begin_ns / NS_PER_DAY;

	if (share && a->chosen_day != day)
		log_warn("--hosts-share %g: today (UTC) this host %s", share,
			 chosen ? "sends its profiles" : "sends none; other hosts do");
	a->chosen_day = day;
	a->metrics.sends = chosen;
	epoch->part->metrics->unsent += !chosen;
	return chosen;
}

static int send_to_each(struct agent *a, const struct agent_epoch *epoch)
{
	int err = 0;

	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		if (a->receivers[i].push && take_one(a, i, epoch))
			err = -EPIPE;
	}
	return err;
}

/* Says what became of earlier epochs. */
static int look_at_each(struct agent *a)
{
	int err = 0;

	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		if (a->receivers[i].push && look_at(a, i))
			err = -EPIPE;
	}
	return err;
}

static int take(struct agent *a, const struct agent_epoch *epoch)
{
	struct agent_epoch sent = *epoch;
	struct profile *largest = NULL;
	int err;

	if (!is_chosen(a, epoch))
		return look_at_each(a);
	if (a->options.push.top_stacks)
		largest = profile_keep_largest(epoch->profile, a->options.push.top_stacks);
	if (a->options.push.top_stacks && !largest)
		log_warn("all stacks of an epoch are sent, whatever --top-stacks says: there is no memory to choose "
			 "the largest");
	sent.profile = largest ?: epoch->profile;
	err = send_to_each(a, &sent);
	profile_free(largest);
	return err;
}

static int do_periodic_work(struct agent *a)
{
	struct push_counts now;

	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		if (!a->receivers[i].push)
			continue;
		push_count(a->receivers[i].push, &now);
		if (now.gone)
			return look_at(a, i);
	}
	return 0;
}

static void count(const struct agent *a, struct agent_metrics *metrics)
{
	for (size_t i = 0; i < AGENT_RECEIVERS; i++) {
		memcpy(metrics->push[i].unmade, a->receivers[i].unmade, sizeof(metrics->push[i].unmade));
		if (a->receivers[i].push)
			push_count(a->receivers[i].push, &metrics->push[i].counts);
	}
}

static void close_receiver(struct agent *a, size_t i, double seconds)
{
	struct push_counts last;

	if (!a->receivers[i].push)
		return;
	push_end(&a->receivers[i].push, seconds > 0 ? seconds : 0, &last);
	tell_lost(a, i, &last);
	if (last.spooled)
		log_warn("requests to %.*s that wait in %s/%s: %" PRIu64 "; they are sent after the next start",
			 SHOWN(a, i), a->options.push.common.spool, kinds[i].name, last.spooled);
}

static void close_receivers(struct agent *a)
{
	const double until = clock_s(CLOCK_MONOTONIC) + (a->options.push.common.spool ? END_SPOOL_S : END_S);

	for (size_t i = 0; i < AGENT_RECEIVERS; i++)
		close_receiver(a, i, until - clock_s(CLOCK_MONOTONIC));
	for (size_t i = 0; i < AGENT_LABELS_MAX; i++) {
		free((char *)a->pyroscope_labels[i].key);
		a->pyroscope_labels[i].key = NULL;
	}
}

const struct agent_sink agent_push_sink = {
	.name = "push",
	.is_wanted = is_wanted,
	.open = open_receivers,
	.take = take,
	.do_periodic_work = do_periodic_work,
	.count = count,
	.close = close_receivers,
};
