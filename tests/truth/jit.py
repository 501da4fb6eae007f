# SPDX-License-Identifier: Apache-2.0
"""Calls, generators and callbacks in loops that the JIT compiles: the leaf may lack its line, its callers do not."""

import os
import sys

import start

NEEDS = (3, 14)
LINELESS = True
CALLS = {}  # (caller, function): the line of the call
PARTS = [
    ["work", "numbers", "double"],
    ["work", "numbers", "through", "double"],
    ["work", "items", "produce", "double"],
    ["work", "ordered", "<lambda>", "double"],
]


def line():
    return sys._getframe(1).f_lineno


def possible_frames(frames):
    names = [frame.name for frame in frames]
    if not any(names == part[: len(names)] for part in PARTS):
        return False
    return all(
        caller.line in CALLS[caller.name, callee.name] for caller, callee in zip(frames, frames[1:])
    ) and all(frame.line is not None for frame in frames[:-1])


def double(n):
    m = n * 2
    m ^= 1
    return m


def through(n):
    n += 1
    return double(n)


CALLS["through", "double"] = {line() - 3}


def numbers():
    i = 0
    while i < 300:
        double(i)
        through(i)
        i += 1


CALLS["numbers", "double"] = {line() - 5}
CALLS["numbers", "through"] = {line() - 5}


def produce():
    for i in range(100):
        yield double(i)


CALLS["produce", "double"] = {line() - 3}


def items():
    total = 0
    for item in produce():
        total += item


CALLS["items", "produce"] = {line() - 4}


def ordered():
    sorted(range(30), key=lambda n: -double(n))


CALLS["ordered", "<lambda>"] = CALLS["<lambda>", "double"] = {line() - 3}


def work():
    numbers()
    items()
    ordered()


CALLS["work", "numbers"] = {line() - 5}
CALLS["work", "items"] = {line() - 5}
CALLS["work", "ordered"] = {line() - 5}

if __name__ == "__main__":
    if os.environ.get("PYTHON_JIT") != "1":
        os.environ["PYTHON_JIT"] = "1"
        os.execv(sys.executable, [sys.executable] + sys.argv)
    start.forever(work)
