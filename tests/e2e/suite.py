# SPDX-License-Identifier: Apache-2.0
"""The target programs, for which Pythons, and what each asks for beyond the common checks."""

from collections import Counter
from dataclasses import dataclass
from typing import Callable, Optional, Tuple

import pythons
from harness import Expectation, at_work, show, total


@dataclass(frozen=True)
class Program:
    name: str
    file: str
    args: Tuple[str, ...] = ()
    samples: int = 1200  # that a CPU has at the rate
    rate: int = 5999
    oldest: Tuple[int, int] = (2, 7)
    needs: Optional[str] = None  # a module that a partial build may lack
    hot: bool = True
    every_call: bool = True
    # A second look at the stacks: function(says, stacks, sampled).
    also: Optional[Callable] = None
    # Only one interpreter of each version and kind: what it shows does not depend on more.
    narrow: bool = False


def check_rungs(says, stacks, sampled=True):
    """Each hot line of one function takes the same time; each must have about the same share."""
    counts = Counter()
    for stack, count in stacks:
        counts[stack[-1].name, stack[-1].line] += count
    for name, lines in says["hot"]:
        shares = [counts[name, line] / total(stacks) for line in lines]
        mean = sum(shares) / len(shares)
        for line, share in zip(lines, shares):
            assert 0.4 * mean <= share <= 2.5 * mean, (name, line, dict(zip(lines, shares)))


def dives(says, stack):
    return [frame for frame in stack if frame.file.endswith(says["main"])]


def check_deep(says, stacks, sampled=True):
    """Every frame is there, in the order in which the program called."""
    lines = says["more"]["lines"]
    for stack, _ in stacks:
        own = dives(says, stack)
        assert [frame.name for frame in own] == ["dive"] * (len(lines) + 1) + ["bottom"]
        assert [frame.line for frame in own[: len(lines)]] == lines


def check_cut(says, stacks, sampled=True):
    """Root and leaf are whole, and one mark that is no frame stands for what lies between."""
    lines = says["more"]["lines"]
    for stack, _ in stacks:
        marks = [n for n, frame in enumerate(stack) if frame.line is None]
        assert len(marks) == 1, "%d marks in a cut stack of %d" % (len(marks), len(stack))
        assert len(stack) >= 8192, "only %d frames" % len(stack)
        root, leaf = dives(says, stack[: marks[0]]), dives(says, stack[marks[0] :])
        assert len(root) >= 1000 and len(leaf) >= 1000, (len(root), len(leaf))
        assert [frame.line for frame in root] == lines[: len(root)]
        assert leaf[-1].name == "bottom"
        assert [frame.line for frame in leaf[:-2]] == lines[len(lines) - len(leaf) + 2 :]


def check_threads_seen(says, stacks, sampled=True):
    """Each thread's function was seen, with the GIL held and released."""
    seen = Counter()
    for stack, count in stacks:
        for frame in stack:
            seen[frame.name] += count
    for name in says["more"]["threads"]:
        name = name if isinstance(name, str) else name[2]
        assert seen[name] > 0, (name, seen)


def check_names(says, stacks, sampled=True):
    """Between main and burn stands one function, with the name, file and line that it was given."""
    wanted = {"%s (%s:%d)" % (name, path, line) for name, path, line in says["more"]["names"]}
    seen = set()
    for stack, _ in stacks:
        assert stack[0].name == "<module>"
        if len(stack) < 3:
            continue
        assert stack[1].name == "main", show(stack)
        middle = stack[2]
        if len(stack) == 4:
            assert stack[3].name == "burn", show(stack)
            assert middle.text in wanted, "%r was never made" % middle.text
            seen.add(middle.text)
    assert seen == wanted or not sampled, "never seen: %r" % [text[:200] for text in wanted - seen]


def check_reused(says, stacks, sampled=True):
    """Name, file and line of a function that was seen are all of the same number."""
    made = 0
    for stack, count in stacks:
        for frame in stack:
            if frame.name.startswith("made_"):
                number = int(frame.name[5:])
                assert frame.file == "file_%d.py" % number, show(stack)
                assert frame.line in (1, number % 500 + 2), show(stack)
                made += count
    assert made >= 0.7 * total(stacks), "%d of %d" % (made, total(stacks))


def check_frozen(says, stacks, sampled=True):
    """The import system's own frames are there, under the names that CPython gives their files."""
    frozen = sum(count for stack, count in stacks for f in stack if "<frozen importlib" in f.file)
    assert bool(frozen) == says["more"]["frozen"], frozen
    zipped = {f.file for stack, _ in stacks for f in stack if f.name == "zipped"}
    assert zipped and all(name.endswith("package/inner.py") for name in zipped), zipped


class NoRules:
    """For the targets whose stacks a function of this file checks alone."""

    def __init__(self, says):
        pass

    def check(self, stacks, **_):
        assert stacks


# Thousands of frames take a part of a millisecond, and hundreds of threads their turns.
SLOW = 2999
PROGRAMS = [
    Program("calls", "calls.py", samples=2400),
    Program("rungs", "rungs.py", also=check_rungs),
    Program("coroutines", "awaiting.py", oldest=(3, 6)),
    Program("imports", "imports.py", needs="zipfile", also=check_frozen),
    Program("names", "names.py", also=check_names),
    Program("reused", "reused.py", also=check_reused),
    Program("threads", "threads.py", also=check_threads_seen),
    Program("nogil", "nogil.py", also=check_threads_seen),
    Program("deep", "deep.py", args=("8000",), also=check_deep, rate=SLOW),
    Program("cut", "deep.py", args=("12000",), also=check_cut, narrow=True, rate=SLOW),
    Program("crowd", "crowd.py", args=("300",), narrow=True, rate=SLOW),
]
OWN_CHECKS = ("names", "reused", "cut")


def hold(program, says, stacks, sampled=True):
    """Holds stacks against a target's words. What a target sees of itself has no honest shares."""
    rules = NoRules if program.name in OWN_CHECKS else Expectation
    rules(says).check(
        stacks, every_call=program.every_call and sampled, hot=program.hot and sampled
    )
    stacks = at_work(stacks)
    if program.also and (sampled or program.name in ("deep", "names", "reused")):
        program.also(says, stacks, sampled)


# 2.7 hands the GIL on every 100 instructions, also while a thread looks at another's frames: it sees torn stacks of
# itself, or starves. The profiler is held against these programs on 2.7 all the same.
THREADED = ("nogil", "crowd", "threads", "deep")


def matrix(self_check=False):
    """(interpreter, program) pairs.

    Stripping changes how the runtime is found, not the frames: stripped ones run one program. So do further builds of a
    version.
    """
    pairs, narrow_seen = [], set()
    builds = {}
    for interpreter in pythons.interpreters():
        kind = interpreter.kind if interpreter.kind in ("debug", "free-threaded", "stripped") else "release"
        first = builds.setdefault((interpreter.version, kind), interpreter) is interpreter
        for program in PROGRAMS:
            key = (program.name, interpreter.version)
            # A target's word for itself depends on the version alone.
            if self_check and key in narrow_seen:
                continue
            if interpreter.version < program.oldest:
                continue
            if (kind == "stripped" or not first) and (program.name != "calls" or self_check):
                continue
            if program.narrow and (key in narrow_seen or self_check):
                continue
            if self_check and interpreter.version[0] == 2 and program.name in THREADED:
                continue
            narrow_seen.add(key)
            pairs.append((interpreter, program))
    return pairs
