# SPDX-License-Identifier: Apache-2.0
"""Threads with names of Python's own: given, given later, made up, of a class of its own, and started beside threading."""

import sys
import threading
import time

try:
    import _thread as raw
except ImportError:
    import thread as raw

import expect


class Worker(threading.Thread):
    """Python made its keys of attributes for threads without these."""

    def __init__(self):
        super(Worker, self).__init__(name="of a class")
        for i in range(40):
            setattr(self, "more_%d" % i, i)

    def run(self):
        of_class()


def spin():
    while True:
        sum(range(20000))
        time.sleep(0.002)  # so many threads would leave no CPU to anybody else


def given():
    spin()


def unicode_name():
    spin()


def made_up():
    spin()


def of_class():
    spin()


def renamed():
    threading.current_thread().name = "renamed later"
    spin()


def seen():
    """Its instance's __dict__ has been asked for."""
    threading.current_thread().__dict__
    spin()


def unknown():
    spin()


def main():
    wanted = expect.describe(__file__)
    name = b"unic\xc3\xb6de \xe2\x9c\x93 with a rather long name".decode("utf-8")
    threads = [
        threading.Thread(target=given, name="given; by name"),
        threading.Thread(target=unicode_name, name=name if sys.version_info[0] > 2 else "plain"),
        threading.Thread(target=made_up),
        threading.Thread(target=renamed, name="before"),
        threading.Thread(target=seen, name="with a dict"),
        Worker(),
    ]
    for thread in threads:
        thread.daemon = True
        thread.start()
    raw.start_new_thread(unknown, ())
    time.sleep(0.2)
    wanted.more["names"] = {
        "given": "given; by name",
        "unicode_name": name if sys.version_info[0] > 2 else "plain",
        "made_up": threads[2].name,
        "renamed": "renamed later",
        "seen": "with a dict",
        "of_class": "of a class",
    }
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
