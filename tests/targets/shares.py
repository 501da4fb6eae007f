# SPDX-License-Identifier: Apache-2.0
"""Two functions of known shares of the CPU time: by the process's own clock, three quarters and one quarter."""

import json
import os
import sys
import threading
import time

cpu_time = getattr(time, "thread_time", None) or (lambda: sum(os.times()[:2]))  # 3.7+


def spin(seconds):
    end = cpu_time() + seconds
    while cpu_time() < end:
        for _ in range(200):
            pass


def large():
    spin(0.06)


def small():
    spin(0.02)


def work():
    while True:
        large()
        small()


def rest():
    time.sleep(1000)


if __name__ == "__main__":
    thread = threading.Thread(target=rest, name="rests")
    thread.daemon = True
    thread.start()
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    work()
