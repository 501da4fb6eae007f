# SPDX-License-Identifier: Apache-2.0
"""Loops of known instructions; says which instructions each of its lines has, as the interpreter's own dis has them."""

import dis
import opcode
import sys
import threading

import expect

HOT = 3000


class Thing(object):
    def __init__(self):
        self.value = 1

    def get(self):
        return self.value

    def __getitem__(self, key):
        return key


def adds(n):
    x = 0
    for i in range(n):
        x = x + 1  # an addition of ints
    return x


def loads(n, thing=Thing()):
    for i in range(n):
        thing.value  # an attribute of an instance


def calls(n, thing=Thing()):
    for i in range(n):
        thing.get()  # a method in Python
        thing[i]


def counts(n):
    for i in range(n):
        yield i


def generates(n):
    for i in counts(n):  # a generator
        pass


# It has so many constants that those at the end need EXTENDED_ARG.
made = {}
exec(
    compile(
        "def extends(n):\n for i in range(n):\n  x = [%s]\n  x = 70000.5" % ", ".join("%d.5 + i" % i for i in range(400)),
        __file__,
        "exec",
    ),
    made,
)
extends = made["extends"]

FUNCTIONS = [adds, loads, calls, counts, generates, extends, Thing.get, Thing.__getitem__]


def names_old(code):
    """Yields (offset, name) of each instruction."""
    if sys.version_info[0] > 2:
        for instruction in dis.get_instructions(code):
            yield instruction.offset, instruction.opname
        return
    i, text = 0, code.co_code
    while i < len(text):
        number = ord(text[i])
        yield i, opcode.opname[number]
        i += 3 if number >= opcode.HAVE_ARGUMENT else 1


def instructions(code):
    """{line: names of its instructions}; line 0: of those without a line."""
    found = {}
    if sys.version_info >= (3, 11):
        for instruction in dis.get_instructions(code, adaptive=True):
            found.setdefault(instruction.positions.lineno or 0, set()).add(instruction.opname)
        return found
    line, starts = 0, dict(dis.findlinestarts(code))
    for offset, name in names_old(code):
        line = starts.get(offset, line)
        # A prefix of the instruction behind it: that one runs.
        if name != "EXTENDED_ARG":
            found.setdefault(line, set()).add(name)
    return found


def loop():
    while True:
        for function in adds, loads, calls, generates:
            function(HOT)
        extends(30)


def main():
    for _ in range(5):
        for function in adds, loads, calls, generates:
            function(HOT)
        extends(30)
    wanted = expect.describe(__file__)
    for function in FUNCTIONS:
        code = getattr(function, "__code__", None) or function.im_func.__code__
        lines = instructions(code)
        wanted.more[code.co_name] = dict((str(line), sorted(names)) for line, names in lines.items())
    thread = threading.Thread(target=loop)
    thread.daemon = True
    thread.start()
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
