# SPDX-License-Identifier: Apache-2.0
"""What the targets share that start processes: CPU time burnt, children counted, one line at the end.

A child that burns has the stack `... > main > burn`, for as much CPU time as it was told.
"""

import json
import os
import resource
import signal
import sys
import time

LIFETIME = int(os.environ.get("CHURN_LIFETIME_S", "60"))  # after which a process ends by itself


def cpu_s(usage=None):
    usage = usage or resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def burn(seconds):
    """Spends that much of this process's CPU time."""
    end = cpu_s() + seconds
    while cpu_s() < end:
        sum(range(2000))


class Children(object):
    """What the kernel says about each child that was waited for."""

    def __init__(self):
        self.started = {}
        self.ended = []

    def add(self, pid):
        self.started[pid] = time.time()

    def wait(self, flags=0):
        """Waits for one; False where there is none (that has ended yet, with WNOHANG)."""
        if not self.started:
            return False
        pid, status, usage = os.wait4(-1, flags)
        if not pid:
            return False
        lived = time.time() - self.started.pop(pid)
        switches = usage.ru_nvcsw + usage.ru_nivcsw
        self.ended.append([pid, status, round(cpu_s(usage), 6), round(lived, 3), switches])
        return True

    def wait_all(self):
        while self.wait():
            pass


def lead():
    """What is started from here on ends with this process, which does not live longer than its LIFETIME."""
    os.setpgid(0, 0)
    leader = os.getpid()

    def end(*_):
        if os.getpid() == leader:
            os.killpg(leader, signal.SIGKILL)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)
    signal.alarm(LIFETIME)


def begin():
    """Says that it is there, and waits for the word to begin: a line, or the end of its input."""
    lead()
    say(pid=os.getpid())
    sys.stdin.readline()


def say(**words):
    sys.stdout.write(json.dumps(words) + "\n")
    sys.stdout.flush()


def finish(children, **words):
    """children: [PID, status, CPU seconds, seconds that it lived, switches] of each."""
    children.wait_all()
    say(children=children.ended, own_s=round(cpu_s(), 6), **words)
