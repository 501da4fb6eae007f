# SPDX-License-Identifier: Apache-2.0
"""leaderless.py [late]: the first thread ends with pthread_exit(), another one goes on.

It says that it is ready, and ends; late: when something comes on stdin.
"""

import ctypes
import json
import os
import sys
import threading
import time

# Lines of a function that is so long that the kernel copies only a part of its line table.
LINES = 4000
LONG = compile("def long_burn():\n" + "    x = [1, 2]; x = x[0]\n" * LINES, "long.py", "exec")

first_runs = [True]


def ready():
    sys.stdout.write(json.dumps({"pid": os.getpid(), "lines": LINES}) + "\n")
    sys.stdout.flush()


def short_burn():
    for _ in range(20000):
        pass


def work():
    while first_runs:
        time.sleep(0.01)
    scope = {}
    exec(LONG, scope)
    end = time.time() + 60
    while time.time() < end:
        short_burn()
        for _ in range(4):
            scope["long_burn"]()


def main(late):
    pthread_exit = ctypes.CDLL(None).pthread_exit
    threading.Thread(target=work).start()
    ready()
    if late:
        os.read(0, 1)
    first_runs.pop()
    pthread_exit(None)


if __name__ == "__main__":
    main(sys.argv[1:] == ["late"])
