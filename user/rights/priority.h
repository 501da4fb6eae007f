// SPDX-License-Identifier: Apache-2.0
/*
 * Precedence over other programs while every millisecond counts: a process that has just begun is not sampled before
 * pybpf and its helper have had a CPU, which on a busy machine takes some milliseconds each time (a slice of the
 * scheduler). Who takes much of a CPU loses the precedence for good.
 */
#ifndef RIGHTS_PRIORITY_H
#define RIGHTS_PRIORITY_H

/*
 * Gives this process, and those that it starts, the highest nice value; not where it was started with another than 0,
 * for that was somebody's wish, and not without the right to (CAP_SYS_NICE).
 */
void priority_raise(void);
/* Takes that back, of this process alone. */
void priority_restore(void);

/* Takes it back when this process has used more than half of a CPU lately. Called often. */
void priority_check(void);
/* From now on it is taken back by a signal (SIGPROF) when what follows one priority_watch uses 50 ms of CPU time. */
void priority_watch_begin(void);
void priority_watch(void);

#endif
