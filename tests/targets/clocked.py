# SPDX-License-Identifier: Apache-2.0
"""
Threads that sleep a known number of times, and measure it. argv: threads, sleeps of each, seconds of a sleep. Prints
{TID: seconds asleep by CLOCK_MONOTONIC}.
"""

import json
import sys
import threading
import time

sleeps, seconds = int(sys.argv[2]), float(sys.argv[3])
asleep = {}


def naps():
    total = 0
    for _ in range(sleeps):
        begin = time.monotonic()
        time.sleep(seconds)
        total += time.monotonic() - begin
    asleep[threading.get_native_id()] = total


time.sleep(0.5)  # until the profiler knows what this is
threads = [threading.Thread(target=naps) for _ in range(int(sys.argv[1]))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.stdout.write(json.dumps(asleep) + "\n")
