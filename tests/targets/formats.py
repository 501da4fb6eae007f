# SPDX-License-Identifier: Apache-2.0
"""Work with a shape for readers of profiles: recursion, circles of calls, lambdas of one name, two named threads,
and a thread that Python does not know."""
import ctypes
import sys
import threading
import time


def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total


def dive(depth):
    if depth == 0:
        return leaf(300)
    return dive(depth - 1) + 1


def even(n):
    return leaf(20) if n == 0 else odd(n - 1)


def odd(n):
    return leaf(20) if n == 0 else even(n - 1)


class Shape:
    def area(self):
        square = sum(map(lambda n: n * n, range(200)))
        return square + sum(map(lambda n: n + n, range(200)))


def rename(name):
    """What the kernel calls this thread; Python tells it only from 3.14 on."""
    with open("/proc/thread-self/comm", "w") as comm:
        comm.write(name)


def work(end, name):
    rename(name)
    while time.time() < end:
        dive(12)
        even(9)
        Shape().area()
        leaf(500)


def main():
    end = time.time() + float(sys.argv[1])
    if len(sys.argv) > 2:  # build/native.so: a thread without Python
        ctypes.CDLL(sys.argv[2]).native_start(b"pool 1", int(300 * float(sys.argv[1])), 0)
    worker = threading.Thread(target=work, args=(end, "worker"))
    worker.start()
    work(end, "boss")
    worker.join()


main()
