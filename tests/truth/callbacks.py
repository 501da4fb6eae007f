# SPDX-License-Identifier: Apache-2.0
"""Callbacks through C (sorted, map, functools.reduce), with two keys in turn."""

import functools

import start

THROUGH = ("functools.py",)  # cmp_to_key in 2.7
STACKS = [
    "all_of by_low low low_digit",
    "all_of by_high high high_digit high_inmost",
    "all_of mapped <lambda> low low_digit",
    "all_of mapped <lambda> high high_digit high_inmost",
    "all_of folded plus",
    "all_of folded times low low_digit",
    "all_of compared compare",
]
VALUES = list(range(40))


def low_digit(value):
    return value % 10


def low(value):
    return low_digit(value)


def high_inmost(value):
    return value // 10


def high_digit(value):
    return high_inmost(value)


def high(value):
    return high_digit(value)


def by_low():
    sorted(VALUES, key=low)


def by_high():
    sorted(VALUES, key=high)


def mapped():
    list(map(lambda value: low(value) + high(value), VALUES))


def plus(one, two):
    return one + two


def times(one, two):
    return low(one) * two


def folded():
    functools.reduce(plus, VALUES)
    functools.reduce(times, VALUES)


def compare(one, two):
    return (one > two) - (one < two)


def compared():
    sorted(VALUES, key=functools.cmp_to_key(compare))


def all_of():
    by_low()
    by_high()
    mapped()
    folded()
    compared()


if __name__ == "__main__":
    start.forever(all_of)
