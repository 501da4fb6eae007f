// SPDX-License-Identifier: Apache-2.0
/* What tables and names of each file cost. */
#ifndef SESSION_NATIVE_COSTS_H
#define SESSION_NATIVE_COSTS_H

struct session_native_state;

/* The answer has names of the job's file: adds what they cost. */
void native_add_names_cost(struct session_native_state *n);
/* Says at the end of the run what each file has cost. */
void native_log_costs(const struct session_native_state *n);

#endif
