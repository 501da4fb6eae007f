# SPDX-License-Identifier: Apache-2.0
"""The simplest busy program: three functions, one hot line."""

import expect


def inner():
    sum(range(20000))  # inner: hot


def outer():
    while True:
        inner()  # outer > inner


if __name__ == "__main__":
    expect.ready(expect.describe(__file__))
    outer()  # <module> > outer
