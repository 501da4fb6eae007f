# SPDX-License-Identifier: Apache-2.0
"""One thread sleeps, one waits for a lock that nobody gives back, and two want the GIL for a part of the time."""

import json
import os
import sys
import threading
import time

never = threading.Lock()
never.acquire()


def sleeps():
    time.sleep(1000)


def locked():
    never.acquire()


def contends():
    while True:
        until = time.time() + 0.008
        while time.time() < until:
            sum(range(3000))
        time.sleep(0.005)  # shorter than the other one works: they meet


if __name__ == "__main__":
    for work in (sleeps, locked, contends, contends):
        thread = threading.Thread(target=work, name=work.__name__)
        thread.daemon = True
        thread.start()
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    time.sleep(1000)
