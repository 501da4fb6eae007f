# SPDX-License-Identifier: Apache-2.0
"""Random calls in each other's arguments, made from a seed; says where each function of their stacks is, as the
interpreter itself has it: co_positions() of its f_lasti, which tracebacks underline. For Python 3.11 and later.
"""

import random
import sys
import threading

import expect

LEVELS = 4
IN_LEVEL = 3
BYTES = b"x" * 150000
stacks = set()
noting = True


def spot(frame):
    code = frame.f_code
    line, end_line, column, end_column = list(code.co_positions())[frame.f_lasti // 2]
    empty = line == end_line and column == end_column
    return (code.co_qualname, line) + ((None, None, None) if empty else (end_line, column, end_column))


def note(frame):
    spots = []
    while frame.f_code.co_name != "top":
        spots.append(spot(frame))
        frame = frame.f_back
    stacks.add(tuple(reversed(spots)))


def burn(x):
    if noting:
        note(sys._getframe(1))
    return x, BYTES.count(b"y"), (BYTES.count(b"a"), BYTES.count(b"b"), BYTES.count(b"c"))


class Thing:
    def __init__(self, function):
        self.function = function

    def method(self, x):
        return self.function(x)

    def __getitem__(self, x):
        return self.function(x)

    def __add__(self, x):
        return self.function(x)

    @property
    def prop(self):
        return self.function(1)

    def __iter__(self):
        yield self.function(2)

    def __enter__(self):
        return self.function(3)

    def __exit__(self, *error):
        self.function(4)


SHAPES = [
    "{f}({x})", "{f}({x})", "{f}({x})", "({x}, {f}(1))[1]", "[{f}(0), {x}][0]", "({f}(1) if {x} else 0)", "(lambda: {f}({x}))()",
    "[{f}(i) for i in (1,)]", "max(({f}(i) for i in ({x},)), key=str)", "Thing({f}).method({x})", "Thing({f})[{x}]",
    "(Thing({f}) + {x})", "Thing({f}).prop", "('漢字ü', {f}({x}))", "list(\n\t\tThing({f})\n\t)", "{f}(\n\t\t{x},\n\t)",
    "f'{{{f}(1)}}'", "sorted([1, 2], key=lambda i: str({f}(i)))", "str({f}({x})) + str(\t{f}(2))", "{{**dict(a={f}({x}))}}",
]
STATEMENTS = ["\tx = {e}", "\tx = 1; x = {e}", "\tif {e}: x = 2", "\tfor x in Thing({f}): pass", "\twith Thing({f}): x = {e}",
              "\tassert {e} is not None", "\ttry: x = {e}\n\tfinally: x = 3"]


def expression(made, below, depth):
    shape = made.choice(SHAPES)
    inner = expression(made, below, depth - 1) if depth and made.random() < 0.4 else "x"
    return shape.format(f=made.choice(below), x=inner)


def program(seed):
    """Functions that call those of the next level, and those of the last burn()."""
    made = random.Random(seed)
    lines, below = [], ["burn"]
    for level in reversed(range(LEVELS)):
        names = ["level%d_%s" % (level, "äbc"[i]) for i in range(IN_LEVEL)]
        for name in names:
            lines.append("def %s(x):" % name)
            for _ in range(2):
                lines.append(made.choice(STATEMENTS).format(e=expression(made, below, 1), f=made.choice(below)))
            lines.append("\treturn x")
        below = names
    lines += ["def top():"] + ["\t%s(0)" % name for name in below]
    return "\n".join(lines) + "\n"


def main():
    global noting
    names = {"burn": burn, "Thing": Thing}
    exec(compile(program(int(sys.argv[1])), "made.py", "exec"), names)
    names["top"]()
    noting = False

    def loop():
        while True:
            names["top"]()

    wanted = expect.describe(__file__)
    wanted.more["stacks"] = sorted(stacks, key=str)
    thread = threading.Thread(target=loop)
    thread.daemon = True
    thread.start()
    expect.ready(wanted)
    expect.park()


if __name__ == "__main__":
    main()
