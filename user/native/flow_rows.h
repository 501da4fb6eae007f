// SPDX-License-Identifier: Apache-2.0
/* Rows of functions that were followed one by one. */
#ifndef NATIVE_FLOW_ROWS_H
#define NATIVE_FLOW_ROWS_H

#include "native/flow.h"

/*
 * Puts the rows in order. If two overlap, the one whose function is certain stays; if both are, or neither is, and
 * their rules differ, the place has no rule.
 */
void flow_rows_settle(struct flow_rows *r);

#endif
