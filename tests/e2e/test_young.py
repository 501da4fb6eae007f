# SPDX-License-Identifier: Apache-2.0
"""Programs that pybpf looks at while they are being loaded: none is refused, or lost, for that."""

import json
import os
import shutil
import struct
import subprocess

import pytest

import containers
import harness
import pythons
import starts
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")
# strace holds the program up behind each of its loader's mappings, for longer than pybpf takes to look.
HELD_US, HELD_CALLS = 20000, 30
SHORT = 30  # starts, of the 1,000 of make starts


def held_up(argv):
    """The same program, by a loader that is kept waiting wherever it can be."""
    inject = "inject=mmap:delay_exit=%d:when=1..%d" % (HELD_US, HELD_CALLS)
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", inject, *argv]


def needs_strace():
    if not shutil.which("strace"):
        pytest.skip("strace is not installed; tools/install-deps --test installs it")


def profile(argv, folder):
    """(run, samples in burn)"""
    path, stats = folder / "profile.folded", folder / "stats.json"
    run = pybpf("-F", 499, "-o", path, "--json-stats", stats, "--", *argv)
    assert run.code == 0, run.err
    run.stats = json.loads(stats.read_text())
    run.out = path.read_text()
    return run, sum(count for stack, count in run.stacks() if stack[-1].name == "burn")


@pytest.mark.parametrize("interpreter", pythons.interpreters(), ids=lambda item: item.name)
def test_a_loader_at_work_is_waited_for(interpreter, tmp_path):
    """A look between two of its mappings finds the rest of the file where the variables are to be."""
    needs_strace()
    argv = interpreter.command("short.py", 100)
    run, burnt = profile(held_up(argv), tmp_path)
    assert "does not look like" not in run.err and "cannot be read" not in run.err, run.err
    assert burnt > 0, (run.err, run.stats)


@pytest.mark.parametrize("way", list(starts.WAYS))
def test_none_is_lost_beside_a_load(way):
    """make starts in short."""
    if way == "container" and containers.why_not():
        pytest.skip(containers.why_not())
    tally = starts.Tally()
    with starts.load():
        starts.WAYS[way](pythons.interpreters(), SHORT, tally)
    assert tally.started == SHORT
    assert not tally.lost and not tally.refused, (tally.text(), tally.lost, tally.refused)


def contradicting(seconds):
    python = pythons.one(name="system-python3.11")
    if not python:
        pytest.skip("/usr/bin/python3.11 is missing, whose ctypes is known to work")
    return harness.target(python, "contradicts.py", str(seconds))


def sampled(pid, seconds):
    """(run of --all, samples of that process)"""
    run = pybpf("--all", "-F", 499, "-d", seconds)
    assert run.code == 0, run.err
    rows = [row for row in run.err.splitlines() if "process %d " % pid in row]
    return rows, sum(count for stack, count in run.stacks() if "(%d)" % pid in stack[0].text)


@pytest.mark.parametrize("seconds", [1, 4])
def test_a_contradiction_that_lasts_is_a_refusal(seconds):
    with contradicting(60) as running:
        assert running.says["places"] > 0
        rows, count = sampled(running.pid, seconds)
    assert len(rows) == 1 and "does not look like Python 3.11" in rows[0], rows
    assert not count


def test_a_contradiction_that_ends_is_none():
    """And its process is sampled from then on."""
    with contradicting(1.5) as running:
        rows, count = sampled(running.pid, 5)
    assert not rows and count > 20, (rows, count)


def test_one_that_ends_after_the_refusal():
    with contradicting(8) as running:
        rows, count = sampled(running.pid, 14)
    assert len(rows) == 1 and count > 20, (rows, count)


def elsewhere(library, function):
    """Changes the displacement that a function of the library begins with, if it begins with a load of a variable."""
    words = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout.split("\n")
    at = next(int(row.split()[0], 16) for row in words if row.endswith(" T " + function))
    code = bytearray(library.read_bytes())
    # Code lies in the file where it is mapped, in these libraries.
    if code[at : at + 3] != b"\x48\x8b\x05":
        pytest.skip("%s of %s does not begin with mov" % (function, library))
    (distance,) = struct.unpack_from("<i", code, at + 3)
    struct.pack_into("<i", code, at + 3, distance + 8)
    library.chmod(0o755)
    library.write_bytes(code)


@pytest.mark.parametrize("version", [(2, 7), (3, 6)])
def test_an_address_read_from_code_is_confirmed(version, tmp_path):
    """A stripped Python's interp_head: PyInterpreterState_Head alone is not believed, whatever else it may return."""
    found = pythons.one(version=version, kind="stripped")
    if not found:
        pytest.skip("tools/setup-pythons has not made a stripped Python %d.%d" % version)
    folder = shutil.copytree(os.path.dirname(os.path.dirname(found.argv[-1])), tmp_path / "python", symlinks=True)
    (library,) = [path for path in (folder / "lib").glob("libpython*.so.1.0")]
    elsewhere(library, "PyInterpreterState_Head")
    argv = [word.replace(os.path.dirname(os.path.dirname(found.argv[-1])), str(folder)) for word in found.argv]
    with harness.started([*argv, "-c", "import time; time.sleep(60)"]) as process:
        harness.wait_for(lambda: str(library) in open("/proc/%d/maps" % process.pid, encoding="utf-8").read())
        run = pybpf("-p", process.pid, "-d", 1)
    assert run.code == 1 and "PyInterpreterState_New" in harness.one_sentence(run.err), run.err
