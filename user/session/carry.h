// SPDX-License-Identifier: Apache-2.0
/*
 * What one epoch of a run leaves to the next: records of the next epoch that came while those of the last one were
 * still read, and counts whose stack or process is not known yet.
 */
#ifndef SESSION_CARRY_H
#define SESSION_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "kernel/counts.h"
#include "pybpf.h"

struct session_aside {
	struct session_aside *next;
	struct pybpf_event event; /* followed by the rest of the record */
};

struct session_carry {
	bool changing; /* the sets have been changed, and the old ones have not been read yet */
	uint32_t old_sets;
	struct session_aside *aside, **aside_end; /* records that belong to the next epoch, in their order */
	struct intern carried; /* counts of earlier epochs that are not in a profile yet: struct carried */
};

void session_carry_init(struct session_carry *c);
void session_carry_free(struct session_carry *c);

/* Returns whether the record belongs to the next epoch while records of the last one are still to be taken. */
bool session_must_wait(const struct session_carry *c, const struct pybpf_event *event);
/* Keeps a copy of the record, to be taken later. Returns 0 or -ENOMEM. */
int session_put_aside(struct session_carry *c, const struct pybpf_event *event);

/* Keeps a count for a later epoch. Returns 0 or -ENOMEM. */
int session_carry_count(struct session_carry *c, const struct pybpf_count_key *key, const struct pybpf_count *count);
/*
 * Calls add for each count of earlier epochs for which is_due returns true, and forgets it. Returns 0, or what add
 * returned instead.
 */
int session_settle_carried(struct session_carry *c, bool (*is_due)(const struct pybpf_count_key *key, void *arg),
			   kernel_count_visitor *add, void *arg);

#endif
