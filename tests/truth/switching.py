# SPDX-License-Identifier: Apache-2.0
"""Greenlets that do nothing but switch to the next one, each from a depth of its own: a stack is one of theirs, whole.

switching.py FOLDER: where greenlet is.
"""

import functools
import sys

import start

WHEEL = "greenlet"
LEAST = 0.999  # of the samples have Python frames
ROOTS = ("red", "blue", "green", "yellow", "orange")
WHOLE = [
    ["ring", "ring_inner"],
    ["red"],
    ["blue", "blue_middle", "blue_inner"],
    ["green", "green_key", "green_middle", "green_reduce", "green_inner"],
    ["yellow", "yellow_generator", "yellow_inmost"],
    ["orange", "orange_generator"],
    ["orange", "orange_generator", "orange_inmost"],
]


def possible(names):
    """None of these functions returns, and of the generators only orange_inmost yields: a part of a stack is not a stack."""
    return names in WHOLE


def red():
    switch = NEXT["red"].switch
    while True:
        switch()


def blue_inner():
    switch = NEXT["blue"].switch
    while True:
        switch(1, 2)


def blue_middle():
    blue_inner()


def blue(*_):
    blue_middle()


def green_inner():
    switch = NEXT["green"].switch
    while True:
        switch()


def green_reduce(_, __):
    green_inner()


def green_middle():
    functools.reduce(green_reduce, [1, 2])


def green_key(_):
    green_middle()


def green(*_):
    sorted([1, 2], key=green_key)


def yellow_inmost():
    switch = NEXT["yellow"].switch
    while True:
        switch()
    yield


def yellow_generator():
    for _ in yellow_inmost():
        yield


def yellow():
    for _ in yellow_generator():
        pass


def orange_inmost():
    switch = NEXT["orange"].switch
    while True:
        switch()
        yield


def orange_generator():
    for _ in orange_inmost():
        pass
    yield


def orange():
    list(orange_generator())


def ring_inner():
    switch = NEXT["ring"].switch
    while True:
        switch()


def ring():
    ring_inner()


NEXT = {}

if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    import greenlet

    MADE_OF = [greenlet.greenlet(globals()[name]) for name in ROOTS]
    NEXT.update(zip(("ring",) + ROOTS, MADE_OF + [greenlet.getcurrent()]))
    start.forever(ring)
