# SPDX-License-Identifier: Apache-2.0
"""bursts.py MICROSECONDS: works for so long and sleeps ten times as long, again and again."""

import json
import os
import sys
import time

seconds = int(sys.argv[1]) / 1e6


def burst():
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
sys.stdout.flush()
while True:
    burst()
    time.sleep(10 * seconds)
