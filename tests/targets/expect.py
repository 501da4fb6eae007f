# SPDX-License-Identifier: Apache-2.0
"""What a target program says about itself, in one JSON line on stdout, before it starts to spin.

A target states its calls in comments, so that the source is the expectation:

    inner(n)  # outer > inner             while inner runs below outer, outer is at this line
    total = sum(range(n))  # inner: hot   where inner spends its time

Several clauses are separated by ";"; where they are too long, they stand in lines of their own above
the line that they are about, marked "#:". A clause may hold for some versions: "[3.0-3.11] a > b".
Names are qualified names; before 3.11 code objects only know the last part, and so do we here.
"a >? b" is a call so short that it need not be seen, such as the making of a generator.
A frame of another file than the target's own is called "FILE|name".

Run with PYBPF_SELF_CHECK=SECONDS a target samples itself (a timer signal, sys._current_frames) and
prints what it saw in the profiler's output format: this shows, without any profiler, that the
expectation is right.
"""

import io
import json
import os
import re
import signal
import sys
import time

SELF_CHECK = os.environ.get("PYBPF_SELF_CHECK")
LIFETIME = 60  # seconds after which a target ends by itself
QUALIFIED = sys.version_info >= (3, 11)
CODE = type((lambda: 0).__code__)
CLAUSE = re.compile(r"^(?:\[([\d.]*)-([\d.]*)\] )?(\S+)(?: (>\??) (\S+)|: (hot))$")

PY2 = sys.version_info[0] == 2


def short(qualname):
    """The name that this interpreter's code objects have for a qualified name."""
    return qualname if QUALIFIED else qualname.rsplit(".", 1)[-1]


def code_name(code):
    return code.co_qualname if QUALIFIED else code.co_name


def chain(frame):
    """[function, file, line], the outermost first."""
    found = []
    while frame:
        found.insert(0, [code_name(frame.f_code), frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found


def code_lines(code):
    """Every line that a frame of this code can be at, CPython's own word for it."""
    import dis

    lines = set(line for _, line in dis.findlinestarts(code) if line is not None)
    lines.add(code.co_firstlineno)
    return lines


def each_code(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, CODE):
            for inner in each_code(const):
                yield inner


def applies(match):
    first, last = (
        tuple(int(part) for part in bound.split(".")) if bound else default
        for bound, default in ((match.group(1), (0, 0)), (match.group(2), (99, 0)))
    )
    return first <= sys.version_info[:2] <= last


def read_clauses(path):
    """Yields (line number, regex match) for each clause in the comments of a source file."""
    above = []
    with io.open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            line = line.strip()
            if line.startswith("#: "):
                above += line[3:].split("; ")
                continue
            comment = line.rpartition("  # ")[2] if "  # " in line else ""
            clauses, above = above + comment.split("; "), []
            for clause in clauses:
                match = CLAUSE.match(clause.strip())
                if match and applies(match):
                    yield number, match


class Expectation(object):
    def __init__(self, path, share=0.85):
        self.path = path
        self.share = share
        self.roots = set(["<module>"])
        self.calls = {}  # (caller, callee) -> lines of the caller
        self.rare = set()  # calls that a sample may well miss
        self.hot = {}  # name -> lines
        self.lines = {}  # name -> lines that it can be at as the leaf
        self.files = set([os.path.basename(path)])
        self.through = []  # parts of the paths of other files whose frames may lie between ours
        self.more = {}

    def read_source(self):
        for number, match in read_clauses(self.path):
            caller, arrow, callee, hot = match.group(3, 4, 5, 6)
            caller = short(caller)
            if hot:
                self.hot.setdefault(caller, set()).add(number)
            else:
                self.call(caller, short(callee), number)
                if arrow == ">?":
                    self.rare.add((caller, short(callee)))
        with io.open(self.path, "rb") as source:
            self.add_code(compile(source.read(), self.path, "exec"))

    def add_code(self, code, prefix=""):
        for inner in each_code(code):
            self.lines.setdefault(prefix + code_name(inner), set()).update(code_lines(inner))

    def call(self, caller, callee, *lines):
        self.calls.setdefault((caller, callee), set()).update(lines)

    def to_json(self):
        return json.dumps(
            {
                "pid": os.getpid(),
                "version": list(sys.version_info[:3]),
                "roots": sorted(self.roots),
                "calls": [
                    [caller, callee, sorted(lines)]
                    for (caller, callee), lines in sorted(self.calls.items())
                ],
                "rare": sorted(self.rare),
                "hot": [[name, sorted(lines)] for name, lines in sorted(self.hot.items())],
                "share": self.share,
                "lines": dict((name, sorted(lines)) for name, lines in self.lines.items()),
                "main": os.path.basename(self.path),
                "files": sorted(self.files),
                "through": self.through,
                "more": self.more,
            }
        )


def source_of(path):
    return path[:-1] if path.endswith(".pyc") else path


def describe(path, share=0.85):
    """Reads the expectation of the target at path from its comments."""
    expectation = Expectation(source_of(path), share)
    expectation.read_source()
    return expectation


def ready(expectation):
    """Says what is expected, and lets the process end by itself. Called last before the work."""
    if SELF_CHECK:
        start_self_check(float(SELF_CHECK))
    else:
        signal.alarm(LIFETIME)
    sys.stdout.write(expectation.to_json() + "\n")
    sys.stdout.flush()


def at_end(function, *args):
    """Calls a function when the target is told to end (SIGTERM) or has lived long enough."""

    def end(*_):
        function(*args)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGALRM, end)


def park():
    """Leaves the work to other threads. The main thread takes no more CPU time."""
    while True:
        if SELF_CHECK:
            time.sleep(0.005)
        else:
            signal.pause()


def escape(name):
    """The escapes of the folded format, as its documentation states them."""
    if isinstance(name, bytes):
        name = name.decode("utf-8", "replace" if PY2 else "surrogateescape")
    name = name.replace("\\", "\\\\").replace(";", "\\x3b")
    return "".join("\\x%02x" % ord(c) if ord(c) < 32 or ord(c) == 127 else c for c in name)


def folded(frame):
    stack = []
    while frame is not None:
        code = frame.f_code
        line = frame.f_lineno or code.co_firstlineno
        path = code.co_filename
        own = os.path.dirname(path) == os.path.dirname(__file__)
        path = "/".join(path.split("/")[-1 if own else -2 :])
        stack.append("%s (%s:%d)" % (escape(code_name(code)), escape(path), line))
        frame = frame.f_back
    return ";".join(reversed(stack))


def start_self_check(seconds):
    seen = {}
    end = time.time() + seconds

    def take(_, main_frame):
        frames = list(sys._current_frames().values())
        own = sys._getframe()
        for frame in frames:
            if frame is own:
                frame = main_frame
            if frame.f_code is park.__code__:
                continue
            key = folded(frame)
            seen[key] = seen.get(key, 0) + 1
        if time.time() >= end:
            out = "".join("%s %d\n" % item for item in sorted(seen.items()))
            os.write(1, out.encode("utf-8", "replace" if PY2 else "surrogateescape"))
            os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0.01)

    signal.signal(signal.SIGALRM, take)
    signal.setitimer(signal.ITIMER_REAL, 0.01)
