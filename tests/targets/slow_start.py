# SPDX-License-Identifier: Apache-2.0
"""slow_start.py THREADS NAPS: threads, made one right after the other, that sleep NAPS times for 10 ms."""

import sys
import time

try:
    from _thread import allocate_lock, start_new_thread
except ImportError:  # 2.7
    from thread import allocate_lock, start_new_thread


def nap(seconds):
    time.sleep(seconds)


def naps(ended):
    for _ in range(int(sys.argv[2])):
        nap(0.01)
    ended.release()


time.sleep(0.5)  # until the profiler knows what this is
locks = [allocate_lock() for _ in range(int(sys.argv[1]))]
for lock in locks:
    lock.acquire()
    start_new_thread(naps, (lock,))
for lock in locks:
    lock.acquire()
