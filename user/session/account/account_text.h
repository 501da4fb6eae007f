// SPDX-License-Identifier: Apache-2.0
/* Parts of the account's lines. */
#ifndef SESSION_ACCOUNT_TEXT_H
#define SESSION_ACCOUNT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* Prints a number with a comma after each three digits. */
void session_print_grouped(uint64_t number, FILE *out);

#endif
