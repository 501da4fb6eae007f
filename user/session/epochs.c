// SPDX-License-Identifier: Apache-2.0
/* Ends an epoch: switches the sets, takes the old set's records and counts, and carries over undecided counts. */
#include "session/epochs.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kernel/counts.h"
#include "kernel/events.h"
#include "session/internal.h"

struct session_aside {
	struct session_aside *next;
	struct pybpf_event event; /* followed by the rest of the record */
};

struct carried {
	struct pybpf_count_key key;
	struct pybpf_count count;
};

void session_epochs_init(struct session_epochs *e)
{
	memset(e, 0, sizeof(*e));
	e->aside_end = &e->aside;
	intern_init(&e->carried, sizeof(struct carried), sizeof(struct pybpf_count_key));
}

void session_epochs_free(struct session_epochs *e)
{
	while (e->aside) {
		struct session_aside *first = e->aside;

		e->aside = first->next;
		free(first);
	}
	intern_free(&e->carried);
	session_epochs_init(e);
}

bool session_must_wait(const struct session *s, const struct pybpf_event *event)
{
	const struct session_epochs *e = &s->epochs;

	if (!e->changing)
		return false;
	if (event->type == PYBPF_EVENT_TIME)
		return PYBPF_COUNTS_SET(event->sets) != PYBPF_COUNTS_SET(e->old_sets);
	return PYBPF_KNOWN_SET(event->sets) != PYBPF_KNOWN_SET(e->old_sets);
}

int session_put_aside(struct session *s, const struct pybpf_event *event)
{
	struct session_aside *aside = malloc(offsetof(struct session_aside, event) + event->size);

	if (!aside)
		return -ENOMEM;
	memcpy(&aside->event, event, event->size);
	aside->next = NULL;
	*s->epochs.aside_end = aside;
	s->epochs.aside_end = &aside->next;
	return 0;
}

static int take_aside(struct session *s)
{
	struct session_epochs *e = &s->epochs;

	while (e->aside) {
		struct session_aside *first = e->aside;
		int err = session_take_event(s, &first->event);

		/* -ENOENT: the process is not known; ignored as in session_consume. */
		if (err && err != -ENOENT)
			return err;
		e->aside = first->next;
		free(first);
	}
	e->aside_end = &e->aside;
	return 0;
}

int session_settle_carried(struct session *s, bool (*is_due)(const struct pybpf_count_key *key, void *arg), void *arg)
{
	struct intern *carried = &s->epochs.carried;

	for (uint32_t i = carried->count; i-- > 0;) {
		const struct carried *item = intern_item(carried, i);
		int err;

		if (!is_due(&item->key, arg))
			continue;
		err = session_add_count(s, &item->key, &item->count);
		if (err)
			return err;
		intern_remove(carried, i);
	}
	return 0;
}

static int carry(struct session *s, const struct pybpf_count_key *key, const struct pybpf_count *count)
{
	struct carried fresh = {.key = *key}, *item;
	uint32_t i;
	bool is_fresh;

	i = intern_add(&s->epochs.carried, &fresh, &is_fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	item = intern_item(&s->epochs.carried, i);
	item->count.count += count->count;
	item->count.value += count->value;
	return 0;
}

struct epoch {
	struct session *session;
	bool forget;
};

/* Returns whether the stack and process of the count are known by now, or will never be. */
static bool is_told(const struct pybpf_count_key *key, void *arg)
{
	const struct epoch *epoch = arg;
	const struct session *s = epoch->session;
	const struct processes_record *process = processes_find_record(s->processes, key->proc_id);

	if (!process)
		return true;
	if (key->stack_id == PYBPF_STACK_ID_UNDECIDED)
		return process->state != PROCESSES_LOOKING || process->ended;
	return epoch->forget || stacks_find(s->stacks, key->stack_id) != PROFILE_NONE;
}

static int take_count(const struct pybpf_count_key *key, const struct pybpf_count *count, void *arg)
{
	struct epoch *epoch = arg;

	if (is_told(key, epoch))
		return session_add_count(epoch->session, key, count);
	return carry(epoch->session, key, count);
}

/* Takes the old epoch's records, which are all in the ring buffer by now, and its counts. */
static int take_epoch(struct session *s, bool forget)
{
	struct epoch epoch = {.session = s, .forget = forget};
	int err;

	do
		err = session_consume(s);
	while (err > 0);
	processes_settle_ended(s->processes);
	if (forget)
		err = err ?: stacks_finish(s->stacks);
	err = err ?: kernel_take_counts(s->kernel, take_count, &epoch);
	err = err ?: session_settle_carried(s, is_told, &epoch);
	return err ?: session_times_settle(&s->times, s->profile, s->attach_ns);
}

/* Begins the next epoch's profile: with the known stacks and code objects or, if forget, empty. */
static int begin_epoch(struct session *s, bool forget)
{
	int err = 0;

	session_times_forget(&s->times);
	if (!forget) {
		profile_clear_samples(s->profile);
		return 0;
	}
	pysym_forget_codes(s->pysym);
	err = session_new_profile(s) ?: kernel_forget_known(s->kernel);
	/* Returns free memory to the kernel, as keep_memory would see no difference otherwise. */
	malloc_trim(0);
	if (s->memory_full)
		kernel_refuse_new_stacks(s->kernel, false);
	s->memory_full = false;
	return err;
}

int session_end_epoch(struct session *s, bool forget, int (*take)(const struct profile *profile, void *arg), void *arg)
{
	int err;

	s->epochs.old_sets = kernel_get_sets(s->kernel);
	s->epochs.changing = true;
	err = kernel_change_sets(s->kernel, forget);
	err = err ?: take_epoch(s, forget);
	if (!err) {
		profile_sort_events(s->profile);
		err = take(s->profile, arg);
	}
	err = err ?: begin_epoch(s, forget);
	s->epochs.changing = false;
	err = err ?: take_aside(s);
	if (err && !s->error)
		log_error("cannot take what was counted from the kernel: %s", strerror(-err));
	return err;
}
