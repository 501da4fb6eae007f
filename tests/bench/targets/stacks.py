# SPDX-License-Identifier: Apache-2.0
"""stacks.py FD FRAMES: goes through 27,000 different stacks of FRAMES frames, 30 callees at each of three levels."""

import sys

import counted

WIDTH = 30
ABOVE = 5  # <module>, sweep and the three levels
SOURCE = """
def top%d():
    for callee in middles:
        callee()

def middle%d():
    for callee in bottoms:
        callee()

def bottom%d():
    total(work)
"""
# A sample nearly always hits the call of sum, so that there are hardly more stacks than paths.
names = {"total": sum, "work": range(3000)}
for number in range(WIDTH):
    exec(SOURCE % (number, number, number), names)
for level in ("top", "middle", "bottom"):
    names[level + "s"] = [names["%s%d" % (level, number)] for number in range(WIDTH)]


def sweep(memory):
    done = 0
    while True:
        for callee in names["tops"]:
            callee()
            done += 1
            counted.NUMBER.pack_into(memory, 0, done)


def dive(left, memory):
    if left:
        dive(left - 1, memory)
    else:
        sweep(memory)


if __name__ == "__main__":
    dive(int(sys.argv[2]) - ABOVE - 1, counted.counter())
