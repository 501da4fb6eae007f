// SPDX-License-Identifier: Apache-2.0
/* What one epoch leaves to the next: records that came too early, and counts that are not decided yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/run/epoch_pending.h"

struct pending_count {
	struct pybpf_count_key key;
	struct pybpf_count count;
};

void session_pending_init(struct session_epoch_pending *pending)
{
	memset(pending, 0, sizeof(*pending));
	pending->records_end = &pending->records;
	intern_init(&pending->counts, sizeof(struct pending_count), sizeof(struct pybpf_count_key));
}

void session_pending_free(struct session_epoch_pending *pending)
{
	while (pending->records) {
		struct session_pending_record *first = pending->records;

		pending->records = first->next;
		free(first);
	}
	intern_free(&pending->counts);
	session_pending_init(pending);
}

bool session_is_of_next_epoch(const struct session_epoch_pending *pending, const struct pybpf_event *event)
{
	/* Threads are of no epoch. */
	if (!pending->changing || event->type == PYBPF_EVENT_THREAD)
		return false;
	if (event->type == PYBPF_EVENT_TIME)
		return PYBPF_COUNTS_SET(event->sets) != PYBPF_COUNTS_SET(pending->old_sets);
	return PYBPF_KNOWN_SET(event->sets) != PYBPF_KNOWN_SET(pending->old_sets);
}

int session_pending_add_record(struct session_epoch_pending *pending, const struct pybpf_event *event)
{
	struct session_pending_record *record = malloc(offsetof(struct session_pending_record, event) + event->size);

	if (!record)
		return -ENOMEM;
	memcpy(&record->event, event, event->size);
	record->next = NULL;
	*pending->records_end = record;
	pending->records_end = &record->next;
	return 0;
}

int session_pending_take_counts(struct session_epoch_pending *pending,
				bool (*is_due)(const struct pybpf_count_key *key, void *arg), kernel_count_visitor *add,
				void *arg)
{
	for (uint32_t i = pending->counts.count; i-- > 0;) {
		const struct pending_count *item = intern_item(&pending->counts, i);
		int err;

		if (!is_due(&item->key, arg))
			continue;
		err = add(&item->key, &item->count, arg);
		if (err)
			return err;
		intern_remove(&pending->counts, i);
	}
	return 0;
}

int session_pending_add_count(struct session_epoch_pending *pending, const struct pybpf_count_key *key,
			      const struct pybpf_count *count)
{
	struct pending_count fresh = {.key = *key}, *item;
	uint32_t i;
	bool is_fresh;

	i = intern_add(&pending->counts, &fresh, &is_fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	item = intern_item(&pending->counts, i);
	item->count.count += count->count;
	item->count.value += count->value;
	return 0;
}
