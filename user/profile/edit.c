// SPDX-License-Identifier: Apache-2.0
/* Copies a profile into another, filtered, merged and anonymized. */
#include "profile/edit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "profile/edit_internal.h"
#include "profile/idle.h"
#include "base/array.h"

int profile_edit_add_pid(struct profile_edit_pids *pids, int32_t pid)
{
	if (array_reserve(&pids->items, &pids->room, pids->count + 1, sizeof(*pids->items)))
		return -ENOMEM;
	pids->items[pids->count++] = pid;
	return 0;
}

int profile_edit_add_text(struct profile_edit_texts *texts, const char *text)
{
	if (array_reserve(&texts->items, &texts->room, texts->count + 1, sizeof(*texts->items)))
		return -ENOMEM;
	texts->items[texts->count++] = text;
	return 0;
}

void profile_edit_free(struct profile_edit *edit)
{
	free(edit->pids.items);
	free(edit->threads.items);
	free(edit->containers.items);
	free(edit->services.items);
	free(edit->versions.items);
	free(edit->focus.items);
	free(edit->ignore.items);
	free(edit->hide.items);
	free(edit->own_paths.items);
	*edit = (struct profile_edit){.under = NULL};
}

int profile_edit_check(struct profile_edit *edit, struct error *error)
{
	if (edit->anonymize && getrandom(edit->salt, sizeof(edit->salt), 0) != (ssize_t)sizeof(edit->salt))
		return error_set(error, -EIO, "cannot draw a random number to hash names with: %s", strerror(errno));
	return edit_check_patterns(edit, error);
}

static uint32_t *new_map(size_t count)
{
	uint32_t *map = malloc((count ? count : 1) * sizeof(*map));

	for (size_t i = 0; map && i < count; i++)
		map[i] = PROFILE_NONE;
	return map;
}

static int begin(struct edit *e)
{
	size_t samples;

	profile_samples(e->from, &samples);
	e->frames = new_map(profile_frame_count(e->from));
	e->stacks = new_map(profile_stack_count(e->from));
	e->processes = new_map(profile_process_count(e->from));
	e->threads = new_map(profile_thread_count(e->from));
	e->samples = new_map(samples);
	e->wanted = calloc(profile_stack_count(e->from), sizeof(*e->wanted));
	if (e->edit->fold_idle)
		e->idle = profile_idle_stacks(e->from);
	return e->frames && e->stacks && e->processes && e->threads && e->samples && e->wanted &&
			       (e->idle || !e->edit->fold_idle)
		       ? 0
		       : -ENOMEM;
}

static void end(struct edit *e)
{
	free(e->matches);
	free(e->frames);
	free(e->stacks);
	free(e->processes);
	free(e->threads);
	free(e->samples);
	free(e->wanted);
	free(e->idle);
}

/* Returns whether the profile is empty, so that it can take the measure and roots of another. */
static bool is_empty(const struct profile *p)
{
	size_t samples, account, facts;

	profile_samples(p, &samples);
	profile_account_entries(p, &account);
	profile_facts(p, &facts);
	return !samples && !account && !facts;
}

static int take_measure(struct edit *e, struct error *error)
{
	struct profile_measure to = profile_get_measure(e->to), from = profile_get_measure(e->from);

	if (is_empty(e->to)) {
		profile_set_roots(e->to, profile_wanted_roots(e->from));
		return profile_set_measure(e->to, &from);
	}
	profile_set_roots(e->to, profile_wanted_roots(e->to) | profile_wanted_roots(e->from));
	if (strcmp(to.name, from.name) != 0 || strcmp(to.unit, from.unit) != 0)
		return error_set(error, -EINVAL, "one has %s in %s, the other %s in %s", to.name, to.unit, from.name,
				 from.unit);
	if (to.period_ns != from.period_ns) {
		return error_set(
			error, -EINVAL,
			"one of the %s stands for %.3f ms of CPU time in one, for %.3f ms in the other; profiles of "
			"one rate can be added up",
			to.name, (double)to.period_ns / 1e6, (double)from.period_ns / 1e6);
	}
	return 0;
}

/* Checks that the sum of all values, times the period, stays in the range that the formats can write. */
static int check_sum(const struct edit *e)
{
	uint64_t period = profile_get_measure(e->from).period_ns ?: 1, sum = profile_total(e->to), time;

	if (__builtin_add_overflow(sum, profile_total(e->from), &sum) || __builtin_mul_overflow(sum, period, &time) ||
	    time > INT64_MAX)
		return -EOVERFLOW;
	return 0;
}

/* Adds the time by state of the samples that pass to the account, if their values are time of threads. */
static int add_states(struct edit *e, const bool *passes)
{
	const bool timed = strcmp(profile_get_measure(e->from).unit, PROFILE_UNIT_TIME) == 0;
	size_t count;
	const struct profile_sample *samples = profile_samples(e->from, &count);
	int err = 0;

	for (size_t i = 0; i < count && timed && !err; i++) {
		uint32_t state = profile_state_of(e->from, samples[i].stack);
		const char *name = state ? profile_string(e->from, state) : PROFILE_STATE_RUNNING;
		uint64_t ns;

		if (!passes[i] || strcmp(name, PROFILE_STATE_SUSPENDED) == 0)
			continue;
		if (__builtin_mul_overflow(samples[i].value, 1000, &ns))
			return -EOVERFLOW;
		err = profile_add_account(e->to, PROFILE_ACCOUNT_STATES, name, name, ns);
	}
	return err;
}

/* Adds the account and the facts of the run. left_out: the value of the samples that do not pass. */
static int describe(struct edit *e, const bool *passes, uint64_t left_out)
{
	int err = edit_add_account(e->to, e->from, left_out != 0);

	if (!err && left_out)
		err = add_states(e, passes)
			      ?: profile_add_account(e->to, PROFILE_ACCOUNT_LEFT_OUT, "filters",
						     "that the filters did not let pass", left_out);
	return err ?: edit_add_facts(e->to, e->from, e->edit);
}

static int copy(struct edit *e)
{
	uint64_t left_out = 0, to_start = edit_start_of(e->to);
	bool *passes;
	size_t count;
	int err = check_sum(e) ?: begin(e);

	if (err)
		return err;
	profile_samples(e->from, &count);
	passes = calloc(count ? count : 1, sizeof(*passes));
	if (!passes)
		return -ENOMEM;
	edit_choose_samples(e, passes, &left_out);
	err = edit_copy_stacks(e) ?: edit_copy_samples(e, passes) ?: edit_copy_events(e, to_start);
	if (!err && !e->edit->anonymize && !e->edit->no_sources)
		err = edit_copy_sources(e);
	if (!err && !e->edit->no_account)
		err = describe(e, passes, left_out);
	free(passes);
	return err;
}

int profile_edit_add(struct profile *to, const struct profile *from, const struct profile_edit *edit,
		     struct error *error)
{
	static const struct profile_edit all = {.under = NULL};
	struct edit e = {.to = to, .from = from, .edit = edit ?: &all};
	int err;

	error_clear(error);
	err = take_measure(&e, error) ?: edit_match_stacks(from, e.edit, &e.matches, error);
	err = err ?: copy(&e);
	end(&e);
	if (err && !error->code)
		error_set(error, err, "%s",
			  err == -ENOMEM ? "out of memory" : "their numbers, or the time between them, are too large");
	return err;
}

int profile_copy_stacks(struct profile *to, const struct profile *from, bool *wanted, uint32_t *copied)
{
	static const struct profile_edit all = {.under = NULL};
	struct edit_match *matches = calloc(profile_stack_count(from), sizeof(*matches));
	struct edit e = {.to = to,
			 .from = from,
			 .edit = &all,
			 .matches = matches,
			 .frames = new_map(profile_frame_count(from)),
			 .stacks = copied,
			 .wanted = wanted};
	int err = e.frames && matches ? 0 : -ENOMEM;

	/* A parent has a smaller index than its children. */
	for (uint32_t i = profile_stack_count(from); i-- > 1;) {
		if (wanted[i])
			wanted[profile_stack_at(from, i)->parent] = true;
	}
	err = err ?: edit_copy_stacks(&e);
	free(matches);
	free(e.frames);
	return err;
}
