# SPDX-License-Identifier: Apache-2.0
"""mortal.py SECONDS: works for that much CPU time, and ends in the middle of the run, with all its code objects."""

import os
import sys
import time

import expect

clock = getattr(time, "process_time", None) or time.clock  # Python 2.7


def burn():
    sum(range(20000))  # burn: hot


def last_words():
    sum(range(20000))  # last_words: hot


def main(end):
    while clock() < end - 0.3:
        burn()  # main > burn
    while clock() < end:
        last_words()  # main > last_words
    os._exit(7)


if __name__ == "__main__":
    expect.ready(expect.describe(__file__))
    main(clock() + float(sys.argv[1]))  # <module> > main
