# SPDX-License-Identifier: Apache-2.0
"""Two threads give their variables new values without a pause, which lie where others' have just been."""

import json
import os
import sys
import threading
import time


class Thing(object):
    pass


class Slotted(object):
    __slots__ = ("up", "down")


def fill(n, *values):
    rest = 0
    for i in range(30):
        rest += i


def texts():
    n = 0
    while True:
        n += 1
        text = "%d:%d" % (n, n)
        big = n * 10**30
        data = b"%d|%d" % (n, n) if sys.version_info[0] > 2 else text
        pair = (n, -n)
        nested = [(n, [n, -n])]
        entries = {"a": n, "b": n}
        fill(n, text, big, data, pair, nested, entries)


def numbers():
    """The shortest of loops: ints and floats change places."""
    up = 0
    down = 0
    half = 0.5
    while True:
        up += 1
        down -= 1
        half += 1


def parts():
    """The variables stay, and what is in them changes."""
    thing = Thing()
    slotted = Slotted()
    thing.up = slotted.up = 1
    thing.down = slotted.down = -1
    both = [1, -1]
    entries = {"up": 1, "down": -1}
    cell = 0

    def inner():
        return cell

    while True:
        thing.up += 1
        thing.down -= 1
        slotted.up += 1
        slotted.down -= 1
        both[0] += 1
        both[1] -= 1
        entries["up"] += 1
        entries["down"] -= 1
        cell += 1


MANY = 150
DEFINES = """
def naps({numbers}):
    time.sleep(0.0001)
def others({texts}):
    return inner()
def inner({texts}):
    return [a0]
""".format(numbers=", ".join("a%d=1.5" % i for i in range(MANY)), texts=", ".join("a%d='t'" % i for i in range(MANY)))


def turns():
    """One function sleeps again and again, and others run between, with their variables in the same place."""
    names = {"time": time}
    exec(DEFINES, names)
    while True:
        names["naps"]()
        for _ in range(100):
            names["others"]()


if __name__ == "__main__":
    run = {"texts": texts, "numbers": numbers, "parts": parts, "naps": turns}[sys.argv[1]]
    thread = threading.Thread(target=run)
    thread.daemon = True
    thread.start()
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    run()
