# SPDX-License-Identifier: Apache-2.0
"""For programs that the profiler starts: what it has been told, such as of a library that was loaded, it has looked at."""

import os
import time

POLL_S = 0.02
RESTS = 15  # polls, one after the other
PATIENCE_S = 10.0


def is_at_rest(pid):
    """Whether a process and those below it sleep, but this one."""
    if pid == os.getpid():
        return True
    try:
        with open("/proc/%d/stat" % pid) as stat:
            state = stat.read().rpartition(")")[2].split()[0]
        with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
            below = [int(child) for child in children.read().split()]
    except (IOError, OSError):
        return True
    return state == "S" and all(is_at_rest(child) for child in below)


def wait_for_rest():
    """Beside a load the profiler has its CPU late: a time that is long enough without one is too short then."""
    rests, end = 0, time.time() + PATIENCE_S
    while rests < RESTS and time.time() < end:
        time.sleep(POLL_S)
        rests = rests + 1 if is_at_rest(os.getppid()) else 0
