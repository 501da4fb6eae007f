// SPDX-License-Identifier: Apache-2.0
/* Takes the profile of an epoch apart into those of its services. */
#include <errno.h>
#include <stdlib.h>

#include "agent/internal.h"
#include "profile/edit.h"

struct split {
	const struct profile *profile;
	uint64_t *totals; /* by process: of its values that were not handed over yet */
	bool *chosen;     /* by process: of the service that is handed over */
};

/* Adds up the values of stacks with frames, which alone are sent. */
static void add_totals(struct split *s)
{
	size_t count;
	const struct profile_sample *samples = profile_samples(s->profile, &count);

	for (size_t i = 0; i < count; i++)
		s->totals[samples[i].process] += samples[i].stack == PROFILE_ROOT ? 0 : samples[i].value;
}

/* Chooses the processes of one's service and container. Returns the sum of their values. */
static uint64_t choose(struct split *s, uint32_t first)
{
	const struct profile_process *one = profile_process_at(s->profile, first);
	uint64_t total = 0;

	for (uint32_t i = 0; i < profile_process_count(s->profile); i++) {
		const struct profile_process *other = profile_process_at(s->profile, i);

		s->chosen[i] = s->totals[i] && other->service == one->service && other->container == one->container;
		if (!s->chosen[i])
			continue;
		total += s->totals[i];
		s->totals[i] = 0;
	}
	return total;
}

/* Returns the sum of the values that were not handed over yet. */
static uint64_t sum_totals(const struct split *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < profile_process_count(s->profile); i++)
		sum += s->totals[i];
	return sum;
}

static int copy_fact(struct profile *to, const struct profile *from, const char *key)
{
	const char *value = profile_find_fact(from, key);

	return value ? profile_set_fact(to, key, value) : 0;
}

/* Makes the profile of the chosen processes. Returns NULL without memory. */
static struct profile *copy_chosen(const struct split *s)
{
	static const char *const facts[] = {PROFILE_FACT_VERSION, PROFILE_FACT_HOST, PROFILE_FACT_START,
					    PROFILE_FACT_DURATION};
	const struct profile_edit edit = {.no_account = true, .no_sources = true, .processes = s->chosen};
	struct profile *part = profile_new();
	struct error error;
	int err = part ? profile_edit_add(part, s->profile, &edit, &error) : -ENOMEM;

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts) && !err; i++)
		err = copy_fact(part, s->profile, facts[i]);
	if (!err)
		return part;
	profile_free(part);
	return NULL;
}

static int hand_over(const struct split *s, uint32_t process,
		     int (*take)(void *arg, const struct agent_service *service), void *arg, uint64_t *left)
{
	const struct profile_process *one = profile_process_at(s->profile, process);
	struct profile *part = copy_chosen(s);
	struct agent_service service = {
		.profile = part, .container = profile_string(s->profile, one->container), .left = left};
	int err;

	service.name = one->service     ? profile_string(s->profile, one->service)
		       : one->container ? service.container
					: profile_string(s->profile, one->name);
	err = part ? take(arg, &service) : -ENOMEM;
	profile_free(part);
	return err;
}

int agent_each_service(const struct profile *p, uint32_t *from,
		       int (*take)(void *arg, const struct agent_service *service), bool (*goes_on)(void *arg),
		       void *arg, uint64_t *left)
{
	const uint32_t count = profile_process_count(p);
	struct split s = {
		.profile = p,
		.totals = calloc(count + (size_t)1, sizeof(*s.totals)),
		.chosen = calloc(count + (size_t)1, sizeof(*s.chosen)),
	};
	uint32_t begin;
	int err = 0;

	*left = 0;
	if (!s.totals || !s.chosen) {
		*left = profile_total(p);
		err = -ENOMEM;
		goto done;
	}
	add_totals(&s);
	begin = *from;
	for (uint32_t k = 0; k < count; k++) {
		const uint32_t i = (uint32_t)(((uint64_t)begin + k) % count);
		uint64_t total;
		int failed;

		if (!s.totals[i])
			continue;
		if (!goes_on(arg)) {
			*left += sum_totals(&s);
			*from = i;
			err = err ?: -ETIME;
			break;
		}
		total = choose(&s, i);
		failed = hand_over(&s, i, take, arg, &total);
		*left += failed ? total : 0;
		err = err ?: failed;
	}
done:
	free(s.totals);
	free(s.chosen);
	return err;
}
