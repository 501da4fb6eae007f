# SPDX-License-Identifier: Apache-2.0
"""Processes whose first thread has ended while others run: /proc/PID is a zombie's, its threads are not."""

import json

import pytest

import harness
import processes
import pythons

pytestmark = pytest.mark.usefixtures("profiler")
TARGET = "leaderless.py"
SOURCE = (pythons.TARGETS / TARGET).read_text().split("\n")


def with_ctypes():
    return pythons.of_each_version([item for item in pythons.interpreters() if item.version >= (3, 6) or item.kind == "shared"])


def line(text, first=0):
    found = [number for number, row in enumerate(SOURCE, 1) if text in row and number > first]
    return found[0]


def check_stacks(stacks, lines):
    """Each is what the thread that goes on runs, at lines that it has. Returns the samples in the long function."""
    begin = line("def short_burn")
    # From 3.11 on the first instruction (RESUME) is of the line of the def.
    short = range(begin, begin + 3)
    long_lines = set()
    number = 0
    for stack, count in stacks:
        names = [frame.name for frame in stack]
        if names[-1] in ("main", "<module>") or "work" not in names:
            continue
        at = names.index("work")
        assert stack[at].file.endswith(TARGET), harness.show(stack)
        above = stack[at + 1 :]
        if [frame.name for frame in above] == ["long_burn"]:
            assert above[0].file == "long.py" and 1 <= above[0].line <= lines + 1, harness.show(stack)
            assert stack[at].line == line('scope["long_burn"]()'), harness.show(stack)
            long_lines.add(above[0].line)
            number += count
        elif [frame.name for frame in above] == ["short_burn"]:
            assert above[0].line in short and stack[at].line == line("short_burn()", begin), harness.show(stack)
    return number, long_lines


@pytest.mark.parametrize("interpreter", with_ctypes(), ids=lambda item: item.name)
def test_first_thread_has_ended(interpreter):
    if not pythons.has_module(interpreter, "ctypes"):
        pytest.skip("%s has no ctypes" % interpreter.name)
    with harness.target(interpreter, TARGET) as running:
        harness.wait_for(lambda: harness.state(running.pid) == "Z")
        run = harness.record_busy(running.pid)
    harness.check_account(run)
    number, lines = check_stacks(run.stacks(), running.says["lines"])
    assert number >= 0.3 * run.stats["samples"]["python"], run.stats
    assert len(lines) >= 0.3 * number, "%d samples of %d lines" % (number, len(lines))


@pytest.mark.parametrize("interpreter", with_ctypes(), ids=lambda item: item.name)
def test_first_thread_ends_during_the_run(interpreter):
    """Names and lines of what is first met afterwards are read by way of another thread."""
    if not pythons.has_module(interpreter, "ctypes"):
        pytest.skip("%s has no ctypes" % interpreter.name)
    argv = interpreter.command(TARGET, "late")
    with processes.program(interpreter, TARGET, argv=argv) as running:
        assert harness.state(running.pid) != "Z"
        with processes.sampling("-p", running.pid) as run:
            running.process.stdin.write(b"\n")
            harness.wait_for(lambda: harness.state(running.pid) == "Z")
            harness.wait_for(lambda: cpu_of_threads(running.pid) > 1)
    number, lines = check_stacks(run.stacks(), running.says["lines"])
    assert number >= 100, run.stats
    # Line tables are not copied whole in the kernel: without them each sample would have the first line.
    assert len(lines) >= 0.3 * number, "%d samples of %d lines: %s" % (number, len(lines), run.err)
    assert "[unnamed]" not in run.out
    assert "ended during the run" not in run.err


def cpu_of_threads(pid):
    """Seconds."""
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_ps_and_all_show_it():
    interpreter = harness.default_python()
    with harness.target(interpreter, TARGET) as running:
        harness.wait_for(lambda: harness.state(running.pid) == "Z")
        rows = json.loads(harness.pybpf("ps", "-p", running.pid, "--json").out)
        listed = harness.pybpf("ps").out.split("\n")
        run = harness.pybpf("--all", "-d", 1, "-F", 999)
    assert [row["version"] and row["version"][:4] for row in rows] == ["%d.%d" % interpreter.version]
    assert rows[0]["command"].endswith(TARGET) and rows[0]["not_supported"] is None
    assert [row for row in listed if row.split()[:1] == [str(running.pid)] and TARGET in row]
    seen = processes.by_process(run)
    assert running.pid in seen, "%s are all" % sorted(seen)
    assert check_stacks(seen[running.pid][1], running.says["lines"])[0] >= 10


def test_all_threads_have_ended():
    """A zombie is still one: ended, and not to be profiled."""
    with harness.target(harness.default_python(), TARGET) as running:
        running.process.kill()
        harness.wait_for(lambda: not harness.pybpf("ps", "-p", running.pid, "--json").out.strip("[]\n"))
        run = harness.pybpf("-p", running.pid, "-d", 1)
    assert run.code == 1
    assert "has ended and waits for its parent" in harness.one_sentence(run.err)
