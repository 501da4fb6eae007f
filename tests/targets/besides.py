# SPDX-License-Identifier: Apache-2.0
"""
Threads that stand still, and say of themselves what they do besides: handle an exception, are daemons, collect garbage.
With "alone" the main thread is the only one, and stands in a finalizer of a collection.
"""

import gc
import json
import os
import sys
import threading
import time

stood = {}
ready = threading.Semaphore(0)


class Mine(Exception):
    pass


class Finalized(object):
    def __del__(self):
        stand()


def stand():
    """The last thing that a thread does: exc_info() is what it handles for as long as the program runs."""
    kind = sys.exc_info()[0]
    thread = threading.current_thread()
    stood[thread.name] = {"exception": kind.__name__ if kind else None, "daemon": thread.daemon}
    ready.release()
    time.sleep(1000)


def in_handler():
    try:
        {}["missing"]
    except KeyError:
        stand()


def in_nested_handler():
    try:
        raise ValueError("outer")
    except ValueError:
        try:
            raise Mine("inner")
        except Mine:
            stand()


def generate():
    yield 1
    stand()


def in_generator():
    """The generator has no exception of its own, and its caller handles one."""
    numbers = generate()
    next(numbers)
    try:
        raise ValueError("outer")
    except ValueError:
        next(numbers)


def descend(depth):
    yield 1
    for number in descend(depth - 1) if depth else ():
        yield number
    if not depth:
        stand()


def below_generators():
    """Each has a place of its own for an exception that it handles, and none handles one."""
    try:
        raise Mine("outer")
    except Mine:
        for _ in descend(40):
            pass


def in_finally():
    try:
        raise Mine("passes through")
    finally:
        stand()


def after_handler():
    try:
        raise ValueError("over")
    except ValueError:
        pass
    stand()


def circle():
    one = Finalized()
    one.me = one


def in_finalizer():
    circle()
    gc.collect()


def main():
    gc.disable()
    if sys.argv[1:] == ["alone"]:
        circle()
        # Says that it is ready from inside of the finalizer.
        Finalized.__del__ = lambda self: (sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n"), sys.stdout.flush(), stand())
        gc.collect()
    threads = [in_handler, in_nested_handler, in_generator, in_finally, after_handler, below_generators]
    if sys.argv[1:] == ["collects"]:
        threads.append(in_finalizer)
    for number, function in enumerate(threads):
        thread = threading.Thread(target=function, name=function.__name__)
        thread.daemon = number % 2 == 0
        thread.start()
        ready.acquire()
    print(json.dumps({"pid": os.getpid(), "stood": stood}))
    sys.stdout.flush()
    time.sleep(1000)


if __name__ == "__main__":
    main()
