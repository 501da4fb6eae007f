# SPDX-License-Identifier: Apache-2.0
"""sleepers.py COUNT [idle]: COUNT threads that sleep from now on, each in wait_for_work(), and one that works, unless it is to be idle, too."""

import json
import os
import sys
import threading
import time

never = threading.Lock()
started = []


def wait_for_work():
    started.append(1)
    never.acquire()


def serve():
    wait_for_work()


def work():
    while True:
        sum(range(2000))


def main():
    count = int(sys.argv[1])
    # The least that glibc takes: thousands of threads fit a small machine.
    threading.stack_size(128 * 1024)
    never.acquire()
    for _ in range(count):
        thread = threading.Thread(target=serve)
        thread.daemon = True
        thread.start()
    while len(started) < count:
        time.sleep(0.01)
    # The last ones are between the list and the lock.
    time.sleep(0.5)
    print(json.dumps({"pid": os.getpid(), "threads": count}))
    sys.stdout.flush()
    if sys.argv[2:] == ["idle"]:
        time.sleep(1000)
    work()


if __name__ == "__main__":
    main()
