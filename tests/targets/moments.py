# SPDX-License-Identifier: Apache-2.0
"""Threads that are in calls of many kinds, and threads that stand, for a snapshot that several programs take of one moment.

Says the first line of each function: in it is a function that has not begun.
"""

import contextlib
import functools
import json
import os
import sys
import threading
import types


def leaf(number):
    total = 0
    for i in range(200):
        total += i * number
    return total


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    return leaf(depth)


def numbers(count):
    for i in range(count):
        yield leaf(i)


def delegates(count):
    for one in numbers(count):
        yield one


def consumes():
    return sum(delegates(5))


def by_c():
    return sorted(range(5), key=leaf)


def reduces(one):
    return functools.reduce(lambda left, right: leaf(left % 7) + right, range(4), one)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def comprehends(number):
    return [leaf(i) for i in range(number)]


class Thing(object):
    def __init__(self):
        self.value = self.method(3)

    def method(self, number):
        return leaf(number)

    def __enter__(self):
        return leaf(1)

    def __exit__(self, *error):
        return leaf(2) < 0

    @property
    def attribute(self):
        return leaf(4)

    @classmethod
    def made(cls):
        return cls().attribute


@contextlib.contextmanager
def context():
    yield leaf(5)


def uses_contexts():
    with Thing(), context():
        return leaf(6)


def raises(depth):
    try:
        if not depth:
            raise ValueError
        raises(depth - 1)
    finally:
        leaf(7)


def catches():
    try:
        raises(3)
    except ValueError:
        return eval("leaf(8)")


WORKS = [
    functools.partial(recurse, 30),
    consumes,
    by_c,
    functools.partial(reduces, 1),
    functools.partial(comprehends, 4),
    Thing,
    Thing.made,
    uses_contexts,
    catches,
]


def busy():
    while True:
        for work in WORKS:
            work()


def stands(event):
    event.wait(1000)


def first_lines():
    """{name: first lines of the functions of this file that are called so}"""
    with open(os.path.abspath(__file__.replace(".pyc", ".py"))) as source:
        pending = [compile(source.read(), __file__, "exec")]
    found = {}
    while pending:
        code = pending.pop()
        found.setdefault(code.co_name, []).append(code.co_firstlineno)
        pending.extend(const for const in code.co_consts if isinstance(const, types.CodeType))
    return found


def main():
    event = threading.Event()
    for number in range(3):
        for name, work in ("busy", busy), ("stands", functools.partial(stands, event)):
            thread = threading.Thread(target=work, name="%s-%d" % (name, number))
            thread.daemon = True
            thread.start()
    print(json.dumps({"pid": os.getpid(), "first": first_lines()}))
    sys.stdout.flush()
    busy()


if __name__ == "__main__":
    main()
