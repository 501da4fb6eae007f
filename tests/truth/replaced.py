# SPDX-License-Identifier: Apache-2.0
"""Two threads that each give new code to one function all the time, also while it runs.

at_N, which stays, gives the thread's function the code of made_N, at line N % 50 + 1, which loops, calls change and
then part_N, each a line below the one before. change gives the function other code, so that the last reference to the
code of made_N is its frame's. The allocator gives the next code objects, of either thread, the addresses of these.
"""

import start

MADE = ("<replaced-", ("at_", "made_", "part_"))
THREADED = True
CALLS = 60
SOURCE = "%sdef made_%d(side, part, change):\n for _ in range(60): pass\n change(side)\n part()\n"
PART = "%sdef part_%d():\n for _ in range(60): pass\n"
CALL = "def at_%d(side): replace(side, %d)\n"


def possible_frames(frames):
    names = [frame.name for frame in frames]
    side, number = names[0], names[1].partition("at_")[2] if names[1:] else ""
    if side not in ("left", "right") or not number.isdigit():
        return names in (["left"], ["right"])
    if frames[1].file != "<replaced-calls>" or names[2:] in ([], ["replace"], ["replace", "make"]):
        return frames[1].file == "<replaced-calls>"
    first = int(number) % 50 + 1
    expected = {
        "": (first, first + 1, first + 2, first + 3),
        "change": (first + 2,),
        "part_" + number: (first + 3,),
    }
    lines = expected.get(names[4] if names[4:] else "")
    if names[2:4] != ["replace", "made_" + number] or len(names) > 5 or not lines:
        return False
    if names[4:5] == ["part_" + number]:
        part = frames[4]
        if part.file != "<replaced-%s-part-%s>" % (side, number) or part.line not in (None, first, first + 1):
            return False
    return frames[3].file == "<replaced-%s-%s>" % (side, number) and frames[3].line in (None,) + lines


def change(side):
    HELD[side].__code__ = OTHER


def make(text, path):
    for constant in compile(text, path, "exec").co_consts:
        if hasattr(constant, "co_code"):
            return constant


def replace(side, number):
    above = "\n" * (number % 50)
    HELD[side].__code__ = make(SOURCE % (above, number), "<replaced-%s-%d>" % (side, number))
    PARTS[side].__code__ = make(PART % (above, number), "<replaced-%s-part-%d>" % (side, number))
    HELD[side](side, PARTS[side], change)


def other(side, part, change):
    pass


def left():
    for call in ALL:
        call("left")


def right():
    for call in ALL:
        call("right")


def make_function():
    def held():
        pass

    return held


def make_calls():
    scope = {"replace": replace}
    for number in range(CALLS):
        exec(compile(CALL % (number, number), "<replaced-calls>", "exec"), scope)
    return [scope["at_%d" % number] for number in range(CALLS)]


if __name__ == "__main__":
    OTHER = other.__code__
    HELD = {"left": make_function(), "right": make_function()}
    PARTS = {"left": make_function(), "right": make_function()}
    ALL = make_calls()
    start.forever(left, right)
