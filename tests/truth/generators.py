# SPDX-License-Identifier: Apache-2.0
"""Generators that ping-pong: each is resumed by its own caller and works through its own helper; and nested ones."""

import start

STACKS = [
    "match serve ping ping_work",
    "match answer pong pong_work",
    # 3.11 and later make a generator on a frame of its own.
    "match ping",
    "match pong",
    "match end ping",
    "match end pong",
    "match nested tree*7",
    "match expressions <genexpr> twice",
]


def ping_work():
    for _ in range(5):
        pass


def pong_work():
    for _ in range(5):
        pass


def ping():
    while True:
        ping_work()
        yield 1


def pong():
    while True:
        yield 2
        pong_work()


def serve(generator):
    next(generator)


def answer(generator):
    next(generator)


def end(generator):
    generator.close()


def tree(depth):
    if depth:
        for item in tree(depth - 1):
            yield item
    else:
        for item in range(6):
            yield item


def nested():
    for _ in tree(6):
        pass


def twice(value):
    return value * 2


def expressions():
    return sum(twice(value) for value in range(20))


def match():
    one = ping()
    two = pong()
    for _ in range(30):
        serve(one)
        answer(two)
    end(one)
    end(two)
    nested()
    expressions()


if __name__ == "__main__":
    start.forever(match)
