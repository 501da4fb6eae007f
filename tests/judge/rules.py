# SPDX-License-Identifier: Apache-2.0
"""What the programs of tests/truth say of their own stacks.

A program states its rule itself, about the frames above those that tests/truth/start.py begins with:

    STACKS                   each possible stack is one of these, or the beginning of one, root first;
                             "name*7" is seven times that frame, "name*1-7" one to seven times
    possible(names)          or a function that says whether a stack is
    possible_frames(frames)  the same, with the files and lines as well

and further:

    NEEDS     the first version that it runs on
    THROUGH   parts of the paths of files whose frames may be between its own
    MADE      (start of the files' names, starts of the names) of functions that it makes
    LEAST     the least share of samples with Python frames
    THREADED  whether it has threads
    LINELESS  whether more than a few samples may have a frame without a line
    WHEEL     the name of the wheel (tests/judge/wheels.py) whose folder it takes as its argument
    WITHOUT   whether it runs without that wheel, too
    ROOTS     functions that are the first of a greenlet's stack; one of the files of THROUGH may begin it, too

A name is wrong when the file has no such function, or the function no such line. Some instructions have no line from
3.10 on (co_lines() says None).
"""

import ast
import fnmatch
import importlib.util
import re
import sys
from pathlib import Path

import wheels

PROGRAMS = Path(__file__).resolve().parent.parent / "truth"
NOT_STACKS = ("start", "shares")
# Between the frames of two interpreters: no function, and no sign that anything is missing.
SWITCH = "[another interpreter]"


class Functions(ast.NodeVisitor):
    """The names of a file's functions, before 3.11 and from 3.11 on, with their lines."""

    def __init__(self, path):
        self.plain, self.qualified = {}, {}
        self.place = []
        text = path.read_text(encoding="utf-8")
        self.add("<module>", 0, text.count("\n") + 1)
        self.visit(ast.parse(text))

    def add(self, name, first, last):
        self.plain.setdefault(name, []).append((first, last))
        self.qualified.setdefault(".".join(self.place + [name]), []).append((first, last))

    def enter(self, node, name, inner):
        first = min([node.lineno] + [each.lineno for each in getattr(node, "decorator_list", ())])
        self.add(name, first, node.end_lineno)
        self.place += [name] + inner
        self.generic_visit(node)
        del self.place[-1 - len(inner) :]

    def visit_FunctionDef(self, node):
        self.enter(node, node.name, ["<locals>"])

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.enter(node, node.name, [])

    def visit_Lambda(self, node):
        self.enter(node, "<lambda>", ["<locals>"])

    def visit_GeneratorExp(self, node):
        self.enter(node, "<genexpr>", ["<locals>"])


def stack_pattern(stacks):
    """A regular expression for each stack and each beginning of one; names are followed by a blank."""

    def one(words):
        if not words:
            return ""
        name, _, times = words[0].partition("*")
        text = re.escape(name) + " "
        if not times:
            return "(?:%s%s)?" % (text, one(words[1:]))
        least, _, most = times.partition("-")
        most = most or least
        some = "(?:%s){%s,%s}%s" % (text, least, most, one(words[1:]))
        return "(?:%s|(?:%s){0,%s})" % (some, text, most)

    return re.compile("|".join("(?:%s)" % one(stack.split()) for stack in stacks))


class Program:
    def __init__(self, name):
        self.name = name
        self.file = name + ".py"
        if str(PROGRAMS) not in sys.path:
            sys.path.append(str(PROGRAMS))
        spec = importlib.util.spec_from_file_location("truth_" + name, PROGRAMS / self.file)
        self.rule = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.rule)
        self.needs = getattr(self.rule, "NEEDS", (2, 7))
        self.through = getattr(self.rule, "THROUGH", ()) + ("threading.py",)
        self.made = getattr(self.rule, "MADE", None)
        self.least = getattr(self.rule, "LEAST", None)
        self.threaded = getattr(self.rule, "THREADED", False)
        self.lineless = getattr(self.rule, "LINELESS", False)
        self.wheel = getattr(self.rule, "WHEEL", None)
        self.without_wheel = getattr(self.rule, "WITHOUT", False)
        self.roots = getattr(self.rule, "ROOTS", ())
        self.functions = {file: Functions(PROGRAMS / file) for file in (self.file, "start.py")}
        self.pattern = stack_pattern(self.rule.STACKS) if hasattr(self.rule, "STACKS") else None

    def right_name(self, frame, qualified, needs_line=True):
        if frame.text == SWITCH:
            return True
        functions = self.functions.get(frame.file)
        if functions:
            lines = (functions.qualified if qualified else functions.plain).get(frame.name, ())
            if frame.line is None and not needs_line:
                return bool(lines)
            return frame.line is not None and any(first <= frame.line <= last for first, last in lines)
        if self.made and frame.file.startswith(self.made[0]):
            return frame.name.startswith(self.made[1]) and (frame.line is not None or not needs_line)
        return any(part in frame.file for part in self.through)

    def is_root(self, frame):
        """Whether a stack may begin with it where a greenlet runs."""
        through = any(part in frame.file for part in self.through) and frame.file != "threading.py"
        return self.roots and (through or (frame.file == self.file and frame.name in self.roots))

    def own(self, stack):
        """The frames that the rule is about, or None when the stack does not begin as each does.

        stack: its frames, each with the last part of its name.
        """
        names = [frame.name for frame in stack]
        files = [frame.file for frame in stack]
        if self.is_root(stack[0]):
            at = -1
        elif files[0] == "threading.py":
            at = names.index("rounds") if "rounds" in names else -1
            if at < 0 or set(files[:at]) != {"threading.py"}:
                return None
        else:
            at = 2
            if names[:3] != ["<module>", "forever", "rounds"] or files[:3] != [self.file, "start.py", "start.py"]:
                return None
        return [frame for frame in stack[at + 1 :] if not any(part in frame.file for part in self.through)]

    def possible(self, own):
        if not own:
            return own is not None
        names = [frame.name for frame in own]
        if self.pattern:
            return self.pattern.fullmatch("".join(name + " " for name in names)) is not None
        if hasattr(self.rule, "possible"):
            return bool(self.rule.possible(names))
        return bool(self.rule.possible_frames(own))


def missing(program, interpreter):
    """Why the program can't run on this Python, or ""."""
    if interpreter.version < program.needs:
        return "needs Python %d.%d" % program.needs
    if not program.wheel or program.without_wheel:
        return ""
    return wheels.find(interpreter, program.wheel)[1]


def chosen(patterns, name):
    return not patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def names():
    return sorted(path.stem for path in PROGRAMS.glob("*.py") if path.stem not in NOT_STACKS)
