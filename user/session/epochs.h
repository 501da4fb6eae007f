// SPDX-License-Identifier: Apache-2.0
/* A run divided into epochs: the counts of one epoch are read while samples are counted for the next. */
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
	bool changing; /* the sets have been changed, and the old ones have not been read yet */
	uint32_t old_sets;
	struct session_aside *aside, **aside_end; /* records that belong to the next epoch, in their order */
	struct intern carried; /* counts of earlier epochs that are not in a profile yet: struct carried */
};

void session_epochs_init(struct session_epochs *e);
void session_epochs_free(struct session_epochs *e);

/* Returns whether the record belongs to the next epoch while records of the last one are still to be taken. */
bool session_must_wait(const struct session *s, const struct pybpf_event *event);
/* Keeps a copy of the record, to be taken later. Returns 0 or -ENOMEM. */
int session_put_aside(struct session *s, const struct pybpf_event *event);

/* Adds the counts of earlier epochs for which is_due returns true to the profile. Returns 0 or -ENOMEM. */
int session_settle_carried(struct session *s, bool (*is_due)(const struct pybpf_count_key *key, void *arg), void *arg);

#endif
