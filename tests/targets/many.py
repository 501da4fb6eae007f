# SPDX-License-Identifier: Apache-2.0
"""many.py IDLE BUSY MILLISECONDS: IDLE processes that sleep, and BUSY that take so much CPU time and end, at the word.

All are there when the first line is said; the sleepers are ended when the busy ones are through.
"""

import os
import signal
import sys

import churn


def start(ours, function, *args):
    pid = os.fork()
    if not pid:
        os.close(ours)
        function(*args)
        os._exit(0)
    return pid


def sleep():
    while True:
        signal.pause()


def main(milliseconds, word):
    os.read(word, 1)  # its end
    churn.burn(milliseconds / 1000.0)


if __name__ == "__main__":
    churn.lead()
    word, ours = os.pipe()
    idle = [start(ours, sleep) for _ in range(int(sys.argv[1]))]
    busy = churn.Children()
    for _ in range(int(sys.argv[2])):
        busy.add(start(ours, main, float(sys.argv[3]), word))
    churn.begin()
    os.close(ours)
    while busy.started:
        busy.wait()
    for sleeper in idle:
        os.kill(sleeper, signal.SIGKILL)
    churn.finish(busy)
