# SPDX-License-Identifier: Apache-2.0
"""crowd.py COUNT: COUNT threads, of which the one in the middle works and the others sleep."""

import sys
import threading
import time

import expect

never = threading.Lock()
started = []


def burn():
    sum(range(20000))  # burn: hot


def busy():
    started.append(1)
    while True:
        burn()  # busy > burn


def asleep():
    started.append(1)
    never.acquire()


def main():
    count = int(sys.argv[1])
    threading.stack_size(256 * 1024)
    wanted = expect.describe(__file__)
    wanted.roots = set(["busy"])
    wanted.through = ["threading.py"]
    never.acquire()
    for number in range(count):
        worker = threading.Thread(target=busy if number == count // 2 else asleep)
        worker.daemon = True
        worker.start()
    while len(started) < count:
        time.sleep(0.01)
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
