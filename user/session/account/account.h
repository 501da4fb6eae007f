// SPDX-License-Identifier: Apache-2.0
/* The account at the end of a run of all samples taken and lost: as text, as JSON, and in the profile. */
#ifndef SESSION_ACCOUNT_H
#define SESSION_ACCOUNT_H

#include <stdio.h>

#include "session/session.h"

/* Returns the number of samples that the kernel counted, whatever became of them. */
uint64_t session_account_asked(const struct session_account *account);
/* Returns the number of samples lost, by any cause. */
uint64_t session_account_lost(const struct session_account *account);
/*
 * Returns what became of samples, and of the time of threads, between two accounts of session_count_samples() or
 * session_collect(): the entries that epochs have, and what is counted, at which rate. The rest is zero.
 */
struct session_account session_account_since(const struct session_account *now, const struct session_account *before);
/* Puts the account and the facts of the run into the profile. Returns 0 or -ENOMEM. */
int session_account_keep(const struct session_account *account, struct profile *profile);
/* Prints the account that the profile keeps, and more, on out. cost: also the CPU time and memory of the run. */
void session_account_print(const struct session_account *account, const struct profile *profile, bool cost, FILE *out);
/* Empties the names of tasks and places that session_account_json() would write, for a run with --anonymize. */
void session_account_hide(struct session_account *account);
/* Writes the account as one JSON object. */
void session_account_json(const struct session_account *account, FILE *out);

#endif
