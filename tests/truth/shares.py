# SPDX-License-Identifier: Apache-2.0
"""Functions that measure their own CPU time, one of them line by line: shares.py SECONDS PERIOD_MS.

They print it after so many seconds of CPU time. With a period each round begins at a multiple of it and rests to the
next, and the seconds are those of the wall.
"""

import json
import sys
import time

SPENT = {}


def clock():
    return time.thread_time_ns() if hasattr(time, "thread_time_ns") else old_clock()


def old_clock():
    return int(time.clock() * 1e9) if not hasattr(time, "process_time") else int(time.process_time() * 1e9)


def spend(key, since):
    now = clock()
    SPENT[key] = SPENT.get(key, 0) + now - since
    return now


def large():
    since = clock()
    for _ in range(40000): pass
    spend("large", since)


def middle():
    since = clock()
    for _ in range(20000): pass
    spend("middle", since)


def small():
    since = clock()
    for _ in range(10000): pass
    spend("small", since)


def lines():
    since = clock()
    for _ in range(9000): pass
    since = spend("lines:1", since)
    for _ in range(16000): pass
    since = spend("lines:2", since)
    for _ in range(23000): pass
    spend("lines:3", since)


def main(seconds, period):
    end = time.time() + seconds * (1 if period else 30)
    while time.time() < end and (period or sum(SPENT.values()) < seconds * 1e9):
        large()
        middle()
        small()
        lines()
        if period:
            time.sleep(period - time.time() % period)
    sys.stdout.write(json.dumps(SPENT) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), float(sys.argv[2]) / 1000)
