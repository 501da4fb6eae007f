# SPDX-License-Identifier: Apache-2.0
"""Context managers: classes' and generators', nested, left by the end, by return and by an exception."""

import contextlib

import start

THROUGH = ("contextlib.py",)
STACKS = [
    "doors nested __enter__ enter_work",
    "doors nested inside",
    "doors nested __exit__ exit_work",
    "doors early __enter__ enter_work",
    "doors early __exit__ exit_work",
    "doors broken __enter__ enter_work",
    "doors broken fail",
    "doors broken __exit__ exit_work",
    "doors generated managed before",
    "doors generated inside",
    "doors generated managed after",
]


def enter_work():
    for _ in range(5):
        pass


def exit_work():
    for _ in range(5):
        pass


def inside():
    for _ in range(5):
        pass


def before():
    pass


def after():
    pass


def fail():
    raise ValueError


class Door(object):
    def __enter__(self):
        enter_work()
        return self

    def __exit__(self, *what):
        exit_work()
        return True


@contextlib.contextmanager
def managed():
    before()
    try:
        yield 1
    finally:
        after()


def nested():
    with Door():
        with Door():
            inside()


def early():
    with Door():
        return 1


def broken():
    with Door():
        fail()


def generated():
    with managed():
        inside()


def doors():
    nested()
    early()
    broken()
    generated()


if __name__ == "__main__":
    start.forever(doors)
