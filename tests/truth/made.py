# SPDX-License-Identifier: Apache-2.0
"""Functions that are made, run once and freed: their code addresses are reused by other names and files.

The function made_N is in <file-N> at line N % 50 + 4 and calls part_N, whose loop is at lines 2 and 3.
"""

import start

MADE = ("<file-", ("<module>", "made_", "part_"))
SOURCE = "def part_%d():\n for _ in range(60):\n  pass\n%sdef made_%d():\n part_%d()\nmade_%d()\n"


def possible_frames(frames):
    names = [frame.name for frame in frames]
    if names[:2] != ["again", "run"][: len(names)]:
        return False
    made = frames[2:]
    if not made:
        return True
    number = made[0].file[len("<file-") : -1]
    if not number.isdigit() or any(frame.file != "<file-%s>" % number for frame in made):
        return False
    line = int(number) % 50 + 4
    expected = [
        ("<module>", (0, 1, line, line + 2)),  # 3.11 and later begin a module at line 0
        ("made_" + number, (line, line + 1)),
        ("part_" + number, (1, 2, 3)),
    ]
    return len(made) <= 3 and all(
        frame.name == name and frame.line in (None,) + lines for frame, (name, lines) in zip(made, expected)
    )


def run(number):
    text = SOURCE % (number, "\n" * (number % 50), number, number, number)
    exec(compile(text, "<file-%d>" % number, "exec"), {})


def again():
    for number in range(977):
        run(number)


if __name__ == "__main__":
    start.forever(again)
