# SPDX-License-Identifier: Apache-2.0
"""Four threads, each with its own functions: no stack has functions of two. With and without a GIL."""

import start

STACKS = [
    "north north_1 north_2 north_3",
    "east east_1 east_2 east_3 east_4",
    "south south_1 south_2",
    "west west_1 west_1 west_1 west_1 west_2",
]
THREADED = True


def north_3():
    for _ in range(20):
        pass


def north_2():
    north_3()


def north_1():
    north_2()


def north():
    north_1()


def east_4():
    for _ in range(20):
        pass


def east_3(a, b):
    east_4()


def east_2(a):
    east_3(a, a)


def east_1():
    east_2(1)


def east():
    east_1()


def south_2(*args):
    for _ in range(20):
        pass


def south_1(*args):
    south_2(*args)


def south():
    south_1(1, 2, 3, 4, 5, 6)


def west_2():
    for _ in range(20):
        pass


def west_1(depth):
    if depth:
        west_1(depth - 1)
    else:
        west_2()


def west():
    west_1(3)


if __name__ == "__main__":
    start.forever(west, north, east, south)
