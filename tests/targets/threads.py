# SPDX-License-Identifier: Apache-2.0
"""Three threads, each in a function of its own, under names of their own."""

import os
import threading
import time

import expect

try:
    import ctypes

    libc = ctypes.CDLL(None)
except ImportError:
    libc = None

PR_SET_NAME = 15
reached = []
names = {}


def announce(name):
    """Names this thread for the kernel, and notes its thread id."""
    if libc:
        libc.prctl(PR_SET_NAME, name.encode(), 0, 0, 0)
    else:
        with open("/proc/thread-self/comm", "w") as comm:
            comm.write(name)
    if hasattr(threading, "get_native_id"):
        names[name] = threading.get_native_id()
    else:
        names[name] = int(os.path.basename(os.readlink("/proc/thread-self")))
    reached.append(name)


def first_burn():
    sum(range(20000))  # first_burn: hot


def first():
    announce("worker one")
    while True:
        first_burn()  # first > first_burn


def second_burn():
    sum(range(20000))  # second_burn: hot


def second():
    announce("worker;two")
    while True:
        second_burn()  # second > second_burn


def third():
    announce("worker-three")
    while True:
        sum(range(20000))  # third: hot


def main():
    wanted = expect.describe(__file__)
    wanted.roots = set(["first", "second", "third"])
    wanted.through = ["threading.py"]
    for function in (first, second, third):
        worker = threading.Thread(target=function)
        worker.daemon = True
        worker.start()
    while len(reached) < 3:
        time.sleep(0.01)
    functions = {"worker one": "first", "worker;two": "second", "worker-three": "third"}
    wanted.more["threads"] = [[name, names[name], functions[name]] for name in functions]
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
