# SPDX-License-Identifier: Apache-2.0
"""The simplest busy program: three functions, one hot line.

spin.py --nap=SECONDS: it sleeps so long for each call, where a test wants a program at work and not all of a CPU.
"""

import sys
import time

import expect

NAP = sum(float(word[6:]) for word in sys.argv[1:] if word.startswith("--nap="))


def inner():
    sum(range(20000))  # inner: hot


def outer():
    calls = 0
    while True:
        inner()  # outer > inner
        calls += 1
        if NAP and not calls % 10:
            time.sleep(10 * NAP)  # going to sleep and waking up is time of this line


if __name__ == "__main__":
    expect.ready(expect.describe(__file__))
    outer()  # <module> > outer
