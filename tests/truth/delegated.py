# SPDX-License-Identifier: Apache-2.0
"""Nested "yield from": values pass through without the frames between being run one by one."""

import start

NEEDS = (3, 6)
STACKS = [
    "alternate climb_a outer_a middle_a inner_a work_a",
    "alternate climb_b outer_b middle_b inner_b work_b",
    # 3.11 and later make a generator on a frame of its own.
    "alternate outer_a",
    "alternate outer_b",
    "alternate deep chain*20",
]


def work_a():
    for _ in range(5):
        pass


def work_b():
    for _ in range(5):
        pass


def inner_a():
    for item in range(4):
        work_a()
        yield item


def middle_a():
    yield from inner_a()
    yield from inner_a()


def outer_a():
    yield from middle_a()


def inner_b():
    for item in range(4):
        yield item
        work_b()


def middle_b():
    yield from inner_b()
    return 1


def outer_b():
    yield (yield from middle_b())


def climb_a(generator):
    return next(generator, None)


def climb_b(generator):
    return next(generator, None)


def chain(depth):
    if depth:
        yield from chain(depth - 1)
    else:
        yield from range(6)


def deep():
    for _ in chain(19):
        pass


def alternate():
    one, two = outer_a(), outer_b()
    for _ in range(12):
        climb_a(one)
        climb_b(two)
    deep()


if __name__ == "__main__":
    start.forever(alternate)
