# SPDX-License-Identifier: Apache-2.0
"""renames.py python|kernel: a thread that has another name for each of its works, and one that keeps its own."""

import ctypes
import json
import os
import sys
import threading
import time

clock = getattr(time, "monotonic", time.time)


def rename_in_python(name):
    threading.current_thread().name = name


def rename_in_kernel(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)  # PR_SET_NAME


def work():
    end = clock() + 0.1
    while clock() < end:
        sum(range(1000))


def renames(rename):
    number = 0
    while True:
        rename("request-%d" % number)
        number += 1
        work()


def stays():
    while True:
        work()


# No name of its own in the kernel's case, so that the kernel's counts.
names = {"kernel": None, "python": "before-all"}
thread = threading.Thread(
    target=renames, name=names[sys.argv[1]], args=({"python": rename_in_python, "kernel": rename_in_kernel}[sys.argv[1]],)
)
thread.daemon = True
thread.start()
other = threading.Thread(target=stays, name="keeps-it")
other.daemon = True
other.start()
sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
sys.stdout.flush()
time.sleep(1000)
