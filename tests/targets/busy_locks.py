# SPDX-License-Identifier: Apache-2.0
"""Threads that take the same locks in different orders all the time, and give up in time."""

import json
import os
import sys
import threading
import time

one, two = threading.Lock(), threading.Lock()


def give_back(lock):
    lock.release()


def work(first, second):
    while True:
        with first:
            if second.acquire(False):
                time.sleep(0.001)
                give_back(second)
        with second:
            time.sleep(0.001)


for locks in [(one, two), (two, one)] * 4:
    thread = threading.Thread(target=work, args=locks)
    thread.daemon = True
    thread.start()
print(json.dumps({"pid": os.getpid()}))
sys.stdout.flush()
time.sleep(1000)
