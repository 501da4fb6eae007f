// SPDX-License-Identifier: Apache-2.0
/* The CPU time that pybpf takes, and how much of it what is read at the end of a run may take. */
#ifndef SESSION_CPU_TIME_H
#define SESSION_CPU_TIME_H

/*
 * Returns the CPU time in seconds that pybpf and its helpers have taken. Work that has a limit of time is measured by
 * it, so that a busy machine does not leave less of the work done.
 */
double session_used_s(void);

/*
 * What is read when sampling has ended, in seconds of CPU time since then: the profile is there half a second later.
 * What one leaves over is the next one's. A run has either last snapshots of tasks, and one that was begun before, or
 * what the scheduler has counted.
 */
#define SESSION_END_SNAPSHOTS_S 0.15
#define SESSION_END_SCHED_S     0.15
#define SESSION_END_CODES_S     0.3
#define SESSION_END_NAMES_S     0.4

#endif
