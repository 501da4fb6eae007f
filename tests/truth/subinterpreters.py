# SPDX-License-Identifier: Apache-2.0
"""A subinterpreter that two functions run in turn: the callers' frames come first, then those of what they run."""

import start

try:
    import zlib
except ImportError:  # a build without it
    zlib = None
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

NEEDS = (3, 10)  # before, nothing proves which function it was
MADE = ("<s", ("<module>", "sub_"))
MARK = "[another interpreter]"

SHORT = """
def sub_leaf():
    for _ in range(3000): pass
def sub_short():
    sub_leaf()
sub_short()
"""
LONG = """
def sub_key(value):
    for _ in range(30): pass
    return -value
def sub_long():
    sorted(range(100), key=sub_key)
sub_long()
"""

RELEASED = """
import zlib
def sub_pack():
    zlib.compress(bytes(range(256)) * 2000, 9)
def sub_free():
    sub_pack()
sub_free()
"""

RUN = getattr(interpreters, "exec", None) or interpreters.run_string
STACKS_OF = {
    "run_short": ["<module>", "sub_short", "sub_leaf"],
    "run_long": ["<module>", "sub_long", "sub_key"],
    "run_free": ["<module>", "sub_free", "sub_pack"],
}


def possible(names):
    if names[0] != "both":
        return False
    if names[1:2] == ["between"]:
        return len(names) <= 3 and names[2:] in ([], ["spin"])
    if len(names) < 3:
        return names[1:] in ([], ["run_short"], ["run_long"], ["run_free"])
    within = STACKS_OF.get(names[1])
    return within is not None and names[2] == MARK and names[3:] == within[: len(names) - 3]


def run_short():
    RUN(INNER, SHORT)


def run_long():
    RUN(INNER, LONG)


def run_free():
    """The GIL is released, and the thread state with it."""
    RUN(INNER, RELEASED)


def between():
    start.spin(500)


def both():
    run_short()
    between()
    run_long()
    between()
    if zlib:
        run_free()


if __name__ == "__main__":
    INNER = interpreters.create()
    start.forever(both)
