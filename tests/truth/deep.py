# SPDX-License-Identifier: Apache-2.0
"""Recursion through 900 frames whose memory the next descent, by other functions, uses again."""

import sys

import start

STACKS = [
    "dives shallow left*1-900 left_bottom",
    "dives shallow right*1-900 right_bottom",
]


def left_bottom():
    for _ in range(3000):
        pass


def right_bottom():
    for _ in range(3000):
        pass


def left(depth):
    if depth > 1:
        left(depth - 1)
    else:
        left_bottom()


def right(depth, *more):
    if depth > 1:
        right(depth - 1, depth, depth)
    else:
        right_bottom()


def shallow(one, depth):
    one(depth)


def dives():
    for depth in (900, 100, 700):
        shallow(left, depth)
        shallow(right, depth)


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    start.forever(dives)
