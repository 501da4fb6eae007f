# SPDX-License-Identifier: Apache-2.0
"""The program that is profiled in each virtual machine. Its comments state its calls, as those of tests/targets do.

It must start with "python -S" and next to nothing of the standard library. Each function but leaf has one caller,
and which line calls dive is tied to the depth, so that every stack is known in full.
"""

import sys

DEPTH = 400  # frames of dive; compare.py reads it


def leaf():
    total = 0
    for number in range(500):  # leaf: hot
        total += number  # leaf: hot
    return total


def even():
    leaf()  # even > leaf


def odd():
    leaf()  # odd > leaf


def inner():
    leaf()  # inner > leaf
    yield 1


def outer():
    for number in inner():  # outer > inner
        yield number


def consume():
    for _ in outer():  # consume > outer
        pass


def by_key():
    #: by_key > by_key.<locals>.<lambda>; by_key.<locals>.<lambda> > leaf
    sorted([1], key=lambda value: leaf())


def bottom():
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        even()  # bottom > even
        odd()  # bottom > odd
        consume()  # bottom > consume
        by_key()  # bottom > by_key


def dive(depth):
    if depth == 1:
        bottom()  # dive > bottom
    elif depth % 3 == 0:
        dive(depth - 1)  # dive > dive
    elif depth % 3 == 1:
        dive(depth - 1)  # dive > dive
    else:
        dive(depth - 1)  # dive > dive


if __name__ == "__main__":
    dive(DEPTH)  # <module> > dive
