# SPDX-License-Identifier: Apache-2.0
"""Greenlets that are made, switch to and fro a few times, and end, by returning or by an exception.

greenlets.py FOLDER: where greenlet is.
"""

import sys

import start

WHEEL = "greenlet"
ROOTS = ("red", "blue", "green", "yield_all", "kill")
STACKS = [
    "both by_hand",
    "both thrown",
    "both nested",
    "red red_middle red_inner",
    "blue blue_inner blue_key blue_inmost",
    "green green_middle green_inner",
    "yield_all numbers",
    "kill",
]


def red_inner():
    for _ in range(3):
        greenlet.getcurrent().parent.switch()


def red_middle():
    red_inner()


def red():
    red_middle()


def blue_inmost():
    greenlet.getcurrent().parent.switch()


def blue_key(_):
    blue_inmost()
    return 0


def blue_inner():
    sorted((1, 2, 3), key=blue_key)


def blue():
    blue_inner()


def by_hand():
    running = [greenlet.greenlet(red), greenlet.greenlet(blue)]
    while running:
        for each in list(running):
            each.switch()
            if each.dead:
                running.remove(each)


def numbers():
    for number in range(3):
        greenlet.getcurrent().parent.switch(number)
        yield number


def yield_all():
    for _ in numbers():
        pass


def green_inner():
    greenlet.getcurrent().parent.switch()


def green_middle():
    try:
        green_inner()
    except ValueError:
        pass
    inner = greenlet.greenlet(yield_all)  # whose parent is this one
    while not inner.dead:
        inner.switch()


def green():
    green_middle()


def thrown():
    each = greenlet.greenlet(green)
    each.switch()
    each.throw(ValueError)


def kill():
    each = greenlet.greenlet(red)
    each.switch()  # ends by GreenletExit, when nothing refers to it any more


def nested():
    greenlet.greenlet(kill).switch()


def both():
    by_hand()
    thrown()
    nested()


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    import greenlet

    start.forever(both)
