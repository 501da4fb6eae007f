# SPDX-License-Identifier: Apache-2.0
"""deep.py DEPTH: three call sites take turns, so that no frame can be missing unnoticed."""

import sys
import threading
import time

import expect

reached = threading.Event()


def bottom():
    reached.set()
    while True:
        sum(range(20000))  # bottom: hot


def dive(depth):
    if depth == 0:
        bottom()  # dive > bottom
    elif depth % 3 == 0:
        dive(depth - 1)  # dive > dive
    elif depth % 3 == 1:
        dive(depth - 1)  # dive > dive
    else:
        dive(depth - 1)  # dive > dive


def main():
    depth = int(sys.argv[1])
    wanted = expect.describe(__file__, share=0.9)
    first, second, third = sorted(wanted.calls["dive", "dive"])
    # The lines of the frames of dive that call dive, from the root on.
    wanted.more["lines"] = [(first, second, third)[n % 3] for n in range(depth, 0, -1)]
    wanted.roots = set(["dive"])
    wanted.through = ["threading.py"]
    sys.setrecursionlimit(1000000)
    threading.stack_size(1 << 30)
    worker = threading.Thread(target=dive, args=(depth,))
    worker.daemon = True
    worker.start()
    while not reached.is_set():
        time.sleep(0.01)
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
