# SPDX-License-Identifier: Apache-2.0
"""pybpf top as lines of JSON, against known programs."""

import collections
import contextlib
import functools
import json
import os
import shlex
import signal
import subprocess

import pytest

import harness
import pythons
from harness import cpu_s, pybpf

SHARES = pythons.TARGETS / "shares.py"

every_version = pytest.mark.parametrize("python", pythons.of_each_version(pythons.interpreters()), ids=lambda item: item.name)


def watch(*args, code=0):
    """The lines, one of each interval, and the last one, of what came after it."""
    run = pybpf("top", "--output", "jsonl", *args)
    assert run.code == code, run
    return [json.loads(line) for line in run.out.splitlines()], run.err


def by_name(rows):
    return {row["name"].rsplit(".", 1)[-1]: row for row in rows}


@contextlib.contextmanager
def watching(pid, *args):
    """pybpf top, and what reads a line of it. It is interrupted at the end."""
    command = [harness.PYBPF, "top", "--output", "jsonl", "-p", str(pid), *map(str, args)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with harness.started(command, bufsize=0, **streams) as watcher:
        yield watcher, lambda: json.loads(watcher.stdout.readline())


def watch_until(holds, pid, *args):
    """The lines until one of which that holds, and the last one, of what came after it."""
    with watching(pid, *args) as (watcher, read):
        lines = [read()]
        while not holds(lines[-1]):
            lines.append(read())
        watcher.send_signal(signal.SIGINT)
        out, err = watcher.communicate(timeout=harness.PATIENCE)
    assert watcher.returncode == 0 and not err, err
    return lines + [json.loads(line) for line in out.splitlines()]


@functools.lru_cache(maxsize=None)
def lines_of_shares(python):
    """Lines of tests/targets/shares.py until it was met often enough, and the CPU time that it took meanwhile."""
    with harness.target(python, "shares.py") as target:
        before = cpu_s(target.pid)
        lines = watch_until(
            lambda line: line["interval"] >= 3 and by_name(line["functions"]).get("work", {"all_total": 0})["all_total"] > 400,
            target.pid, "-i", 0.4, "-F", 499, "--rows", 1000,
        )
        return lines, cpu_s(target.pid) - before


DUMPS = """
import json
def exports():
    while True:
        json.dumps([{'a': str(i)} for i in range(500)], indent=1)
exports()
"""


def test_libraries_and_the_programs_own(tmp_path):
    """A function of json is shown with that of the program which called it; with --own it is left out."""
    program = tmp_path / "dumps.py"
    program.write_text(DUMPS)
    with harness.started([*harness.default_python().argv, str(program)]) as target:
        lines = watch_until(lambda line: line["all"]["samples"] > 50, target.pid, "-i", 0.5, "-F", 499)
        rows = [row for line in lines for row in line["functions"] if row["all_self"]]
        libraries = [row for row in rows if (row["file"] or "").startswith("json/")]
        assert libraries and all(row["from"] == {"name": "exports", "file": "dumps.py"} for row in libraries), libraries
        assert all(row["from"] is None for row in rows if row["file"] == "dumps.py" and row["name"] == "exports")
        lines = watch_until(lambda line: line["all"]["samples"] > 50, target.pid, "-i", 0.5, "-F", 499, "--own")
        files = {row["file"] for line in lines for row in line["functions"]}
        assert files <= {"dumps.py", None} and "dumps.py" in files
        assert lines[-1]["all"]["samples"] == sum(row["all_self"] for row in lines[-1]["functions"])


@every_version
def test_expressions(python):
    """Shows the call in large()'s line; from Python 3.11 on with its columns. Lines are as without the option."""
    with harness.target(python, "shares.py") as target:
        lines = watch_until(lambda line: line["all"]["samples"] > 50, target.pid, "-i", 0.5, "-F", 499, "--by=expression")
        without = watch_until(lambda line: line["all"]["samples"] > 5, target.pid, "-i", 0.5, "-F", 499)
    columns = {"end_line", "column", "end_column"}
    assert all("expressions" not in line for line in without)
    assert not any(columns & set(row) for line in lines + without for row in line["functions"] + line["lines"])
    source = SHARES.read_text().splitlines()
    rows = [row for row in lines[-1]["expressions"] if row["file"] == "shares.py" and row["name"].endswith("large")]
    assert rows and all(row["kind"] == "python" and row["first_line"] + 1 == row["line"] for row in rows), rows
    if python.version >= (3, 11):
        met = [row for row in rows if columns <= set(row)]
        texts = [source[row["line"] - 1][row["column"]:row["end_column"]] for row in met if row["line"] == row["end_line"]]
        assert "spin(0.06)" in texts, rows
    else:
        assert not any(columns & set(row) for row in rows), rows
    assert sum(row["all_self"] for row in lines[-1]["expressions"]) == sum(row["all_self"] for row in lines[-1]["lines"])


def thread_states(lines):
    """Seconds in the states and for the causes by TID, of all these lines: what one begins in one and ends in another."""
    found = collections.defaultdict(collections.Counter)
    for line in lines:
        for row in line["threads"]:
            states = row["states"] or {"causes": {}}
            found[row["tid"]].update({name: value for name, value in states.items() if name != "causes"})
            found[row["tid"]].update(states["causes"])
    return found


def seconds_of(lines):
    return sum(line["last"]["duration_s"] for line in lines)


def all_states(states):
    return states["running_s"] + states["waiting_for_cpu_s"] + states["asleep_s"]


@every_version
def test_shares_of_a_known_program(python):
    """Functions have their shares of all samples, and every sum is that of its parts."""
    lines, _ = lines_of_shares(python)
    assert [line["interval"] for line in lines] == list(range(1, len(lines) + 1))
    last = lines[-1]  # of no interval, or a short one; but it has the sums of all
    functions = by_name(last["functions"])
    total = functions["work"]["all_total"]
    assert functions["large"]["all_total"] / total == pytest.approx(0.75, abs=0.08)
    assert functions["small"]["all_total"] / total == pytest.approx(0.25, abs=0.08)
    for line in lines:
        sums = line["last"]
        for table in "functions", "lines":
            assert sum(row["self"] for row in line[table]) <= sums["samples"]
            assert all(row["self"] <= row["total"] <= sums["samples"] for row in line[table])
        assert sum(row["self"] for row in line["functions"]) == sums["samples"]
        for table in "threads", "processes":
            assert sum(row["total"] for row in line[table]) == sums["samples"]
        assert sums["asked"] - sums["lost"] == pytest.approx(sums["samples"], abs=3)
    for name in "samples", "asked", "lost":
        assert sum(line["last"][name] for line in lines) == last["all"][name]
    assert last["all"]["duration_s"] == pytest.approx(seconds_of(lines), rel=1e-3)
    states = [all_states(line["last"]["states"]) for line in lines if line["last"]["states"]]
    assert sum(states) == pytest.approx(2 * seconds_of(lines), rel=0.1)


def test_threads_have_their_states():
    lines, took_s = lines_of_shares(harness.default_python())
    spins, rests = sorted(thread_states(lines).values(), key=lambda states: -states["running_s"])
    for states in spins, rests:
        assert all_states(states) == pytest.approx(seconds_of(lines), rel=0.1)
    assert rests["asleep_s"] > 0.98 * all_states(rests) and spins["asleep_s"] < 0.1 * all_states(spins)
    # By its own clock; it ran before and after, too.
    assert 0 < spins["running_s"] + rests["running_s"] <= took_s


@every_version
def test_threads_and_what_they_wait_for(python):
    """Each thread's time is that of its state, and all states together are the run."""
    with harness.target(python, "all_states.py") as target:
        lines, err = watch("-p", target.pid, "-d", 1.6, "-i", 0.4)
    assert not err
    lines = lines[1:]  # in the first one not every thread has its name
    duration = seconds_of(lines)
    for line in lines:
        for row in filter(lambda row: row["states"], line["threads"]):
            assert row["states"]["asleep_s"] == pytest.approx(sum(row["states"]["causes"].values()), abs=1e-6)
    names = {row["tid"]: row["name"] for row in lines[-1]["threads"]}
    threads = {names[tid]: states for tid, states in thread_states(lines).items()}
    for name, states in threads.items():
        assert all_states(states) == pytest.approx(duration, rel=0.1), (name, states, duration)
    for name in "lock", "network", "pipe", "poll", "child", "sleep":
        assert threads[name][name] > 0.98 * all_states(threads[name]), (name, threads)
    spins = threads["spin-1"] + threads["spin-2"]
    # A stripped 3.6 does not say where its GIL is.
    gil = "lock" if python.kind == "stripped" and python.version[:2] == (3, 6) else "GIL"
    if python.kind == "free-threaded":
        assert spins[gil] == 0 and spins["asleep_s"] < 0.1 * duration
    else:
        # Of two threads one has the GIL, also while it waits for a CPU, and the other one waits for it or for a CPU.
        assert 0 < spins["running_s"] <= 1.1 * duration, threads
        assert spins[gil] >= 0.9 * spins["asleep_s"], threads
        # 2.7 is on one CPU: a thread that could have the GIL waits for the CPU.
        assert spins[gil] or python.version[0] == 2, threads
    whole = sum((collections.Counter(line["last"]["states"]["causes"]) for line in lines if line["last"]["states"]), collections.Counter())
    assert whole["sleep"] == pytest.approx(2 * duration, rel=0.1)
    assert whole[gil] >= spins[gil] - 1e-6


def test_without_wait_states():
    """As on a kernel that cannot measure them: threads are asleep, whatever for."""
    for option in ("--no-wait-states",), ("--without-kernel-feature", "bpf_loop"):
        with harness.target(harness.default_python(), "all_states.py") as target:
            lines, err = watch("-p", target.pid, "-d", 0.8, "-i", 0.4, *option)
        assert not err
        assert not any((row["states"] or {}).get("causes") for line in lines for row in line["threads"])
        *asleep, spins, _ = sorted(thread_states(lines).values(), key=lambda states: -states["asleep_s"])
        assert all(states["asleep_s"] > 0.98 * all_states(states) for states in asleep) and len(asleep) == 7
        assert spins["running_s"] > 0


def test_a_long_interval_loses_nothing():
    """More stacks than the kernel's table has room for come in one interval."""
    with harness.target(harness.default_python(), "many_stacks.py") as target:
        lines, _ = watch("-p", target.pid, "-d", 14, "-i", 12, "-F", 4999)
    first = lines[0]["last"]
    assert first["duration_s"] > 11
    if first["samples"] < 40000:
        pytest.skip("the machine is too busy for more stacks than the table of 32,768: %d" % first["samples"])
    assert lines[-1]["all"]["lost"] <= 0.01 * lines[-1]["all"]["asked"]


def test_change_is_told_only_beyond_chance():
    """A program that begins to spin grows. What chance is, tests/unit/top has."""
    with harness.target(harness.default_python(), "shares.py") as target:
        with watching(target.pid, "-i", 0.5, "-F", 999) as (_, read):
            def grows():
                """At once, or never: where others have the CPUs it may have too little of them at first. 11 samples are beyond chance."""
                os.kill(target.pid, signal.SIGSTOP)
                harness.wait_for(lambda: not read()["functions"])
                assert not read()["functions"]
                os.kill(target.pid, signal.SIGCONT)
                grew = [by_name(row for row in read()["functions"] if row["change"] == "grew") for _ in range(6)]
                return any("work" in rows for rows in grew)

            harness.wait_for(grows)


def test_a_process_that_ends():
    with harness.target(harness.default_python(), "shares.py") as target:
        with watching(target.pid) as (watcher, read):
            read()
            os.kill(target.pid, signal.SIGKILL)
            out, err = watcher.communicate(timeout=harness.PATIENCE)
    assert watcher.returncode == 0
    assert json.loads(out.splitlines()[-1])["last"]["threads"] == 0
    assert err.decode() == "pybpf: process %d ended, or stopped\n" % target.pid


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_ends_it_with_a_last_line(name):
    with harness.target(harness.default_python(), "shares.py") as target:
        with watching(target.pid) as (watcher, read):
            read()
            watcher.send_signal(getattr(signal, "SIG" + name))
            out, err = watcher.communicate(timeout=harness.PATIENCE)
    assert watcher.returncode == 0 and not err
    assert json.loads(out.splitlines()[-1])["interval"] >= 2


def test_bad_input():
    for args, sentence in [
        ((), "which process"),
        (("-p", "1", "-i", "0"), "not a time from 0.1"),
        (("-p", "1", "--rows", "0"), "--rows"),
        (("-p", "1", "--by=expression", "-o", "x.pstats"), "has no place for expressions"),
        (("-p", "1", "x"), "takes no argument"),
        (("6311",), "`pybpf top -p 6311`"),
    ]:
        run = pybpf("top", *args)
        assert run.code == 2 and sentence in run.err and run.err.count("\n") == 1, run
    with harness.target(harness.default_python(), "shares.py") as target:
        run = pybpf("top", "-p", target.pid)
        assert run.code == 1 and "--output=jsonl" in run.err and run.err.count("\n") == 1, run
        full = subprocess.run(
            "%s top -p %d --output jsonl -i 0.1 -d 1 > /dev/full" % (shlex.quote(harness.PYBPF), target.pid),
            shell=True, stderr=subprocess.PIPE, timeout=harness.PATIENCE,
        )
        assert full.returncode == 1 and full.stderr.count(b"\n") == 1 and b"No space left" in full.stderr
