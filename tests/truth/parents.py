# SPDX-License-Identifier: Apache-2.0
"""Two parents alternate over one shared leaf."""

import start

STACKS = [
    "both left left_inner shared leaf",
    "both right right_inner right_inmost shared leaf",
]


def leaf():
    for _ in range(12):
        pass


def shared():
    leaf()


def left_inner():
    shared()


def left():
    left_inner()


def right_inmost():
    shared()


def right_inner():
    right_inmost()


def right():
    right_inner()


def both():
    left()
    right()


if __name__ == "__main__":
    start.forever(both)
