# SPDX-License-Identifier: Apache-2.0
"""Recursion that grows and shrinks, even and odd in turn: even() is only ever at an even depth."""

import start


def possible(names):
    if names[0] != "tide":
        return False
    if names[-1] == "turn":
        names = names[:-1]
    return len(names) <= 62 and all(
        name == ("odd" if depth % 2 else "even") for depth, name in enumerate(names[1:])
    )


def turn():
    for _ in range(5):
        pass


def even(depth):
    if depth:
        odd(depth - 1)
    turn()


def odd(depth):
    turn()
    if depth:
        even(depth - 1)


def tide():
    for depth in range(0, 60, 3):
        even(depth)
    for depth in range(60, 0, -7):
        even(depth)


if __name__ == "__main__":
    start.forever(tide)
