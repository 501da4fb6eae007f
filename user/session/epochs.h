// SPDX-License-Identifier: Apache-2.0
/* A run in parts: what was counted in each is taken while the next one is counted. */
#ifndef SESSION_EPOCHS_H
#define SESSION_EPOCHS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "pybpf.h"

struct session;
struct session_aside;

struct session_epochs {
	bool changing; /* the sets have been changed, and what is in the old ones is not taken yet */
	uint32_t old_sets;
	struct session_aside *aside, **aside_end; /* records that belong to the next epoch, in their order */
	struct intern carried; /* counts of earlier epochs that are not in a profile yet: struct carried */
};

void session_epochs_init(struct session_epochs *e);
void session_epochs_free(struct session_epochs *e);

/* Is the record one of the next epoch, while the last one's are still to be taken? */
bool session_must_wait(const struct session *s, const struct pybpf_event *event);
/* Keeps a copy of it, to be taken later. Returns 0 or -ENOMEM. */
int session_put_aside(struct session *s, const struct pybpf_event *event);

/* Adds those counts of earlier epochs to the profile that is_due tells. Returns 0 or -ENOMEM. */
int session_settle_carried(struct session *s, bool (*is_due)(const struct pybpf_count_key *key, void *arg), void *arg);

#endif
