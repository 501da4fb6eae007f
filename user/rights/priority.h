// SPDX-License-Identifier: Apache-2.0
/*
 * Precedence over other programs while every millisecond counts: a process that has just begun is not sampled before
 * pybpf and its helper have had a CPU, which on a busy machine takes some milliseconds each time (a slice of the
 * scheduler). A process that takes much of a CPU loses the precedence for good.
 */
#ifndef RIGHTS_PRIORITY_H
#define RIGHTS_PRIORITY_H

/*
 * Gives this process, and those that it starts, the highest priority (nice -20). Does nothing if the nice value is not
 * 0, because somebody chose it, or without the right to change it (CAP_SYS_NICE).
 */
void priority_raise(void);
/* Undoes priority_raise() for this process alone. */
void priority_restore(void);

/*
 * Undoes priority_raise() when this process has used more than half of a CPU since the last check, a second or more
 * ago. To be called often.
 */
void priority_check(void);
/*
 * After priority_watch_begin(), a signal (SIGPROF) undoes priority_raise() when the work that follows one
 * priority_watch() uses 50 ms of CPU time.
 */
void priority_watch_begin(void);
void priority_watch(void);

#endif
