// SPDX-License-Identifier: Apache-2.0
/* Tells the time of threads from the end of one epoch to that of the next. */
#include "session/waits/carry_over.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/beyond.h"

void session_ahead_free(struct session_ahead *ahead)
{
	session_parts_free(&ahead->reported);
	*ahead = (struct session_ahead){.end_ns = 0};
}

void session_ahead_forget_process(struct session_ahead *ahead, uint64_t proc_id)
{
	struct session_parts *reported = &ahead->reported;
	size_t kept = 0;

	for (size_t i = 0; i < reported->count; i++) {
		if (reported->items[i].key.thread.proc_id != proc_id)
			reported->items[kept++] = reported->items[i];
	}
	reported->count = kept;
}

static int compare(const struct pybpf_thread_key *one, const struct pybpf_thread_key *other)
{
	return memcmp(one, other, sizeof(*one));
}

static int compare_threads(const void *a, const void *b)
{
	const struct pybpf_thread *one = a, *other = b;

	return compare(&one->id, &other->id);
}

void session_ahead_sort(struct pybpf_thread *threads, size_t count)
{
	if (count)
		qsort(threads, count, sizeof(*threads), compare_threads);
}

/* The parts of one thread, from the first one on. */
struct some {
	struct session_part *parts;
	size_t count;
};

/* All that is known of one thread. */
struct one {
	struct some ended, reported;
	const struct pybpf_thread *lives; /* NULL: it does not */
};

struct settling {
	struct session_ahead *ahead;
	const struct session_ahead_news *news;
	struct session_parts reported; /* ahead, from now on */
	size_t ended, before, thread;  /* places of the next ones: in news, in ahead->reported, in news */
	int (*tell)(const struct session_part *part, void *arg);
	void *arg;
};

static struct some some_of(const struct session_parts *parts, size_t at)
{
	return (struct some){parts->items + at, session_parts_of_one(parts->items + at, parts->count - at)};
}

static bool is_of(const struct some *some, const struct pybpf_thread_key *thread)
{
	return some->count && !compare(&some->parts->key.thread, thread);
}

/* Finds the next thread in the order of all three lists. Returns false when there is none. */
static bool find_next(struct settling *s, struct one *one)
{
	const struct session_ahead_news *news = s->news;
	const struct pybpf_thread *lives = s->thread < news->nr_threads ? &news->threads[s->thread] : NULL;
	const struct some ended = some_of(&news->ended, s->ended), reported = some_of(&s->ahead->reported, s->before);
	struct pybpf_thread_key least = {0}, of;
	bool any = false;

	for (int i = 0; i < 3; i++) {
		if (i == 0 ? !ended.count : i == 1 ? !reported.count : !lives)
			continue;
		of = i == 0 ? ended.parts->key.thread : i == 1 ? reported.parts->key.thread : lives->id;
		if (!any || compare(&of, &least) < 0)
			least = of;
		any = true;
	}
	if (!any)
		return false;
	*one = (struct one){.lives = lives && !compare(&lives->id, &least) ? lives : NULL};
	if (is_of(&ended, &least))
		one->ended = ended;
	if (is_of(&reported, &least))
		one->reported = reported;
	s->ended += one->ended.count;
	s->before += one->reported.count;
	s->thread += one->lives != NULL;
	return true;
}

/* Returns whether the thread has ended, or goes on as another program: all its time on a CPU is in the kernel's map. */
static bool has_ended(const struct some *ended)
{
	for (size_t i = 0; i < ended->count; i++) {
		if (ended->parts[i].key.wait_id == PYBPF_WAIT_ID(PYBPF_STATE_RUNNING))
			return true;
	}
	return false;
}

static int tell_all(const struct settling *s, struct session_part *parts, size_t count)
{
	int err = 0;

	for (size_t i = 0; i < count && !err; i++) {
		if (parts[i].time.ns || parts[i].time.count ||
		    parts[i].key.wait_id == PYBPF_WAIT_ID(PYBPF_STATE_RUNNING))
			err = s->tell(&parts[i], s->arg);
	}
	return err;
}

/* Notes what is reported ahead of the kernel. That a thread lives is known by its time on a CPU, also if that is 0. */
static int note_reported(struct settling *s, const struct session_part present[SESSION_PRESENTS])
{
	int err = 0;

	for (int i = 0; i < SESSION_PRESENTS && !err; i++) {
		if (present[i].time.ns || i == SESSION_PRESENT_RUNS)
			err = session_parts_add(&s->reported, &present[i].key, &present[i].time);
	}
	return err;
}

/* The thread lives: its time is reported up to the end of the epoch. */
static int settle_living(struct settling *s, struct one *one)
{
	const uint64_t end_ns = s->news->end_ns, begin_ns = one->lives->begin_ns;
	/* One that was reported before has all of its time until then in what was reported. */
	const uint64_t since_ns = one->reported.count && s->ahead->end_ns > begin_ns ? s->ahead->end_ns : begin_ns;
	const uint64_t known_ns = session_parts_sum(one->ended.parts, one->ended.count) + one->lives->running_ns;
	const uint64_t life_ns = beyond(end_ns, since_ns) + session_parts_sum(one->reported.parts, one->reported.count);
	struct session_part present[SESSION_PRESENTS], rest[SESSION_PRESENTS];
	int err;

	session_parts_of_thread(one->lives, end_ns, s->news->min_block_ns, present);
	session_parts_fit(present, one->lives->running_ns, beyond(life_ns, known_ns));
	err = note_reported(s, present);
	memcpy(rest, present, sizeof(rest));
	session_parts_take_off(one->ended.parts, one->ended.count, rest, SESSION_PRESENTS, one->reported.parts,
			       one->reported.count);
	return err ?: tell_all(s, one->ended.parts, one->ended.count) ?: tell_all(s, rest, SESSION_PRESENTS);
}

static int settle_one(struct settling *s, struct one *one)
{
	bool ended = has_ended(&one->ended);
	int err = 0;

	if (one->lives && s->news->end_ns && !ended)
		return settle_living(s, one);
	session_parts_take_off(one->ended.parts, one->ended.count, NULL, 0, one->reported.parts, one->reported.count);
	/* No epoch ends, and others are reported when it does. */
	for (size_t i = 0; i < one->reported.count && !s->news->end_ns && !ended && !err; i++)
		err = session_parts_add(&s->reported, &one->reported.parts[i].key, &one->reported.parts[i].time);
	return err ?: tell_all(s, one->ended.parts, one->ended.count);
}

int session_ahead_settle(struct session_ahead *ahead, struct session_ahead_news *news,
			 int (*tell)(const struct session_part *part, void *arg), void *arg)
{
	struct settling s = {.ahead = ahead, .news = news, .tell = tell, .arg = arg};
	struct one one;
	int err = 0;

	session_parts_sort(&news->ended);
	while (!err && find_next(&s, &one))
		err = settle_one(&s, &one);
	session_parts_free(&ahead->reported);
	ahead->reported = s.reported;
	if (news->end_ns)
		ahead->end_ns = news->end_ns;
	return err;
}
