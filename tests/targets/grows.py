# SPDX-License-Identifier: Apache-2.0
"""Does a fixed amount of work and ends: grows.py ROUNDS PERCENT.

even() and the others always do the same, grown() PERCENT of it. Rounds differ in length, in the same way in each run, so that no
rate of sampling keeps step with them.
"""

import random
import sys


def crunch(size):
    total = 0
    for number in range(size):
        total += number * number
    return total


def even(size):
    return crunch(size)


def grown(size):
    total = 0
    for number in range(size):
        total ^= number * number
    return total


def halve(size):
    steps = 0
    for number in range(size // 4):
        while number > 9:
            number >>= 3
            steps += 1
    return steps


def join(size):
    text = ""
    for number in range(size // 2):
        text = text[-9:] + str(number % 10)
    return text


def pick(size):
    seen = {}
    for number in range(size // 2):
        seen[number % 97] = seen.get(number % 89, 0) + 1
    return seen


def rounds(count, percent):
    lengths = random.Random(6)
    for _ in range(count):
        size = lengths.randrange(2000, 40000)
        even(size)
        halve(size)
        join(size)
        pick(size)
        grown(size * percent // 100)


if __name__ == "__main__":
    rounds(int(sys.argv[1]), int(sys.argv[2]))
