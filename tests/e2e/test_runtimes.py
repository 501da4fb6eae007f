# SPDX-License-Identifier: Apache-2.0
"""Several Pythons in one process: tests/targets/runtimes.c says what CPU time each has had."""

import contextlib
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from typing import Optional, Tuple

import harness
import pytest
import pythons
from harness import pybpf, record_busy, total

pytestmark = pytest.mark.usefixtures("profiler")

BURN = {"alpha", "beta", "gamma"}
CALLED = "[called from another Python]"
UNKNOWN = "[or in another Python]"
# What the kernel gives each of two burns of 5 ms is uneven while others want the CPUs, too: 20 ms by a debug build.
SHARE = 0.2
ENOUGH = 500  # samples


@dataclass(frozen=True)
class Library:
    version: Tuple[int, int]
    path: str
    home: str
    root: Optional[str] = None


def library(version, flags=""):
    """A libpython that can be loaded here, or, with flags, in the root file system of sid."""
    name = "%d.%d" % version
    if flags:
        root = str(pythons.cache() / "sid")
        path = "/usr/lib/x86_64-linux-gnu/libpython%s%s.so.1.0" % (name, flags)
        return Library(version, path, "/usr", root) if os.path.exists(root + path) else None
    for home in sorted(glob.glob(str(pythons.pyenv_root() / "versions" / (name + ".*")))):
        for path in glob.glob(home + "/lib/libpython%s*.so.1.0" % name):
            return Library(version, path, home)
    return None


PAIRS = [
    (((2, 7), ""), ((3, 9), "")),
    (((3, 6), ""), ((3, 7), "")),
    (((3, 8), ""), ((3, 12), "")),
    (((3, 10), ""), ((3, 12), "")),
    (((3, 11), ""), ((3, 13), "")),
    (((3, 12), ""), ((2, 7), "")),
    (((3, 13), ""), ((3, 10), "")),
    (((3, 13), "d"), ((3, 14), "d")),
]


def pair_name(pair):
    return "+".join("%d.%d%s" % (*version, flags) for version, flags in pair)


@pytest.fixture(params=PAIRS, ids=pair_name)
def pair(request):
    return libraries(request.param)


def libraries(pair):
    found = [library(*one) for one in pair]
    if None in found:
        pytest.skip("no shared libpython for %s" % pair_name(pair))
    return found


def order_is_known(pair):
    """To 3.9 nothing tells where on the C stack a thread's Python code runs."""
    return all(one.version >= (3, 10) for one in pair)


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("runtimes") / "runtimes"
    source = harness.TOP / "tests" / "targets" / "runtimes.c"
    flags = ["-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", path, source, "-ldl", "-lpthread"], check=True)
    return str(path)


def command(program, mode, pair):
    argv = [program, mode]
    for one in pair:
        argv += [one.path, one.home]
    if pair[0].root is None:
        return argv
    # By its content: an earlier one may still run.
    with open(program, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:16]
    inside = "/%s/runtimes-%s" % (pythons.ROOT_TARGETS, digest)
    place = pair[0].root + inside
    if not os.path.exists(place):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        shutil.copy(program, "%s.%d" % (place, os.getpid()))
        os.rename("%s.%d" % (place, os.getpid()), place)
    return ["chroot", pair[0].root, inside, *argv[1:]]


class Running:
    """The program; it answers a line on its standard input."""

    def __init__(self, process):
        self.process = process
        self.pid = process.pid
        assert harness.read_ready_line(process) == {}

    def spent(self, line="times"):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return Counter(harness.read_ready_line(self.process))


@contextlib.contextmanager
def running(program, mode, pair):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with harness.started(command(program, mode, pair), **pipes) as process:
        yield Running(process)


def share(spent):
    return spent["beta"] / (spent["alpha"] + spent["beta"])


def names(stack):
    return [frame.name or frame.text for frame in stack]


def count_by_names(stacks):
    found = Counter()
    for stack, count in stacks:
        for frame in stack:
            if frame.name in BURN and frame.line is not None:
                assert frame.file == "<string>" and 1 <= int(frame.line) <= 5, harness.show(stack)
        found[tuple(names(stack))] += count
    return found


def check_losses(run, without=0.1):
    """Only what lies between two calls has no frames: 0.5 %, and more where other programs take the CPU from it there."""
    samples, no_frames = run.stats["samples"], run.stats["without_python"]["no_frames"]
    assert samples["taken"] >= 50, run.stats
    assert samples["lost"] <= 0.01 * samples["asked"], run.stats
    assert samples["python"] + no_frames >= 0.99 * samples["taken"], run.stats
    assert no_frames <= without * samples["taken"], (no_frames, samples)
    assert run.stats["without_python"]["no_thread_state"] <= 0.01 * samples["taken"], run.stats
    assert total(run.stacks()) == samples["python"]


def check_versions(text, pair):
    for one in pair:
        assert "%d.%d" % one.version in text, text


def check_account(run, pair):
    told = re.search(r"1 process had more than one Python: (.*)", run.err)
    assert told, run.err
    check_versions(told.group(1), pair)
    assert run.stats["processes"]["several_pythons"] == 1


def test_a_thread_for_each(program, pair):
    """The kernel gives two threads what it likes; each has its own name, and all of its samples have frames."""
    with running(program, "apart", pair) as target:
        for seconds in (0.8, 3, 12, 48):
            run = record_busy(target.pid, "--threads", "-v", seconds=seconds)
            found = count_by_names(run.stacks())
            by_name = Counter()
            for stack, count in found.items():
                assert len(stack) == 2 and stack[0] == stack[1], found
                by_name[stack[1]] += count
            check_losses(run)
            if min(by_name["alpha"], by_name["beta"]) >= 10:
                break
    assert min(by_name["alpha"], by_name["beta"]) >= 10, found
    check_account(run, pair)
    check_versions(run.err, pair)


def test_one_thread_by_turns(program, pair):
    with running(program, "turns", pair) as target:
        before = target.spent()
        run = record_busy(target.pid, fewest=ENOUGH, seconds=0.8)
        expected = share(target.spent() - before)
    found = count_by_names(run.stacks())
    assert set(found) == {("alpha",), ("beta",)}, found
    check_losses(run)
    assert abs(found["beta",] / total(run.stacks()) - expected) < SHARE, (found, expected)


def test_a_copy_by_fork(program, pair):
    with running(program, "forked", pair) as target:
        with open("/proc/%d/task/%d/children" % (target.pid, target.pid), encoding="ascii") as file:
            child = int(file.read())
        before = target.spent()
        run = record_busy(child, fewest=ENOUGH, seconds=0.8)
        expected = share(target.spent() - before)
    found = count_by_names(run.stacks())
    assert set(found) == {("alpha",), ("beta",)}, found
    check_losses(run)
    assert abs(found["beta",] / total(run.stacks()) - expected) < SHARE, (found, expected)


def of_several(run, mark):
    """Samples with that mark, by the account and in the output."""
    key = "other_python_outside" if mark == CALLED else "other_python_beside"
    marked = sum(count for stack, count in run.stacks() if mark in names(stack))
    assert run.stats["incomplete"][key] == marked, run.stats
    return marked


def without_marks(found):
    plain = Counter()
    for stack, count in found.items():
        plain[tuple(name for name in stack if name not in (CALLED, UNKNOWN))] += count
    return plain


@pytest.mark.parametrize("mode", ["nested", "released"])
def test_one_calls_the_other(program, pair, mode):
    with running(program, mode, pair) as target:
        before = target.spent()
        run = record_busy(target.pid, fewest=ENOUGH, seconds=0.8)
        expected = share(target.spent() - before)
    found = count_by_names(run.stacks())
    check_losses(run)
    known = order_is_known(pair)
    for stack in found:
        if known and "beta" in stack:
            assert stack == (CALLED, "beta"), found
        elif known:
            assert stack in (("outer",), ("outer", "alpha")), found
        else:
            assert stack in (
                ("outer",),
                ("outer", "alpha"),
                ("beta", UNKNOWN),
                ("outer", UNKNOWN),
            ), found
    assert of_several(run, UNKNOWN if known else CALLED) == 0
    marked = of_several(run, CALLED if known else UNKNOWN)
    assert abs(marked / total(run.stacks()) - expected) < SHARE, (found, expected)


def test_each_calls_the_other(program, pair):
    """alpha's loop calls turn() of the second Python, which calls gamma() of the first."""
    with running(program, "woven", pair) as target:
        before = target.spent()
        run = record_busy(target.pid, fewest=ENOUGH, seconds=0.8)
        expected = share(target.spent() - before)
    found = count_by_names(run.stacks())
    check_losses(run)
    if not order_is_known(pair):
        assert of_several(run, UNKNOWN) > 0
        for stack in found:
            assert stack in (("outer",), ("outer", "alpha")) or stack[-1] == UNKNOWN, found
        return
    assert of_several(run, UNKNOWN) == 0
    for stack in found:
        assert stack in (
            ("outer",),
            ("outer", "alpha"),
            (CALLED, "turn"),
            (CALLED, "turn", "beta"),
            (CALLED, "outer", "gamma"),
            (CALLED, "outer"),
        ), found
    assert abs(found[CALLED, "turn", "beta"] / total(run.stacks()) - expected) < SHARE
    gamma, alpha = found[CALLED, "outer", "gamma"], found["outer", "alpha"]
    assert abs(gamma - alpha) < SHARE * total(run.stacks()), found


def test_one_that_comes_later(program, pair, tmp_path):
    """The plugin is loaded while the process is being sampled."""
    out, stats = tmp_path / "out.folded", tmp_path / "stats.json"
    with running(program, "later", pair) as target:
        argv = [harness.PYBPF, "-p", target.pid, "-d", "3", "-F", "999", "--threads"]
        argv += ["-v", "-o", out, "--json-stats", stats]
        with harness.started(list(map(str, argv)), stderr=subprocess.PIPE) as profiler:
            first = b""
            while b"laid out" not in first:
                line = profiler.stderr.readline()
                assert line, first
                first += line
            target.spent("load")
            err = (first + profiler.communicate(timeout=harness.PATIENCE)[1]).decode()
    run = harness.Run(profiler.returncode, out.read_text(), err, json.loads(stats.read_text()))
    assert run.code == 0, err
    by_name = Counter()
    for stack, count in count_by_names(run.stacks()).items():
        assert stack[0] == stack[1] or (stack[0] == "beta" and "alpha" not in stack), stack
        by_name[stack[-1]] += count
    # The thread first loads the library and sets it up: some of that is Python's importlib.
    missing = run.stats["samples"]["taken"] - total(run.stacks())
    assert by_name["alpha"] and by_name["beta"] > 3 * missing, (by_name, run.stats)
    check_account(run, pair)
    assert re.search(r"also Python %d\.%d" % pair[1].version, err), err


@pytest.mark.parametrize("mode", ["apart", "forked"])
def test_from_the_start(program, mode, tmp_path):
    pair = libraries((((3, 10), ""), ((3, 12), "")))
    out, stats = tmp_path / "out.folded", tmp_path / "stats.json"
    argv = [harness.PYBPF, "-F", "999", "-o", out, "--json-stats", stats, "--"]
    argv += command(program, mode, pair)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with harness.started(list(map(str, argv)), **pipes) as profiler:
        target = Running(profiler)
        time.sleep(2)
        expected = share(target.spent())
        profiler.stdin.close()
        profiler.stdin = None
        err = profiler.communicate(timeout=harness.PATIENCE)[1].decode()
    assert profiler.returncode == 0, err
    run = harness.Run(0, out.read_text(), err, json.loads(stats.read_text()))
    found = Counter()
    for stack, count in run.stacks():
        found[names(stack)[-1]] += count
    known = found["alpha"] + found["beta"]
    assert known >= 0.8 * run.stats["samples"]["taken"], (found, run.stats)
    if mode == "forked":
        assert abs(found["beta"] / known - expected) < SHARE, (found, expected)


def test_a_program_that_is_known(program, tmp_path):
    """The Pythons of a program's second process are known as soon as they are mapped."""
    pair = libraries((((3, 8), ""), ((3, 11), "")))
    out = tmp_path / "out.folded"
    argv = [harness.PYBPF, "--all", "-d", "20", "-F", "499", "-o", out]
    with harness.started(list(map(str, argv)), stderr=subprocess.PIPE) as profiler:
        time.sleep(1)
        pids = []
        for _ in range(3):
            with running(program, "apart", pair) as target:
                pids.append(target.pid)
                time.sleep(2)
        harness.interrupt(profiler)
        err = profiler.communicate(timeout=harness.PATIENCE)[1].decode()
    assert profiler.returncode == 0, err
    found = {pid: Counter() for pid in pids}
    for stack, count in harness.parse(out.read_text()):
        told = re.search(r"runtimes \((\d+)\)", stack[0].text)
        if told and int(told.group(1)) in found:
            found[int(told.group(1))][names(stack)[-1]] += count
    for pid in pids:
        assert found[pid]["alpha"] and found[pid]["beta"], (found, err)


def test_ps(program, pair):
    with running(program, "apart", pair) as target:
        run = pybpf("ps", "--json", "-p", target.pid)
        table = pybpf("ps", "-p", target.pid)
    row = json.loads(run.out)[0]
    told = {row["version"]: row["path"]}
    told.update({more["version"]: more["path"] for more in row["more_pythons"]})
    assert set(told.values()) == {one.path for one in pair}
    for version, path in told.items():
        assert version.startswith(re.search(r"libpython(\d+\.\d+)", path).group(1)), told
        assert version in table.out
    assert ",".join(told) in table.out


MAPPED = """
import ctypes, os, sys
for path in sys.argv[1:]:
    ctypes.CDLL(path, mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND)
def busy():
    while True:
        sum(range(20000))
print("{}", flush=True)
busy()
"""


def mapping_python(paths):
    python = harness.default_python()
    argv = [*python.argv, "-c", MAPPED, *paths]
    return harness.started(argv, stdout=subprocess.PIPE)


def test_a_library_that_is_not_used():
    """Extension modules of a static Python can bring a libpython that nobody starts."""
    spare = library((3, 12)) or library((3, 11))
    if not spare:
        pytest.skip("no shared libpython")
    with mapping_python([spare.path]) as process:
        harness.read_ready_line(process)
        run = record_busy(process.pid)
        rows = json.loads(pybpf("ps", "--json", "-p", process.pid).out)
    harness.check_account(run)
    assert "more than one Python" not in run.err
    assert "more_pythons" not in rows[0] and rows[0]["path"] != spare.path


def test_more_than_are_sampled():
    spare = [library((3, minor)) for minor in range(6, 14)]
    paths = [one.path for one in spare if one]
    if len(paths) < 5:
        pytest.skip("five shared libpythons are needed")
    with mapping_python(paths[:5]) as process:
        harness.read_ready_line(process)
        run = record_busy(process.pid)
    assert re.search(r"has [56] Pythons in it; pybpf samples 4 of them", run.err), run.err
