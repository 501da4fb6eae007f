# SPDX-License-Identifier: Apache-2.0
"""Exceptions that unwind 50 frames of three functions in turn, and handlers on the way."""

import start

LINELESS = True  # from 3.10 on, the instructions that end a handler


def possible(names):
    if names[:1] == ["attempts"]:
        if names[1:2] == ["whole"]:
            below, handler, most = names[2:], "after_whole", 51
        elif names[1:2] == ["half"]:
            below, handler, most = names[2:], "after_half", 51
        else:
            return len(names) == 1
        if below == [handler]:
            return True
        if below[-1:] == ["cleanup"]:
            below = below[:-1]
            if len(below) % 3 != 2:
                return False
        turn = ("fall_a", "fall_b", "fall_c")
        return len(below) <= most and all(name == turn[i % 3] for i, name in enumerate(below))
    return False


def fall_a(depth):
    if depth == 0:
        raise ValueError(depth)
    fall_b(depth - 1)


def fall_b(depth):
    try:
        if depth == 0:
            raise KeyError(depth)
        fall_c(depth - 1)
    finally:
        cleanup()


def fall_c(depth):
    if depth == 0:
        raise IndexError(depth)
    fall_a(depth - 1)


def cleanup():
    pass


def after_whole():
    for _ in range(30):
        pass


def after_half():
    for _ in range(30):
        pass


def whole():
    try:
        fall_a(50)
    except LookupError:
        after_whole()


def half():
    try:
        fall_a(25)
    except (ValueError, LookupError):
        after_half()


def attempts():
    whole()
    half()


if __name__ == "__main__":
    start.forever(attempts)
