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


def main():
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
