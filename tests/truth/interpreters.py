# SPDX-License-Identifier: Apache-2.0
"""Interpreters that are made, run once and ended: each runs a function of its own, where the one before had its own.

run_N makes an interpreter that runs sub_N. A code object of one has the address, the version, and the addresses of name,
path and line table that one of the interpreter before had.
"""

import sys

import start

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

NEEDS = (3, 10)  # before, nothing proves which function it was
MADE = ("<sub", ("<module>", "sub_", "run_"))
THROUGH = ("<frozen", "<string>", "<script>", "/", "sitecustomize.py", "usercustomize.py") + tuple(
    name + ".py" for name in getattr(sys, "stdlib_module_names", ())
)
MARK = "[another interpreter]"
COUNT = 12
SUB = "def sub_%d():\n    for _ in range(200000): pass\nsub_%d()\n"
INSIDE = "exec(compile(%r, '<sub>', 'exec'))"
RUN = getattr(interpreters, "exec", None) or interpreters.run_string


def possible(names):
    if names[0] != "again":
        return False
    if len(names) < 2:
        return True
    if not names[1].startswith("run_"):
        return False
    number = names[1][len("run_") :]
    return names[2:] == ["run", MARK, "<module>", "sub_" + number][: len(names) - 2]


def make(number):
    text = "def run_%d():\n    run(%d)\n" % (number, number)
    scope = {"run": run}
    exec(compile(text, "<subs>", "exec"), scope)
    return scope["run_%d" % number]


def run(number):
    inner = interpreters.create()
    RUN(inner, INSIDE % (SUB % (number, number)))
    interpreters.destroy(inner)


def again():
    for each in ALL:
        each()


if __name__ == "__main__":
    ALL = [make(number) for number in range(COUNT)]
    start.forever(again)
