# SPDX-License-Identifier: Apache-2.0
"""Changes lists, dicts, sets, deques and attributes as fast as it can, in several threads; all that is ever in them are
texts that begin with "v" and numbers below 1000, and lists, tuples and dicts of these."""

import collections
import json
import os
import sys
import threading


class Thing(object):
    def __init__(self):
        self.one = 1
        self.two = "v"


class Slotted(object):
    __slots__ = ("one", "two")


def change(numbers, names, both, queue, thing, slotted):
    i = 0
    while True:
        i = (i + 1) % 1000
        text = "v%d" % i
        numbers.append(i)
        numbers[:] = numbers[-(i % 9) - 1 :]
        names[text] = [i, text]
        if i % 5 == 0:
            names.clear()
        both.add((i, text))
        if len(both) > 7:
            both.pop()
        queue.append(text)
        if len(queue) > 70:
            queue.clear()
        thing.one = {"v": i}
        thing.two = (text, text * 3)
        if i % 3 == 0:
            thing.__dict__["v%d" % (i % 4)] = i
        if i % 11 == 0:
            thing = Thing()
        slotted.one = float(i)
        slotted.two = thing.one
        deep = [[i], {text: [text]}]
        deep[0][0] = deep[1]
        # Freed and made anew at the same places, with all their items.
        equal = [float(i), float(i), float(i), float(i)]
        equal.reverse()


def main():
    shared = ([], {}, set(), collections.deque(), Thing(), Slotted())
    for _ in range(int(sys.argv[1])):
        thread = threading.Thread(target=change, args=shared)
        thread.daemon = True
        thread.start()
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    change([], {}, set(), collections.deque(), Thing(), Slotted())


main()
