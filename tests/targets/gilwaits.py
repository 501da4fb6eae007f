# SPDX-License-Identifier: Apache-2.0
"""
One thread sleeps in C code that keeps the GIL, and others measure how long they wait for it: from the moment at which C
code without the GIL reads the clock to the moment at which Python goes on. argv: seconds, threads that wait.

These had no turn for "missed" in all, for whatever reason, and no thread had none for longer than "longest".
"""

import ctypes
import json
import sys
import threading
import time

ASLEEP_US = 20000


class Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


keeps_gil, gives_gil = ctypes.PyDLL(None), ctypes.CDLL(None)
CLOCK_MONOTONIC = 1
# Shorter ones are what it takes to read the clock.
LEAST_S = 0.0001


def read_clock():
    """As time.monotonic(), which 2.7 lacks; its time.time() has microseconds, of which hundreds of thousands add up."""
    now = Timespec()
    keeps_gil.clock_gettime(CLOCK_MONOTONIC, ctypes.byref(now))
    return now.seconds + now.nanoseconds / 1e9


clock_now = getattr(time, "monotonic", read_clock)
if sys.version_info < (3,):
    # It would let the GIL go every 100 instructions, also where nobody looks at the clock.
    sys.setcheckinterval(1000000000)
end = clock_now() + 0.3 + float(sys.argv[1])
sleeps, waits, misses, longest, ended = [], [], [], [], []


def asleep():
    keeps_gil.usleep(ASLEEP_US)


def sleeper():
    while clock_now() < end:
        begin = clock_now()
        asleep()
        sleeps.append(clock_now() - begin)
        time.sleep(0.02)


def reads(clock, pointer):
    clock(CLOCK_MONOTONIC, pointer)


def suffers():
    now, total, missed, most, after = Timespec(), 0, 0, 0, started
    pointer, clock = ctypes.byref(now), gives_gil.clock_gettime
    while after < end:
        before = after
        reads(clock, pointer)
        after = clock_now()
        waited = after - now.seconds - now.nanoseconds / 1e9
        total += waited if waited > LEAST_S else 0
        missed += after - before if after - before > LEAST_S else 0
        most = max(most, after - before)
    waits.append(total)
    misses.append(missed)
    longest.append(most)
    ended.append(after)


time.sleep(0.3)  # until the profiler knows what this is
threads = [threading.Thread(target=work) for work in [sleeper] + [suffers] * int(sys.argv[2])]
started = clock_now()
for thread in threads:
    thread.start()
longest.append(clock_now() - started)
for thread in threads:
    thread.join()
longest.append(clock_now() - min(ended))
says = {"asleep": sleeps, "waited": sum(waits), "missed": sum(misses), "longest": max(longest)}
sys.stdout.write(json.dumps(says) + "\n")
