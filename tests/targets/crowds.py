# SPDX-License-Identifier: Apache-2.0
"""crowds.py maps|forks COUNT [READER]: maps a library as executable COUNT times, or forks COUNT children that end at once,
as fast as it can. With READER, a PID, it waits after each BURST until that process has read what it was told.
"""

import mmap
import os
import re
import sys
import time

import churn

BURST = 1000  # a quarter of what the kernel has room for


def sleeps(pid):
    """How often the process's main thread has gone to sleep."""
    with open("/proc/%d/task/%d/status" % (pid, pid)) as status:
        return int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", status.read(), re.M).group(1))


def wait_for(pid):
    """Until the process has gone to sleep some times: it has read since what it was told before."""
    end = sleeps(pid) + 3
    while sleeps(pid) < end:
        time.sleep(0.005)


def map_once(library):
    mmap.mmap(library, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC).close()


def maps(count, reader):
    with open(os.path.realpath("/proc/self/exe"), "rb") as library:
        for i in range(count):
            if reader and i % BURST == 0:
                wait_for(reader)
            map_once(library.fileno())


def forks(count, reader):
    for i in range(count):
        if reader and i % BURST == 0:
            wait_for(reader)
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    churn.begin()
    {"maps": maps, "forks": forks}[sys.argv[1]](int(sys.argv[2]), int(sys.argv[3]) if sys.argv[3:] else None)
    churn.finish(churn.Children())
