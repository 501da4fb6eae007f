# SPDX-License-Identifier: Apache-2.0
"""switches.py FD RATE FRAMES: waits RATE times a second, below FRAMES functions, for a child that answers at once.

Between two waits it works as long as it takes, with nobody else at work, to come to that rate: what each wait costs
more makes it slower."""

import os
import sys
import time

import counted

ROUNDS = 2000  # of a measurement
GO, ANSWER = os.pipe(), os.pipe()


def wait():
    os.write(GO[1], b"x")
    os.read(ANSWER[0], 1)


def answer():
    os.close(GO[1])  # so that it ends with its parent
    while os.read(GO[0], 1):
        os.write(ANSWER[1], b"x")


def work(turns):
    for _ in turns:
        pass


def seconds(call, *arguments):
    start = time.time()
    for _ in range(ROUNDS):
        call(*arguments)
    return (time.time() - start) / ROUNDS


def turns_for(rate):
    thousand = range(1000)
    left = 1.0 / rate - seconds(wait)
    return range(max(0, int(1000 * left / seconds(work, thousand))))


def forever(memory, turns):
    done = 0
    while True:
        wait()
        work(turns)
        done += 1
        counted.NUMBER.pack_into(memory, 0, done)


def descend(frames, *arguments):
    return descend(frames - 1, *arguments) if frames else forever(*arguments)


if __name__ == "__main__":
    memory = counted.counter()
    if not os.fork():
        answer()
        os._exit(0)
    descend(int(sys.argv[3]), memory, turns_for(float(sys.argv[2])))
