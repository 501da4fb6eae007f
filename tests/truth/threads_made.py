# SPDX-License-Identifier: Apache-2.0
"""Four threads that make, run and free functions of their own: memory goes from one thread's to another's."""

import start

MADE = ("<thread-", ("<module>", "outer_", "inner_"))
THREADED = True
SOURCE = "def inner_%d():\n for _ in range(60): pass\ndef outer_%d():\n inner_%d()\nouter_%d()\n"


def possible_frames(frames):
    names = [frame.name for frame in frames]
    if names[0] not in ("one", "two", "three", "four") or names[1:2] not in ([], ["run"]):
        return False
    made = frames[2:]
    if not made:
        return True
    number = {"one": 1, "two": 2, "three": 3, "four": 4}[names[0]]
    expected = ["<module>", "outer_%d" % number, "inner_%d" % number]
    return names[2:] == expected[: len(made)] and all(
        frame.file == "<thread-%d>" % number for frame in made
    )


def run(number):
    text = SOURCE % (number, number, number, number)
    exec(compile(text, "<thread-%d>" % number, "exec"), {})


def one():
    run(1)


def two():
    run(2)


def three():
    run(3)


def four():
    run(4)


if __name__ == "__main__":
    start.forever(four, one, two, three)
