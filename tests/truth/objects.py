# SPDX-License-Identifier: Apache-2.0
"""Chains of __init__, __call__, properties, operators and finalizers, which the interpreter calls by itself."""

import start

STACKS = [
    "work make __init__ prepare fill",
    "work use __call__ value compute",
    "work add __add__ make __init__ prepare fill",
    "work look __getattr__ missing",
    "work walk __iter__",
    "work walk __next__ step",
    "work drop __del__ last_words",
    "work drop __init__",
]


def fill():
    for _ in range(4):
        pass


def compute():
    for _ in range(4):
        pass


def missing():
    return 1


def step():
    pass


def last_words():
    for _ in range(4):
        pass


class Base(object):
    def __init__(self):
        self.prepare()

    def prepare(self):
        fill()


class Thing(Base):
    left = 0

    @property
    def value(self):
        return compute()

    def __call__(self):
        return self.value

    def __add__(self, other):
        return make()

    def __getattr__(self, name):
        return missing()

    def __iter__(self):
        self.left = 10
        return self

    def __next__(self):
        step()
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self

    next = __next__


class Mortal(object):
    def __init__(self):
        self.alive = True

    def __del__(self):
        last_words()


def make():
    return Thing()


def use(thing):
    thing()


def add(thing):
    return thing + thing


def look(thing):
    return thing.nothing


def walk(thing):
    for _ in thing:
        pass


def drop():
    Mortal()


def work():
    thing = make()
    use(thing)
    add(thing)
    look(thing)
    walk(thing)
    drop()


if __name__ == "__main__":
    start.forever(work)
