# SPDX-License-Identifier: Apache-2.0
"""Threads in states that their functions' names tell: with the GIL and without, in handlers, in garbage collections."""

import gc
import sys
import threading
import time
import zlib

import expect

heap = []


def with_gil():
    sum(range(2000))


def without_gil(data):
    zlib.compress(data, 9)  # lets go of the GIL


def hold():
    while True:
        with_gil()


def hold_at_times():
    while True:
        for _ in range(50):
            with_gil()
        time.sleep(0.01)


def let_go():
    data = b"abcdefgh" * (1 << 18)
    while True:
        without_gil(data)
        if sys.version_info[0] == 2:
            time.sleep(0.0005)  # else the others starve


def burn():
    for _ in range(20):
        sum(range(2000))


def in_handler():
    burn()


def after_handler():
    burn()


def in_generator():
    yield burn()


def in_finally():
    burn()


def handle():
    while True:
        try:
            raise ValueError("x")
        except ValueError:
            in_handler()
            for _ in in_generator():
                pass
        after_handler()
        try:
            try:
                raise KeyError("y")
            finally:
                in_finally()
        except KeyError:
            pass


def collects():
    gc.collect()


def does_not_collect():
    for _ in range(20):
        burn()


def collect():
    while heap:
        collects()
        does_not_collect()


def main():
    wanted = expect.describe(__file__)
    functions = {"gil": (hold, let_go), "exception": (handle, hold_at_times), "gc": (collect, hold_at_times)}[sys.argv[1]]
    if sys.argv[1] == "gc":
        heap.extend([i] for i in range(100000))
    for function in functions:
        thread = threading.Thread(target=function)
        thread.daemon = True
        thread.start()
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
