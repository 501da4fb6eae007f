# SPDX-License-Identifier: Apache-2.0
"""mortal.py SECONDS: works, and ends in the middle of the run, with all its code objects."""

import os
import sys
import time

import expect


def burn():
    sum(range(20000))  # burn: hot


def last_words():
    sum(range(20000))  # last_words: hot


def main(end):
    while time.time() < end - 0.3:
        burn()  # main > burn
    while time.time() < end:
        last_words()  # main > last_words
    os._exit(7)


if __name__ == "__main__":
    expect.ready(expect.describe(__file__))
    main(time.time() + float(sys.argv[1]))  # <module> > main
