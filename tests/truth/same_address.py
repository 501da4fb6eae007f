# SPDX-License-Identifier: Apache-2.0
"""Modules that are made, run once and freed, and that look alike but for what is printed of them.

path_N runs one whose path ends in N and is otherwise, for some hundred characters, the path of all others; line_N one
that has the same path, name and first line as all others, and its loop at lines N + 2 and N + 3. The allocator gives
most of them the addresses of the one before.
"""

import start

CALLS = 60
FOLDER = "<same/" + "a-folder-with-a-long-name/" * 12
MADE = ("<same", ("<module>", "path_", "line_"))
BY_PATH = "for _ in range(1000):\n pass\n"
BY_LINES = ["_ = 0\n%sfor _ in range(1000):\n pass\n" % ("\n" * number) for number in range(CALLS)]
ENDS = ["%03d.py>" % number for number in range(CALLS)]
CALL = "def path_%d():\n run_path(%d)\ndef line_%d():\n run_line(%d)\n"


def possible_frames(frames):
    names = [frame.name for frame in frames]
    if names[:1] != ["again"][: len(names)]:
        return False
    if len(names) < 2:
        return True
    kind, _, number = names[1].partition("_")
    if not number.isdigit() or names[2:4] != ["run_" + kind, "run"][: len(names) - 2]:
        return False
    number, made = int(number), frames[4:]
    if kind == "path":
        file, lines = FOLDER + ENDS[number], (None, 0, 1, 2)
    else:
        file, lines = "<same/line.py>", (None, 0, 1, number + 2, number + 3)
    return len(made) <= 1 and all(
        frame.name == "<module>" and frame.line in lines and frame.file == file for frame in made
    )


def run_path(number):
    run(BY_PATH, FOLDER + ENDS[number])


def run_line(number):
    run(BY_LINES[number], "<same/line.py>")


def run(text, path):
    exec(compile(text, path, "exec"), {})


def make_calls():
    scope = {"run_path": run_path, "run_line": run_line}
    for number in range(CALLS):
        exec(compile(CALL % ((number,) * 4), "<same/calls.py>", "exec"), scope)
    return [scope[kind + "_%d" % number] for kind in ("path", "line") for number in range(CALLS)]


def again():
    for call in ALL:
        call()


if __name__ == "__main__":
    ALL = make_calls()
    start.forever(again)
