# SPDX-License-Identifier: Apache-2.0
"""naps.py COUNT: COUNT threads that sleep for some milliseconds again and again, each for another time."""

import json
import os
import sys
import threading
import time


def naps(seconds):
    while True:
        time.sleep(seconds)


threading.stack_size(256 * 1024)
for number in range(int(sys.argv[1])):
    thread = threading.Thread(target=naps, args=(0.01 + number * 0.0001,))
    thread.daemon = True
    thread.start()
sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
sys.stdout.flush()
naps(1)
