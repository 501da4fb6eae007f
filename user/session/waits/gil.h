// SPDX-License-Identifier: Apache-2.0
/* Who held the GIL while others waited for it, and who slept with it: --mode=gil. */
#ifndef SESSION_GIL_H
#define SESSION_GIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/intern.h"
#include "pybpf_wait.h"
#include "session/waits/gil_account.h"

struct discovery_python;
struct profile;
struct session;
struct session_measure;

struct session_gil {
	struct intern holders; /* by frame of the profile, as asleep */
	struct intern asleep;
	uint64_t queued_ns; /* holders waited for a CPU */
	uint64_t throttled_ns;
	uint64_t longest_ns; /* of the waits that the end of the run found */
};

void session_gil_init(struct session_gil *g);
void session_gil_free(struct session_gil *g);
/* The profile begins anew: forgets who held the GIL where. */
void session_gil_forget_frames(struct session_gil *g);

/* Returns whether a wait is in the profile of --mode=gil: one for the GIL, or a sleep with it. */
bool session_gil_shows(uint64_t wait_id);
/*
 * Adds a wait of any kind to the tables. stack, holder: stacks of the profile without a leaf for the wait; holder:
 * PROFILE_NONE if it is not known, PROFILE_ROOT if nobody held the GIL. Returns 0 or -ENOMEM.
 */
int session_gil_add(struct session_gil *g, const struct profile *profile, uint64_t wait_id, uint32_t stack,
		    uint32_t holder, const struct pybpf_wait_time *time);
/* Notes how long a wait for the GIL has lasted that the end of the run found. */
void session_gil_note_unfinished(struct session_gil *g, uint64_t ns);

/* Writes the leaf of a sleep with the GIL, whose text has the leaf of the same sleep without it. */
void session_gil_name_asleep(char *text, size_t size);
/* Writes the leaf of a holder's stack: which function it blocks. stack: that of the thread that waits. */
void session_gil_name_blocked(const struct profile *profile, uint32_t stack, char *out, size_t size);

/*
 * Returns whether it is known where the GIL of a live Python is, for which its threads wait; else *error has a sentence
 * that says why not, and what there is.
 */
bool session_gil_is_known(const struct discovery_python *python, struct error *error);

void session_gil_print(const struct session_gil_account *account, uint64_t waited_ns, FILE *out);

extern const struct session_measure session_gil_measure;

#endif
