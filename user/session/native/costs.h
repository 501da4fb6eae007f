// SPDX-License-Identifier: Apache-2.0
/* What tables and names of each file cost. */
#ifndef SESSION_NATIVE_COSTS_H
#define SESSION_NATIVE_COSTS_H

struct session_native_state;

void native_log_costs(const struct session_native_state *n);

#endif
