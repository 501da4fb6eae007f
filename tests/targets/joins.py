# SPDX-License-Identifier: Apache-2.0
"""Threads that wait for the end of others, and some that wait for locks alike; says {thread: the one that it joins}."""

import json
import os
import sys
import threading
import time

lock = threading.Lock()
lock.acquire()


class Worker(threading.Thread):
    """A program's own join() calls the library's."""

    def join(self, timeout=None):
        threading.Thread.join(self)


class Pretender(object):
    def __init__(self, thread):
        self._ident = thread.ident

    def join(self):
        lock.acquire()


def start(name, function):
    thread = Worker(target=function, name=name)
    thread.daemon = True
    thread.start()
    return thread


def in_deadlocks():
    """
    The one has the lock that the other one waits for, and waits for that one's end: for ever, and for some time. And two
    that wait for each other's locks for some time (not 2.7, whose locks know no limit).
    """
    first, second = threading.Lock(), threading.Lock()

    def takes_both(mine, other):
        with mine:
            each_has_one.wait()
            other.acquire(timeout=1000)

    if sys.version_info > (3,):
        each_has_one = threading.Barrier(2)
        start("patient-1", lambda: takes_both(first, second))
        start("patient-2", lambda: takes_both(second, first))
    for name, limit in (("ever", None), ("a-while", 1000)):
        mine = threading.Lock()

        def takes(mine=mine):
            with mine:
                pass

        def joins(name=name, limit=limit, takes=takes, mine=mine):
            with mine:
                threading.Thread.join(start("taker-" + name, takes), limit)

        start("joiner-" + name, joins)


def main():
    if "deadlock" in sys.argv:
        in_deadlocks()
        print(json.dumps({"pid": os.getpid()}))
        sys.stdout.flush()
        time.sleep(1000)
    lasts = start("lasts", lambda: time.sleep(1000))
    joins = start("joins", lasts.join)
    start("joins-a-joiner", joins.join)
    start("pretends", Pretender(lasts).join)
    start("waits", lambda: threading.Event().wait())
    time.sleep(0.3)
    says = {"joins": "lasts", "joins-a-joiner": "joins", "pretends": None, "waits": None, "lasts": None}
    print(json.dumps({"pid": os.getpid(), "joins": says}))
    sys.stdout.flush()
    time.sleep(1000)


if __name__ == "__main__":
    main()
