// SPDX-License-Identifier: Apache-2.0
/* The honest account at the end of a run, for people and for machines. */
#ifndef SESSION_ACCOUNT_H
#define SESSION_ACCOUNT_H

#include <stdio.h>

#include "session/session.h"

/* All samples that the kernel counted, by what became of them. */
uint64_t session_account_asked(const struct session_account *account);
/* The sum of what was lost, by any cause. */
uint64_t session_account_lost(const struct session_account *account);
/* Puts account and facts of the run into the profile. Returns 0 or -ENOMEM. */
int session_account_keep(const struct session_account *account, struct profile *profile);
/* Prints some lines on out, of what the profile keeps and more. cost: also what the run cost. */
void session_account_print(const struct session_account *account, const struct profile *profile, bool cost, FILE *out);
/* Writes it as one JSON object. */
void session_account_json(const struct session_account *account, FILE *out);

#endif
