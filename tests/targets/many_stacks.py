# SPDX-License-Identifier: Apache-2.0
"""Ever new stacks: functions call each other by chance."""

import json
import os
import random
import sys

FUNCTIONS = []
SOURCE = """
def f%d(depth):
    sum(range(200))
    if depth:
        random.choice(FUNCTIONS)(depth - 1)
    sum(range(200))
"""

for number in range(12):
    exec(SOURCE % number)
    FUNCTIONS.append(globals()["f%d" % number])

if __name__ == "__main__":
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    while True:
        random.choice(FUNCTIONS)(14)
