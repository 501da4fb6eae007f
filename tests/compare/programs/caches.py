# SPDX-License-Identifier: Apache-2.0
"""Does a fixed amount of work and ends. parse() takes longer where the variable says so, and digest() waits for memory.

So a load beside it that fills the caches slows digest() alone.
"""
import os
import random

import slower

SLOTS = 1 << 20
ROUNDS = 420


def chain():
    """A permutation of one circle, without a pattern that the CPU could foresee."""
    return [(i * 1664525 + 1013904223) % SLOTS for i in range(SLOTS)]


def parse(size):
    total = 0
    for number in range(size):
        total ^= number * number
    return total


def digest(links, at, size):
    for _ in range(size):
        at = links[at]
    return at


def render(size):
    text = ""
    for number in range(size):
        text = text[-9:] + str(number % 10)
    return text


def count(size):
    seen = {}
    for number in range(size):
        seen[number % 97] = seen.get(number % 89, 0) + 1
    return seen


def scan(size):
    steps = 0
    for number in range(size // 4):
        while number > 9:
            number >>= 3
            steps += 1
    return steps


def main():
    links, at, lengths = chain(), 0, random.Random(6)
    more = 1 + float(os.environ[slower.VARIABLE]) / 100
    for _ in range(ROUNDS):
        size = lengths.randrange(2000, 40000)
        parse(int(3.2 * size * more))
        at = digest(links, at, size // 10)
        render(size * 9 // 20)
        count(size * 7 // 10)
        scan(size)


if __name__ == "__main__":
    main()
