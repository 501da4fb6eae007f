# SPDX-License-Identifier: Apache-2.0
"""CPU time of a Python process that has no Python functions: each part in its row, so that all of it is in the profile."""

import contextlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import harness
import native
import processes
import pythons
from harness import pybpf
from processes import RATE

sys.path.append(str(harness.TOP / "tests" / "judge"))
import wheels  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")
ROW, OUTSIDE, NO_INTERPRETER = harness.ROWS
NATIVE = ("blas-0", "omp; x")  # what native.py's threads call themselves
every_version = pytest.mark.parametrize(
    "python", [pytest.param(item, id=item.name) for item in pythons.of_each_version(pythons.interpreters())]
)


def clocks(pid):
    """TID -> (what the kernel calls the thread, its CPU time in s, how often it got a CPU)."""
    found = {}
    for task in Path("/proc/%d/task" % pid).iterdir():
        with contextlib.suppress(OSError):
            ran, _, slices = (task / "schedstat").read_text().split()
            found[int(task.name)] = (task / "comm").read_text()[:-1], int(ran) / 1e9, int(slices)
    return found


def spent(before, after):
    """TID -> (name, CPU time, stretches of it) between two looks at the clocks."""
    return {
        tid: (name, cpu_s - before.get(tid, ("", 0, 0))[1], slices - before.get(tid, ("", 0, 0))[2])
        for tid, (name, cpu_s, slices) in after.items()
    }


def sample(python, what, *args):
    """(Run, what its threads spent) of native.py."""
    why = native.why_not(python)
    if why:
        pytest.skip("%s cannot load a library: %s" % (python.name, why))
    with processes.program(python, "native.py", native.library(python), what) as running:
        with processes.sampling("-p", running.pid, *args) as run:
            before = clocks(running.pid)
            running.process.stdin.close()
            harness.read_ready_line(running.process)
            after = clocks(running.pid)
    return run, spent(before, after)


def texts(stacks):
    """"root;...;leaf" -> samples"""
    found = Counter()
    for stack, count in stacks:
        found[";".join(frame.text for frame in stack)] += count
    return found


def check_all(run):
    """All samples that the account has are printed: those with Python functions, and those without."""
    stats, samples = run.stats, run.stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], stats
    assert samples["taken"] == samples["python"] + sum(stats["without_python"].values()), stats
    assert harness.total(run.stacks()) == samples["python"], stats
    harness.check_rows(run)
    names = {"no_thread_state": ROW, "no_frames": OUTSIDE, "no_interpreter": NO_INTERPRETER}
    for cause, name in names.items():
        printed = sum(count for stack, count in run.rows() if any(frame.text == name for frame in stack))
        assert printed == stats["without_python"][cause], (name, stats)


@every_version
def test_each_thread_has_its_cpu_time(python):
    run, threads = sample(python, "threads", "--threads")
    check_all(run)
    taken, inherited = Counter(), 0
    (first,) = {"[thread %s]" % name for name, _, _ in threads.values() if name not in NATIVE}
    for stack, count in harness.parse_all(run.out):
        name, tid = re.fullmatch(r"(.*) \((\d+)\)", stack[0].text, re.S).groups()
        assert threads[int(tid)][0] == name
        taken[int(tid)] += count
        # A new thread has the name of the one that made it.
        if name in NATIVE:
            assert [frame.text for frame in stack[1:]] in ([ROW, "[thread %s]" % name], [ROW, first]), harness.show(stack)
            inherited += count if stack[2].text == first else 0
        else:
            assert stack[1].text != ROW, harness.show(stack)
    assert inherited <= 0.02 * RATE, run.out
    native_s = 0
    for tid, (name, cpu_s, stretches) in threads.items():
        processes.agree(run, taken[tid], cpu_s, stretches, "samples of " + name)
        native_s += cpu_s if name in NATIVE else 0
    assert 0.9 <= native_s, threads
    everything = sum(cpu_s for _, cpu_s, _ in threads.values())
    share = harness.total(run.rows()) / harness.total(harness.parse_all(run.out))
    assert abs(share - native_s / everything) < 0.05, (share, threads)


def test_rows_are_by_name():
    run, _ = sample(harness.default_python(), "threads")
    check_all(run)
    rows = texts(run.rows())
    wanted = {"%s;[thread %s]" % (ROW, name) for name in NATIVE}
    assert wanted <= set(rows) and all(row.startswith(ROW + ";[thread ") for row in rows), rows
    assert rows[ROW + ";[thread blas-0]"] > rows[ROW + ";[thread omp; x]"] > 0, rows


@every_version
def test_thread_state_without_functions(python):
    """A thread that C made and that called PyGILState_Ensure: Python knows it."""
    run, threads = sample(python, "state", "--threads")
    check_all(run)
    outside = sum(count for stack, count in run.rows() if [frame.text for frame in stack[1:]] == [OUTSIDE])
    ((_, cpu_s, stretches),) = [thread for thread in threads.values() if thread[0] == "has-state"]
    assert cpu_s >= 0.5
    processes.agree(run, outside, cpu_s, stretches)


@every_version
def test_python_threads_that_start_and_end(python):
    """Whatever they do before their first and after their last function, it is in the profile."""
    run, threads = sample(python, "short")
    check_all(run)
    assert run.stats["samples"]["taken"] > 5 and threads


def test_after_the_end_of_python(tmp_path):
    python = harness.default_python()
    stats = tmp_path / "stats"
    command = python.command("native.py", native.library(python), "end")
    run = harness.pybpf("-F", RATE, "--json-stats", stats, "-o", tmp_path / "out.folded", "--", *command)
    assert run.code == 0, run.err
    run.out, run.stats = (tmp_path / "out.folded").read_text(), json.loads(stats.read_text())
    check_all(run)
    # 400 ms, and what the interpreter's own end takes.
    assert 0.7 * 0.4 * RATE <= texts(run.rows())[NO_INTERPRETER] <= 0.6 * RATE, run.out


def test_python_only():
    run, threads = sample(harness.default_python(), "threads", "--python-only")
    assert not run.rows() and run.stacks()
    samples, without = run.stats["samples"], run.stats["without_python"]
    assert harness.total(run.stacks()) == samples["python"]
    assert samples["taken"] == samples["python"] + sum(without.values())
    native_s = sum(cpu_s for name, cpu_s, _ in threads.values() if name in NATIVE)
    assert without["no_thread_state"] > 0.5 * native_s * RATE


@pytest.mark.parametrize("threads", [(), ("--threads",)])
def test_many_native_threads_leave_room(threads):
    """A quarter of the table is theirs; what finds no room there is counted without a name."""
    run, _ = sample(harness.default_python(), "many", "--max-stacks", 256, *threads)
    check_all(run)
    assert run.stats["samples"]["lost"] == 0, run.stats
    rows = texts(run.rows())
    named = {row for row in rows if "[thread pool-" in row}
    assert 30 <= len(named) <= 256 // 4 + 2, rows  # each CPU may add one at the same time
    assert rows[ROW] > 0, rows
    depths = {sum(frame.name == "deeper" for frame in stack) for stack, _ in run.stacks()}
    assert len(depths) > 3, depths


NUMPY = """
import json, os, sys, time
sys.path.append(sys.argv[1])
import numpy
sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\\n")
sys.stdout.flush()
matrix = numpy.ones((700, 700))
sys.stdin.read()
for _ in range(100):
    matrix.dot(matrix)
print(json.dumps({"through": 1}))
sys.stdout.flush()
time.sleep(60)
"""


@every_version
def test_numpy(python):
    """OpenBLAS shares a product among its threads."""
    folder, why = wheels.find(python, "numpy")
    if why:
        pytest.skip("%s has no numpy: %s" % (python.name, why))
    argv = [*python.argv, "-c", NUMPY, folder]
    argv[:0] = ["env", "OPENBLAS_NUM_THREADS=2"]
    with processes.program(python, "", argv=argv) as running:
        with processes.sampling("-p", running.pid, "--threads") as run:
            before = clocks(running.pid)
            running.process.stdin.close()
            harness.read_ready_line(running.process)
            threads = spent(before, clocks(running.pid))
    check_all(run)
    blas = {tid: thread for tid, thread in threads.items() if tid != running.pid}
    assert sum(cpu_s for _, cpu_s, _ in blas.values()) > 0.2, threads
    for tid, (name, cpu_s, stretches) in blas.items():
        of_it = [stack for stack, _ in run.rows() if stack[0].text.endswith("(%d)" % tid)]
        assert all([frame.text for frame in stack[1:]] == [ROW, "[thread %s]" % name] for stack in of_it)
        count = sum(count for stack, count in run.rows() if stack[0].text.endswith("(%d)" % tid))
        processes.agree(run, count, cpu_s, stretches, "samples of OpenBLAS's thread")


def test_valgrind_is_told():
    """It has a thread pointer of its own."""
    valgrind = shutil.which("valgrind")
    python = pythons.one((3, 11))
    if not valgrind or not python:
        pytest.skip("valgrind or 3.11 is not here")
    script = "import sys\nprint('ready', flush=True)\nwhile True:\n    sum(range(1000))"
    argv = [valgrind, "-q", python.argv[-1], "-S", "-c", script]
    with harness.started(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"ready\n"
        for options in ((), ("--mode=wall",)):
            run = pybpf("-p", process.pid, "-d", 1, *options)
            assert "pybpf: process %d runs under valgrind, " % process.pid in run.err, run.err
        assert "<module>" in pybpf("dump", "-p", process.pid).out
