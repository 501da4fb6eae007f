# SPDX-License-Identifier: Apache-2.0
"""
Greenlets that wait in places that their names tell, in two threads; says which there are.

    greenlets.py FOLDER stand      raw ones and, where there is gevent in the folder, its own
    greenlets.py FOLDER exposed    likewise; their frames were looked at from the program (gr_frame)
    greenlets.py FOLDER busy       greenlets that switch all the time: a_N calls b_N calls c_N, and never another number
"""

import json
import os
import sys
import threading
import time

sys.path.append(sys.argv[1])

import greenlet  # noqa: E402

kept = []
said = {}


class Mine(greenlet.greenlet):
    pass


def back():
    greenlet.getcurrent().parent.switch()


def one():
    back()


def down(n):
    if n:
        down(n - 1)
    else:
        back()


def by_key(_):
    back()
    return 0


def through_c():
    sorted([1, 2], key=by_key)


def generates():
    yield back()


def through_generator():
    for _ in generates():
        pass


def in_handler():
    try:
        raise KeyError
    except KeyError:
        back()


def ends():
    pass


def begin(stacks, kind, function, *args):
    made = kind(function)
    made.switch(*args)
    kept.append(made)
    return made


def many(name):
    """Begins greenlets in this thread and says their stacks, the outermost function first."""
    stacks = said.setdefault(name, {})
    for kind, chain, function, args in [
        (greenlet.greenlet, ["one", "back"], one, ()),
        (greenlet.greenlet, ["one", "back"], one, ()),
        (Mine, ["one", "back"], one, ()),
        (Mine, ["down"] * 31 + ["back"], down, (30,)),
        (Mine, ["through_c", "by_key", "back"], through_c, ()),
        (Mine, ["through_generator", "generates", "back"], through_generator, ()),
        (Mine, ["in_handler", "back"], in_handler, ()),
    ]:
        made = begin(stacks, kind, function, *args)
        stacks[id(made)] = chain
    begin(stacks, Mine, ends)
    kept.append(Mine(one))  # has not begun
    if "exposed" in sys.argv:
        for made in [each for each in kept if isinstance(each, greenlet.greenlet)]:
            assert made.gr_frame or made.dead or not made
    stacks[id(greenlet.getcurrent())] = None


def sleeps(ready):
    ready.set()
    time.sleep(1000)


def thread(name, ready):
    many(name)
    begin(None, Mine, sleeps, ready)


def forgotten():
    made = begin({}, Mine, one)
    kept.append((made, down))  # it outlives its thread, whose C stack the next one gets


def stand():
    early = threading.Thread(target=forgotten)
    early.start()
    early.join()
    ready = threading.Event()
    other = threading.Thread(target=thread, args=("other", ready), name="other")
    other.daemon = True
    other.start()
    ready.wait()
    many("MainThread")
    print(json.dumps({"pid": os.getpid(), "greenlets": said}))
    sys.stdout.flush()
    begin(None, Mine, time.sleep, 1000)


BUSY = """
def c_%d(n):
    greenlet.getcurrent().parent.switch()
    return n
def b_%d(n):
    for i in range(n):
        c_%d(i)
def a_%d():
    while True:
        b_%d(3)
        for _ in map(b_%d, [1, 2]):
            pass
"""


def busy():
    for i in range(20):
        exec(BUSY % ((i,) * 6), globals())
    made = [greenlet.greenlet(globals()["a_%d" % i]) for i in range(20)]
    print(json.dumps({"pid": os.getpid()}))
    sys.stdout.flush()
    while True:
        for each in made:
            each.switch()


if __name__ == "__main__":
    busy() if sys.argv[2] == "busy" else stand()
