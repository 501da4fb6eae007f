// SPDX-License-Identifier: Apache-2.0
/* Splits a thread's time at the end of an epoch. */
#include "session/waits/time_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/beyond.h"

void session_parts_free(struct session_parts *parts)
{
	free(parts->items);
	*parts = (struct session_parts){0};
}

int session_parts_add(struct session_parts *parts, const struct pybpf_wait_key *key, const struct pybpf_wait_time *time)
{
	if (array_reserve(&parts->items, &parts->room, parts->count + 1, sizeof(*parts->items)))
		return -ENOMEM;
	parts->items[parts->count++] = (struct session_part){.key = *key, .time = *time};
	return 0;
}

static int compare_threads(const void *a, const void *b)
{
	const struct session_part *one = a, *other = b;
	const struct pybpf_thread_key of = one->key.thread, than = other->key.thread;

	return memcmp(&of, &than, sizeof(of));
}

void session_parts_sort(struct session_parts *parts)
{
	if (parts->count)
		qsort(parts->items, parts->count, sizeof(*parts->items), compare_threads);
}

size_t session_parts_of_one(const struct session_part *parts, size_t count)
{
	size_t n = 0;

	while (n < count && !compare_threads(&parts[0], &parts[n]))
		n++;
	return n;
}

uint64_t session_parts_sum(const struct session_part *parts, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += parts[i].time.ns;
	return sum;
}

/* Returns the time of the wait in which the thread is, without what comes after it was woken: *queued. */
static uint64_t split_at_waking(const struct pybpf_thread *thread, uint64_t end_ns, uint64_t *queued)
{
	uint64_t left = beyond(end_ns, thread->since_ns);

	*queued = 0;
	/* When a thread that runs was woken last is of no matter, and may be when it began to run. */
	if (thread->state != PYBPF_STATE_RUNNING && !pybpf_state_is_ready(thread->state) &&
	    thread->woken_ns >= thread->since_ns && thread->woken_ns < end_ns)
		*queued = end_ns - thread->woken_ns;
	return left - *queued;
}

/* The sleeps of a wait for the GIL that the kernel side has kept, as add_gil_sleeps() of wait_time.bpf.h adds them. */
static void set_gil_sleeps(struct session_part *part, const struct pybpf_thread *thread, uint64_t min_block_ns)
{
	uint64_t earlier = beyond(thread->gil_waited_ns, thread->gil_ns);

	part->key = thread->gil_key;
	part->time = (struct pybpf_wait_time){
		.count = !earlier, .ns = thread->gil_ns, .longest_ns = earlier + thread->gil_ns};
	/* How long one is that goes on is not known. */
	if (thread->state == PYBPF_STATE_GIL || thread->gil_waited_ns >= min_block_ns)
		return;
	part->key = (struct pybpf_wait_key){
		.stack_id = PYBPF_STACK_ID_SHORT, .thread = thread->id, .wait_id = PYBPF_WAIT_ID(PYBPF_STATE_GIL)};
}

void session_parts_of_thread(const struct pybpf_thread *thread, uint64_t end_ns, uint64_t min_block_ns,
			     struct session_part present[SESSION_PRESENTS])
{
	const struct pybpf_wait_key key = {.stack_id = thread->stack_id,
					   .thread = thread->id,
					   .wait_id = thread->wait_id,
					   .holder_stack_id = thread->holder_stack_id};
	const bool runs = thread->state == PYBPF_STATE_RUNNING, gil = thread->state == PYBPF_STATE_GIL;
	uint64_t queued, left = split_at_waking(thread, end_ns, &queued);

	for (int i = 0; i < SESSION_PRESENTS; i++)
		present[i] = (struct session_part){.key = key};
	present[SESSION_PRESENT_RUNS].key.stack_id = 0;
	present[SESSION_PRESENT_RUNS].key.holder_stack_id = 0;
	present[SESSION_PRESENT_RUNS].key.wait_id = PYBPF_WAIT_ID(PYBPF_STATE_RUNNING);
	present[SESSION_PRESENT_RUNS].time.ns = thread->running_ns + (runs ? left : 0);
	if (thread->gil_ns)
		set_gil_sleeps(&present[SESSION_PRESENT_GIL], thread, min_block_ns);
	if (runs)
		return;
	present[SESSION_PRESENT_STATE].time = (struct pybpf_wait_time){
		.count = !gil || !thread->gil_waited_ns,
		.ns = left,
		.longest_ns = left + (gil ? thread->gil_waited_ns : 0),
	};
	present[SESSION_PRESENT_READY].key.wait_id = thread->ready_id | (thread->wait_id & PYBPF_WAIT_WITH_GIL);
	present[SESSION_PRESENT_READY].key.holder_stack_id = 0;
	present[SESSION_PRESENT_READY].time = (struct pybpf_wait_time){.count = 1, .ns = queued, .longest_ns = queued};
}

void session_parts_fit(struct session_part present[SESSION_PRESENTS], uint64_t ran_ns, uint64_t left_ns)
{
	for (int i = 0; i < SESSION_PRESENTS; i++) {
		struct pybpf_wait_time *time = &present[i].time;
		uint64_t fixed = i == SESSION_PRESENT_RUNS ? ran_ns : 0, more = beyond(time->ns, fixed);

		more = more < left_ns ? more : left_ns;
		left_ns -= more;
		time->ns = fixed + more;
		if (!time->ns)
			time->count = 0;
	}
}

/* Ways in which a part is of the wait that was counted ahead, the surest one first. */
enum likeness {
	SAME_WAIT,
	SAME_STACK,
	SAME_STATE,
	ANY_WAIT,
	LIKENESSES
};

static bool is_like(const struct pybpf_wait_key *one, const struct pybpf_wait_key *other, enum likeness likeness)
{
	const bool state = PYBPF_WAIT_STATE_OF(one->wait_id) == PYBPF_WAIT_STATE_OF(other->wait_id);

	switch (likeness) {
	case SAME_WAIT:
		return !memcmp(one, other, sizeof(*one));
	case SAME_STACK:
		return state && one->stack_id == other->stack_id;
	case SAME_STATE:
		return state;
	default:
		return true;
	}
}

static void take_off(struct session_part *part, struct pybpf_wait_time *ahead)
{
	uint64_t ns = ahead->ns < part->time.ns ? ahead->ns : part->time.ns;

	part->time.ns -= ns;
	ahead->ns -= ns;
	if (part->time.count && ahead->count) {
		part->time.count--;
		ahead->count--;
	}
}

/* Takes off parts that are as like. Returns whether nothing is left to take off. */
static bool take_off_like(struct session_part *parts, size_t count, const struct pybpf_wait_key *key,
			  enum likeness likeness, struct pybpf_wait_time *left)
{
	for (size_t i = 0; i < count && (left->ns || left->count); i++) {
		if (is_like(&parts[i].key, key, likeness))
			take_off(&parts[i], left);
	}
	return !left->ns && !left->count;
}

void session_parts_take_off(struct session_part *ended, size_t nr_ended, struct session_part *present,
			    size_t nr_present, const struct session_part *ahead, size_t nr_ahead)
{
	for (size_t i = 0; i < nr_ahead; i++) {
		struct pybpf_wait_time left = ahead[i].time;
		bool done = false;

		for (int like = 0; like < LIKENESSES && !done; like++)
			done = take_off_like(ended, nr_ended, &ahead[i].key, (enum likeness)like, &left) ||
			       take_off_like(present, nr_present, &ahead[i].key, (enum likeness)like, &left);
	}
}
