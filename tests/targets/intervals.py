# SPDX-License-Identifier: Apache-2.0
"""Threads that sleep, wait for a lock and run, and say when: intervals.py.

At the end one line of JSON: by function a list of [begin, end] in seconds since 1970.
"""

import json
import sys
import threading
import time

ROUNDS = 8
says = {"sleeps": [], "locks": [], "runs": [], "nods": []}
held = threading.Lock()
turn = threading.Event()


def noted(name, begin):
    says[name].append([begin, time.time()])


def sleeps():
    for i in range(ROUNDS):
        begin = time.time()
        time.sleep(0.03 + 0.01 * i)
        noted("sleeps", begin)


def holds():
    for _ in range(ROUNDS):
        with held:
            turn.set()
            time.sleep(0.06)
        time.sleep(0.02)


def locks():
    for _ in range(ROUNDS):
        turn.wait()
        turn.clear()
        begin = time.time()
        held.acquire()
        noted("locks", begin)
        held.release()


def runs():
    for _ in range(3):
        begin = time.time()
        while time.time() < begin + 0.08:
            pass
        noted("runs", begin)
        time.sleep(0.1)


def nods():
    for _ in range(200):
        begin = time.time()
        time.sleep(0.0002)
        noted("nods", begin)


time.sleep(0.5)  # pybpf finds this Python
threads = [threading.Thread(target=function) for function in (sleeps, holds, locks, nods)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
runs()
sys.stdout.write(json.dumps(says) + "\n")
