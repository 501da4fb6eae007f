# SPDX-License-Identifier: Apache-2.0
"""
Threads that wait for locks, each pair in a circle of its own; says who waits for what whom has.

    deadlocks.py            with statements, acquire(), RLocks, conditions, three in a circle, one with itself
    deadlocks.py mutex      one has a mutex of C and waits for the GIL, the other has the GIL and waits for the mutex
"""

import json
import os
import sys
import threading
import time

waits = {}  # name of a thread: name of the one that has what it waits for, None where nobody can know


class Met(object):
    """Both have their first lock before one asks for the other's."""

    def __init__(self, count):
        self.events = [threading.Event() for _ in range(count)]

    def meet(self, index):
        self.events[index].set()
        for event in self.events:
            event.wait()


def start(name, has, function, *args):
    waits[name] = has
    thread = threading.Thread(target=function, args=args, name=name)
    thread.daemon = True
    thread.start()
    return thread


def with_both(first, second, met, index):
    for _ in range(2):
        with threading.Lock():  # what was left before is not held
            pass
    with first:
        try:
            met.meet(index)
            with second:
                pass
        finally:
            pass


def with_then_acquire(first, second, met, index):
    with first:
        met.meet(index)
        second.acquire()


def acquire_both(first, second, met, index):
    first.acquire()
    met.meet(index)
    second.acquire()


def circle(name, function, locks, known=True):
    met = Met(len(locks))
    for i, first in enumerate(locks):
        after = (i + 1) % len(locks)
        start("%s-%d" % (name, i), "%s-%d" % (name, after) if known else None, function, first, locks[after], met, i)


def twice(lock):
    with lock:
        with lock:
            pass


def holds(lock, ready):
    with lock:
        ready.set()
        time.sleep(1000)


def takes(lock):
    with lock:
        pass


def spin():
    while True:
        for _ in range(1000):
            pass


def spins(lock, ready):
    with lock:
        ready.set()
        spin()


def gives_back(condition, ready):
    """Waits inside the with statement, and so has given the lock back."""
    with condition.lock:
        ready.set()
        condition.wait()


def gives_inside(first, second, given, asks):
    """Has no lock any more when it asks for the other one."""
    with first:
        first.release()
        given.set()
        asks.wait()
        with second:
            pass


def exits_inside(first, second, given, asks):
    """The same by the method that the with statement calls."""
    with first:
        first.__exit__(None, None, None)
        given.set()
        asks.wait()
        with second:
            pass


def asks_back(first, second, has, taken):
    with second:
        has.set()
        taken.wait()
        with first:
            pass


def given_inside(name, taker, gives=gives_inside):
    """No circle: a third thread has the lock that the first has given back, and goes on one day."""
    first, second = threading.Lock(), threading.Lock()
    given, has, taken = threading.Event(), threading.Event(), threading.Event()
    start(name + "-gives", name + "-asks", gives, first, second, given, has)
    given.wait()
    if taker:
        start(taker, None, holds, first, taken)
        taken.wait()
    else:
        first.acquire()
        taken.set()
    start(name + "-asks", taker, asks_back, first, second, has, taken)


def many():
    ready = [threading.Event() for _ in range(4)]
    circle("with", with_both, [threading.Lock(), threading.Lock()])
    circle("three", with_both, [threading.Lock() for _ in range(3)])
    circle("acquire", with_then_acquire, [threading.Lock(), threading.Lock()])
    # In 2.7 an RLock is written in Python, and a condition is another class. A Lock does not say who has it.
    old = sys.version_info[0] == 2
    circle("rlock", with_both, [threading.RLock(), threading.RLock()], not old)
    circle("rlock-acquire", acquire_both, [threading.RLock(), threading.RLock()], not old)
    circle("condition", with_both, [threading.Condition(), threading.Condition(threading.Lock())], not old)
    circle("bare", acquire_both, [threading.Lock(), threading.Lock()], False)
    start("twice", "twice", twice, threading.Lock())
    one, two = threading.Lock(), threading.Lock()
    start("holder", None, holds, one, ready[0])
    start("spinner", None, spins, two, ready[1])
    ready[0].wait()
    ready[1].wait()
    start("asks-holder", "holder", takes, one)
    start("asks-spinner", "spinner", takes, two)
    # One has given it back while it waits, and a third has it by acquire(): nobody can know.
    lock = threading.Lock()
    condition = threading.Condition(lock)
    condition.lock = lock
    start("gives-back", None, gives_back, condition, ready[2])
    ready[2].wait()
    lock.acquire()
    start("asks-given-back", None, takes, lock)
    given_inside("acquired", None)
    given_inside("taken", "taker")
    given_inside("exited", None, exits_inside)


def mutex():
    import ctypes

    buffer = ctypes.create_string_buffer(64)
    releases = ctypes.CDLL(None).pthread_mutex_lock
    keeps = ctypes.PyDLL(None).pthread_mutex_lock
    has = threading.Event()

    def first():
        releases(buffer)
        has.set()
        spin()

    def second():
        has.wait()
        keeps(buffer)

    start("has-mutex", "has-gil", first)
    start("has-gil", "has-mutex", second)


def say():
    print(json.dumps({"pid": os.getpid(), "waits": waits}))
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["mutex"]:
        waits.update({"has-mutex": "has-gil", "has-gil": "has-mutex"})
        say()  # the GIL will not be given back
        mutex()
    else:
        many()
        time.sleep(0.5)  # all of them stand
        say()
    time.sleep(1000)
