// SPDX-License-Identifier: Apache-2.0
/* The account's lines on threads: what they did in SESSION_CPU, and the waits that other modes leave out. */
#ifndef SESSION_ACCOUNT_THREADS_H
#define SESSION_ACCOUNT_THREADS_H

#include <stdio.h>

struct session_account;

/* Prints how much of the threads' time was on a CPU, waiting for one, and asleep; nothing without a Python process. */
void session_print_sched(const struct session_account *a, FILE *out);
/* Prints how many threads are in the profile without the stacks that they had when the run began. */
void session_print_unread(const struct session_account *a, FILE *out);
/* Prints how many threads are without names, or without those that they have in Python. */
void session_print_unnamed(const struct session_account *a, FILE *out);
/* Prints how many waits were left out for being short, if that was asked for. */
void session_print_short(const struct session_account *a, FILE *out);
/* Prints how many waits have no events in the profile, if times were kept. */
void session_print_undrawn(const struct session_account *a, FILE *out);

#endif
