// SPDX-License-Identifier: Apache-2.0
/* Rows of functions that were followed one by one. */
#ifndef NATIVE_FLOW_ROWS_H
#define NATIVE_FLOW_ROWS_H

#include "native/flow.h"

/*
 * Puts the rows in order and makes one of those that overlap: that of a function which is certainly one stays; where
 * that does not decide, there is no rule.
 */
void flow_rows_settle(struct flow_rows *r);

#endif
