// SPDX-License-Identifier: Apache-2.0
/* What the session does for each measure that its options want, at each moment of a run. */
#include "session/measure.h"

#include "base/clock.h"
#include "session/run/due.h"
#include "session/internal.h"

void session_measures_ask_kernel(const struct session *s, struct kernel_options *kernel)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->ask_kernel)
			s->measures[i]->ask_kernel(&s->options, kernel);
	}
}

int session_measures_attach(struct session *s)
{
	int err = 0;

	for (size_t i = 0; i < s->nr_measures && !err; i++)
		err = s->measures[i]->attach ? s->measures[i]->attach(s) : 0;
	for (size_t i = 0; i < s->nr_measures && !err; i++)
		err = s->measures[i]->begin ? s->measures[i]->begin(s) : 0;
	return err;
}

void session_measures_end(struct session *s)
{
	for (size_t i = s->nr_measures; i-- > 0;) {
		if (s->measures[i]->end)
			s->measures[i]->end(s);
	}
}

void session_measures_detach(struct session *s)
{
	for (size_t i = s->nr_measures; i-- > 0;) {
		if (s->measures[i]->detach)
			s->measures[i]->detach(s);
	}
}

double session_measures_do_periodic_work(struct session *s)
{
	double next = SESSION_NEVER_S;

	for (size_t i = 0; i < s->nr_measures && next >= 0; i++) {
		double wanted = s->measures[i]->do_periodic_work
					? s->measures[i]->do_periodic_work(s, clock_s(CLOCK_MONOTONIC))
					: next;

		next = wanted < next ? wanted : next;
	}
	return next;
}

bool session_measures_need_records(const struct session *s)
{
	bool need = false;

	for (size_t i = 0; i < s->nr_measures; i++)
		need |= s->measures[i]->needs_records;
	return need;
}

void session_measures_name_frames(struct session *s)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->name_frames)
			s->measures[i]->name_frames(s);
	}
}

int session_measures_add_count(struct session *s, const struct session_counted *counted)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->note_count)
			s->measures[i]->note_count(s, counted);
	}
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->add_count)
			return s->measures[i]->add_count(s, counted);
	}
	return 0;
}

void session_measures_limit_reading(struct session *s)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->limit_reading)
			s->measures[i]->limit_reading(s);
	}
}

double session_measures_estimate_end(const struct session *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->nr_measures; i++)
		sum += s->measures[i]->estimate_end ? s->measures[i]->estimate_end(s) : 0;
	return sum;
}

size_t session_measures_count_times(const struct session *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->nr_measures; i++)
		count += s->measures[i]->count_times ? s->measures[i]->count_times(s) : 0;
	return count;
}

void session_measures_describe(const struct session *s, const struct session_account *account,
			       struct profile_measure *values)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (!s->measures[i]->describe)
			continue;
		s->measures[i]->describe(s, account, values);
		return;
	}
}

int session_measures_settle(struct session *s, const struct session_due *due)
{
	int err = 0;

	for (size_t i = 0; i < s->nr_measures && !err; i++)
		err = s->measures[i]->settle ? s->measures[i]->settle(s, due) : 0;
	return err;
}

int session_measures_settle_epoch(struct session *s)
{
	const struct session_due due = {.epoch = true};
	int err = 0;

	for (size_t i = 0; i < s->nr_measures && !err; i++)
		err = s->measures[i]->in_epochs ? s->measures[i]->settle(s, &due) : 0;
	return err;
}

int session_measures_prepare_epoch(struct session *s)
{
	int err = 0;

	for (size_t i = 0; i < s->nr_measures && !err; i++)
		err = s->measures[i]->prepare_epoch ? s->measures[i]->prepare_epoch(s) : 0;
	return err;
}

int session_measures_keep_stacks(struct session *s, struct intern *ids)
{
	int err = 0;

	for (size_t i = 0; i < s->nr_measures && !err; i++)
		err = s->measures[i]->keep_stacks ? s->measures[i]->keep_stacks(s, ids) : 0;
	return err;
}

void session_measures_forget_process(struct session *s, uint64_t proc_id)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->forget_process)
			s->measures[i]->forget_process(s, proc_id);
	}
}

void session_measures_forget_samples(struct session *s)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->forget_samples)
			s->measures[i]->forget_samples(s);
	}
}

void session_measures_forget_frames(struct session *s)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->forget_frames)
			s->measures[i]->forget_frames(s);
	}
}

void session_measures_tell(const struct session *s, struct session_account *account)
{
	for (size_t i = 0; i < s->nr_measures; i++) {
		if (s->measures[i]->tell)
			s->measures[i]->tell(s, account);
	}
}
