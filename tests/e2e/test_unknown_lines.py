# SPDX-License-Identifier: Apache-2.0
"""Lines that cannot be known are not printed: code of the JIT, code that Nuitka compiled. And some that can."""

import os
import subprocess
from collections import Counter

import pytest

import harness
import pythons

pytestmark = pytest.mark.usefixtures("profiler")

EQUAL = 0.45  # among four lines that cost the same and one that costs less none has so large a share
FORMATS = ("folded", "text", "html", "svg", "pprof", "speedscope", "gecko", "chrometrace", "perf-script", "pstats")
FORMATS += ("callgrind", "json", "jsonl")


def with_jit():
    probe = "import sys; sys.exit(not sys._jit.is_available())"
    found = [item for item in pythons.interpreters() if item.version >= (3, 14)]
    return [item for item in found if subprocess.run([*item.argv, "-c", probe], stderr=subprocess.DEVNULL).returncode == 0]


def marked(path, mark):
    text = path.read_text(encoding="utf-8").split("\n")
    return {i + 1 for i, row in enumerate(text) if row.endswith("# " + mark)}


def running(argv):
    process = subprocess.Popen(harness.tied(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def record(argv, **options):
    process = running(argv)
    try:
        return harness.record(process.pid, **options)
    finally:
        harness.stop(process)


@pytest.mark.parametrize("jit", [True, False], ids=["jit", "plain"])
@pytest.mark.parametrize("item", with_jit(), ids=lambda item: item.name)
def test_jit(item, jit):
    pythons.copy_targets()
    path = pythons.TARGETS / "jitted.py"
    run = record(item.command("jitted.py", *["jit"] * jit), seconds=2, rate=1999)
    leaves, lineless = Counter(), 0
    for stack, count in run.stacks():
        assert [frame.name for frame in stack[:2]] == ["<module>", "main"], harness.show(stack)
        assert all(frame.line for frame in stack[:-1]), harness.show(stack)
        if stack[-1].name == "called":
            assert stack[-2].line in marked(path, "call"), harness.show(stack)
        if stack[-1].name == "equal":
            leaves[stack[-1].line] += count
        lineless += 0 if stack[-1].line else count
    number = sum(leaves.values())
    assert number > 100, "too few samples: %s" % run.stats
    for line in set(leaves) - {None}:
        assert leaves[line] < EQUAL * number, "%s of %d samples are on line %d" % (leaves[line], number, line)
    assert lineless == run.stats["incomplete"]["jit"]
    assert leaves[None] > number / 2 if jit else lineless == 0, leaves


@pytest.mark.parametrize("item", with_jit()[:1], ids=lambda item: item.name)
def test_every_format_without_a_line(item, tmp_path):
    pythons.copy_targets()
    process = running(item.command("jitted.py", "jit"))
    saved = tmp_path / "a.pybpf"
    try:
        done = harness.pybpf("-p", process.pid, "-d", 1, "--timestamps", "-o", saved)
        assert done.code == 0, done.err
    finally:
        harness.stop(process)
    for name in FORMATS:
        for by in [[], ["--by=line"]] if name in ("text", "svg") else [[]]:
            done = harness.pybpf("report", saved, "-f", name, "-o", tmp_path / "out", *by)
            assert done.code == 0, "%s: %s" % (name, done.err)
            assert name == "html" or b":-1" not in (tmp_path / "out").read_bytes(), name


CALLER = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import compiled
def back():
    sum(range(2000))  # the line of back
os.write(1, b"ready\\n")
while True:
    compiled.work(back)
"""
COMPILED = """
class Thing:
    def __init__(self, back):
        self.back = back
    def __add__(self, other):
        self.back()
        return other
def loop(thing):
    total = 0
    for i in range(30):
        total += hash((i, total)) % 7
        thing + i
    return total
def work(back):
    return loop(Thing(back))
"""


def nuitka(item, folder):
    """Compiles a module; skips where Nuitka cannot be had."""
    packages = pythons.cache() / "nuitka" / ("%d.%d" % item.version)
    if not packages.exists():
        making = packages.with_name(".making-%d-%s" % (os.getpid(), packages.name))
        pip = [*item.argv, "-m", "pip", "install", "--quiet", "--target", str(making), "nuitka"]
        if subprocess.run(pip, stdin=subprocess.DEVNULL, capture_output=True).returncode:
            pytest.skip("Nuitka cannot be installed for " + item.name)
        making.rename(packages)
    (folder / "compiled.py").write_text(COMPILED, encoding="utf-8")
    done = subprocess.run(
        [*item.argv, "-m", "nuitka", "--module", "compiled.py"],
        cwd=folder,
        env=dict(os.environ, PYTHONPATH=str(packages), HOME=str(folder)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (folder / "compiled.py").unlink()


@pytest.mark.parametrize("version", [(3, 11), (3, 13)], ids=lambda v: "%d.%d" % v)
def test_nuitka(version, tmp_path):
    item = next((i for i in pythons.interpreters() if i.version == version and i.name.startswith("pyenv")), None)
    if not item:
        pytest.skip("no pyenv's %d.%d" % version)
    nuitka(item, tmp_path)
    (tmp_path / "caller.py").write_text(CALLER, encoding="utf-8")
    run = record([*item.argv, str(tmp_path / "caller.py"), str(tmp_path)], seconds=2, rate=1999)
    through = 0
    for stack, count in run.stacks():
        inner = [frame for frame in stack if frame.file.endswith("compiled.py")]
        names = [frame.name.rpartition(".")[2] for frame in stack]
        assert names == ["<module>", "work", "loop", "__add__", "back"][: len(names)] or names[-1] == "__init__", names
        assert all(frame.line is None for frame in inner), harness.show(stack)
        assert all(frame.line for frame in stack if frame not in inner), harness.show(stack)
        if names[-1] == "back":
            assert CALLER.split("\n")[stack[-1].line - 1].endswith("back") or "def back" in CALLER.split("\n")[
                stack[-1].line - 1
            ], harness.show(stack)
        through += count if inner else 0
    assert through > 0.9 * run.stats["samples"]["asked"], run.stats
    assert through == run.stats["incomplete"]["compiled"]


LONG = """
import sys
text = "x = 1\\n" + "x = (x * 7 + 1) % 1000003\\n\\n" * (1200 if sys.version_info >= (3, 11) else 2500)
for i in range(int(sys.argv[1])):
    exec(compile(text.replace("7", str(i + 2)), "long_%d.py" % i, "exec"), {})
"""


@pytest.mark.parametrize("item", [i for i in pythons.interpreters() if i.runs_here()], ids=lambda item: item.name)
def test_line_tables_of_what_is_gone(item, tmp_path):
    """A module's code is run once, and freed at once: its line table is long, and has to be taken in time."""
    (tmp_path / "long.py").write_text(LONG, encoding="utf-8")
    stats, out = tmp_path / "stats.json", tmp_path / "out.folded"
    argv = [*item.argv, str(tmp_path / "long.py"), "60"]
    run = harness.pybpf("-F", 4999, "-o", out, "--json-stats", stats, "--", *argv)
    assert run.code == 0, run.err
    seen = 0
    for stack, _ in harness.parse(out.read_text(encoding="utf-8")):
        if stack[-1].file.startswith("long_"):
            seen += 1
            assert stack[-1].line is not None, harness.show(stack)
    assert seen > 5, "the modules were hardly met: %d" % seen
    assert '"without_lines": 0' in stats.read_text(encoding="utf-8")
