// SPDX-License-Identifier: Apache-2.0
/* What one epoch leaves to the next: records that came too early, and counts that are not decided yet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/carry.h"

struct carried {
	struct pybpf_count_key key;
	struct pybpf_count count;
};

void session_carry_init(struct session_carry *c)
{
	memset(c, 0, sizeof(*c));
	c->aside_end = &c->aside;
	intern_init(&c->carried, sizeof(struct carried), sizeof(struct pybpf_count_key));
}

void session_carry_free(struct session_carry *c)
{
	while (c->aside) {
		struct session_aside *first = c->aside;

		c->aside = first->next;
		free(first);
	}
	intern_free(&c->carried);
	session_carry_init(c);
}

bool session_must_wait(const struct session_carry *c, const struct pybpf_event *event)
{
	/* Threads are of no epoch. */
	if (!c->changing || event->type == PYBPF_EVENT_THREAD)
		return false;
	if (event->type == PYBPF_EVENT_TIME)
		return PYBPF_COUNTS_SET(event->sets) != PYBPF_COUNTS_SET(c->old_sets);
	return PYBPF_KNOWN_SET(event->sets) != PYBPF_KNOWN_SET(c->old_sets);
}

int session_put_aside(struct session_carry *c, const struct pybpf_event *event)
{
	struct session_aside *aside = malloc(offsetof(struct session_aside, event) + event->size);

	if (!aside)
		return -ENOMEM;
	memcpy(&aside->event, event, event->size);
	aside->next = NULL;
	*c->aside_end = aside;
	c->aside_end = &aside->next;
	return 0;
}

int session_settle_carried(struct session_carry *c, bool (*is_due)(const struct pybpf_count_key *key, void *arg),
			   kernel_count_visitor *add, void *arg)
{
	for (uint32_t i = c->carried.count; i-- > 0;) {
		const struct carried *item = intern_item(&c->carried, i);
		int err;

		if (!is_due(&item->key, arg))
			continue;
		err = add(&item->key, &item->count, arg);
		if (err)
			return err;
		intern_remove(&c->carried, i);
	}
	return 0;
}

int session_carry_count(struct session_carry *c, const struct pybpf_count_key *key, const struct pybpf_count *count)
{
	struct carried fresh = {.key = *key}, *item;
	uint32_t i;
	bool is_fresh;

	i = intern_add(&c->carried, &fresh, &is_fresh);
	if (i == INTERN_NONE)
		return -ENOMEM;
	item = intern_item(&c->carried, i);
	item->count.count += count->count;
	item->count.value += count->value;
	return 0;
}
