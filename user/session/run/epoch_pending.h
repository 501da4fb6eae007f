// SPDX-License-Identifier: Apache-2.0
/*
 * What one epoch of a run leaves to the next: records of the next epoch that came while those of the last one were
 * still read, and counts whose stack or process is not known yet.
 */
#ifndef SESSION_EPOCH_PENDING_H
#define SESSION_EPOCH_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "kernel/counts.h"
#include "pybpf.h"

struct session_pending_record {
	struct session_pending_record *next;
	struct pybpf_event event; /* followed by the rest of the record */
};

struct session_epoch_pending {
	bool changing; /* the sets have been changed, and the old ones have not been read yet */
	uint32_t old_sets;
	struct session_pending_record *records, **records_end; /* of the next epoch, in their order */
	struct intern counts; /* of earlier epochs, not in a profile yet: struct pending_count */
};

void session_pending_init(struct session_epoch_pending *pending);
void session_pending_free(struct session_epoch_pending *pending);

/* Returns whether the record belongs to the next epoch while records of the last one are still to be taken. */
bool session_is_of_next_epoch(const struct session_epoch_pending *pending, const struct pybpf_event *event);
/* Keeps a copy of the record, to be taken later. Returns 0 or -ENOMEM. */
int session_pending_add_record(struct session_epoch_pending *pending, const struct pybpf_event *event);

/* Keeps a count for a later epoch. Returns 0 or -ENOMEM. */
int session_pending_add_count(struct session_epoch_pending *pending, const struct pybpf_count_key *key,
			      const struct pybpf_count *count);
/*
 * Calls add for each count of earlier epochs for which is_due returns true, and forgets it. Returns 0, or what add
 * returned instead.
 */
int session_pending_take_counts(struct session_epoch_pending *pending,
				bool (*is_due)(const struct pybpf_count_key *key, void *arg), kernel_count_visitor *add,
				void *arg);

#endif
