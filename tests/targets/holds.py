# SPDX-License-Identifier: Apache-2.0
"""A thread that keeps the GIL in long calls of C code, one that changes frames all the time, and one that suffers."""

import json
import os
import sys
import threading
import time

KEPT_S = 0.03  # for longer than the interval after which a thread that waits asks for the GIL (5 ms)
numbers = list(range(200000))


def keeps():
    sorted(numbers, reverse=True)


def length():
    begin = time.time()
    keeps()
    return time.time() - begin


while min(length(), length()) < KEPT_S:
    numbers += numbers


def keeper():
    while True:
        keeps()
        time.sleep(0.02)


def first():
    return second()


def second():
    return third()


def third():
    return 1


def changes():
    end = time.time() + 0.05
    while time.time() < end:
        first()


def changer():
    while True:
        changes()
        time.sleep(0.02)


def suffers():
    while True:
        time.sleep(0.001)


works = {"keeps": [keeper], "changes": [changer], "both": [keeper, changer]}[sys.argv[1]]
for work in works + [suffers]:
    thread = threading.Thread(target=work)
    thread.daemon = True
    thread.start()
sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
sys.stdout.flush()
while True:
    time.sleep(1000)
