# SPDX-License-Identifier: Apache-2.0
"""Threads that sleep, wait for a lock and run, and say when: intervals.py.

At the end one line of JSON: by function a list of [begin, end, CPU time] in seconds, begin and end since 1970. The CPU
time is the thread's, or in Python 2 that of all threads.
"""

import json
import sys
import threading
import time

ROUNDS = 8
says = {"sleeps": [], "locks": [], "runs": [], "nods": []}
held = threading.Lock()
turn = threading.Semaphore(0)
cpu_time = getattr(time, "thread_time", None) or time.clock


def looked():
    return cpu_time(), time.time()


def noted(name, begun):
    cpu, begin = begun
    end = time.time()
    says[name].append([begin, end, cpu_time() - cpu])


def sleeps():
    for i in range(ROUNDS):
        begun = looked()
        time.sleep(0.03 + 0.01 * i)
        noted("sleeps", begun)


def holds():
    for _ in range(ROUNDS):
        with held:
            turn.release()
            time.sleep(0.06)
        time.sleep(0.02)


def locks():
    for _ in range(ROUNDS):
        turn.acquire()
        begun = looked()
        held.acquire()
        noted("locks", begun)
        held.release()


def runs():
    for _ in range(3):
        begun = looked()
        while cpu_time() < begun[0] + 0.08:
            pass
        noted("runs", begun)
        time.sleep(0.1)


def nods():
    for _ in range(200):
        begun = looked()
        time.sleep(0.0002)
        noted("nods", begun)


time.sleep(0.5)  # pybpf finds this Python
threads = [threading.Thread(target=function) for function in (sleeps, holds, locks, nods)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
runs()
sys.stdout.write(json.dumps(says) + "\n")
