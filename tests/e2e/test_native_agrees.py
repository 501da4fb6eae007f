# SPDX-License-Identifier: Apache-2.0
"""Native frames of threads that stand: those of --native and of a dump, by the tables, are those that libdw finds."""

import json
import math
import os
import re
import subprocess

import pytest

import harness
import peers
import pythons
import test_native_libraries
from test_dump import dump

pytestmark = pytest.mark.usefixtures("profiler")

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)
LIBDW_LEAST = 0.9  # of the stacks
MANY_THREADS = 60
UNWINDER = os.path.join(os.path.dirname(harness.PYBPF), "unwinder")


LOOPS = ("_PyEval_EvalFrameDefault", "PyEval_EvalFrameEx")


def name_of(name):
    """Without what compilers put behind the name of a part, and C libraries before one of a function's several names."""
    return "" if not name or name.startswith("[") else name.partition(".")[0].lstrip("_")


def base(path):
    return os.path.basename(path or "")


def as_one(frames):
    """Functions of one file without a name, one behind the other, are shown as one."""
    return [frame for i, frame in enumerate(frames) if frame[0] or frame != (frames[i - 1] if i else None)]


def agree(profiled, dumped):
    """Where the dump has no name, as it reads no debug files, some functions of that file are between its neighbours."""
    at = 0
    for i, (name, *place) in enumerate(dumped):
        if at == len(profiled) or list(profiled[at][1:]) != place or name not in ("", profiled[at][0]):
            return False
        at += 1
        behind = dumped[i + 1] if i + 1 < len(dumped) else None
        while not name and at < len(profiled) and list(profiled[at][1:]) == place and profiled[at] != behind:
            at += 1
    return at == len(profiled)


def as_profiled(stack):
    """(Name, file, the Python function that called it) of each native frame, the outermost first."""
    caller, found = None, []
    for frame in stack:
        if frame.file.endswith(".py"):
            caller = frame.name
        elif frame.file:
            loop = frame.name.startswith(LOOPS)
            found.append((name_of(frame.name), frame.file, None if loop else caller))
    return as_one(found)


def as_dumped(thread):
    return as_one([
        (name_of(frame["function"]), base(frame["file"]),
         None if frame["caller"] is None else thread["frames"][frame["caller"]]["function"])
        for frame in thread["native_frames"]
    ])


def without_callers(frames):
    return as_one([frame[:2] for frame in frames])


@every_python
def test_threads_that_have_slept_since_before_the_run(python):
    """Each way to wait; the main thread, too. No switch shows them: they are followed from user space."""
    with harness.target(python, "standing.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        run = harness.record(target.pid, "--mode=wall", "--native=all", "--idle", "--threads", seconds=2, rate=99)
        snapshot = dump(target.pid, "--native")
    told = run.stats["native"]
    assert told["waits_whole_ns"] > 0.5e9 * 2 * len(snapshot["threads"]), told
    assert re.search(r"native frames: \d+\.\d % of \d+\.\d\d thread-seconds of waits with all of them", run.err), run.err
    ours = {int(stack[0].text.rpartition("(")[2].rstrip(")")): stack[1:] for stack, _ in run.stacks()}
    assert len(ours) == len(run.stacks())
    # A wait that a stop ends early ends the thread in 2.7 (docs/dump.md, --freeze).
    assert len(snapshot["threads"]) > 8
    for thread in snapshot["threads"]:
        mine, theirs = as_profiled(ours[thread["tid"]]), as_dumped(thread)
        # A profile shows parts of the loop that have no name as any function.
        if any(frame["python"] and not frame["function"] for frame in thread["native_frames"]):
            assert "sid-" in python.name, thread["name"]
            mine, theirs = without_callers(mine), without_callers(theirs)
        assert agree(mine, theirs), (thread["name"], mine, theirs)


SAME_LINE = """
import os, threading, time
lock = threading.Lock()
lock.acquire()
def wait(function, *arguments):
    function(*arguments)
for what in [(time.sleep, 100), (lock.acquire,), (os.read, os.pipe()[0], 1)]:
    threading.Thread(target=wait, args=what, daemon=True).start()
time.sleep(0.3)
print("{}", flush=True)
wait(time.sleep, 100)
"""
CALLS = {"[sleep]": "time_sleep", "[lock]": "lock_PyThread_acquire_lock", "[pipe: read]": "os_read"}


def test_threads_whose_python_functions_are_the_same():
    """Each has its own functions of C."""
    argv = [pythons.one((3, 12)).argv[0], "-c", SAME_LINE]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        run = harness.record(process.pid, "--mode=wall", "--native", "--idle", seconds=1, rate=99)
    found = {stack[-1].text: {frame.name for frame in stack} & set(CALLS.values()) for stack, _ in run.stacks()}
    assert found == {cause: {name} for cause, name in CALLS.items()}, run.out


# Without modules that are not built for every Python here.
BUSY = """
from __future__ import print_function
import json, random, re, sys, threading, time
def key(x): return -x
def work():
    data = dict((str(i), [i, {"a": i}]) for i in range(50))
    while True:
        kind = random.randrange(5)
        if kind == 0: json.loads(json.dumps(data))
        elif kind == 1: re.sub("(a+)(b|c)*", lambda match: match.group(1), "aaabcbcb" * 50)
        elif kind == 2: sorted([random.random() for _ in range(500)], key=key)
        elif kind == 3: list(map(key, range(200)))
        else: time.sleep(0.001)
for _ in range(int(sys.argv[1])):
    thread = threading.Thread(target=work)
    thread.daemon = True
    thread.start()
print("{}")
sys.stdout.flush()
time.sleep(1000)
"""


def stopped(pid, times):
    """Stops a process `times` times. Returns (the number of its threads' stacks, of whole ones by the tables, by libdw)."""
    done = subprocess.run([UNWINDER, str(pid), str(times)], capture_output=True, text=True, check=True, timeout=harness.PATIENCE)
    stacks = [json.loads(line) for line in done.stdout.splitlines()]
    for stack in stacks:
        if stack["libdw_whole"]:
            assert stack["tables"] == stack["libdw"] and stack["tables_whole"]
        else:  # in code without call frame information, which it leaves by whatever the frame pointer is
            known = stack["libdw"][:-1]
            assert stack["tables"][: len(known)] == known
    return len(stacks), *(sum(stack[way] for stack in stacks) for way in ("tables_whole", "libdw_whole"))


def check_stopped(argv, threads, times, libdw_least=LIBDW_LEAST):
    """Returns the number of stacks that libdw has followed to the first function."""
    with harness.started([*argv, str(threads)], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        stacks, whole, by_libdw = stopped(process.pid, times)
    assert stacks >= 0.9 * threads * times and whole >= 0.95 * stacks, (stacks, whole)
    assert by_libdw >= libdw_least * stacks, (by_libdw, stacks)
    return by_libdw


def has_information(python):
    """Whether libdw can follow it: musl tells nothing of its functions."""
    return "musl" not in python.name


@every_python
def test_stopped_at_any_instruction(python):
    """Where libdw knows the way to the first function, the tables lead there by the same frames."""
    check_stopped([*python.argv, "-c", BUSY], 6, 30, LIBDW_LEAST if has_information(python) else 0)


@every_python
def test_100_000_stacks(python):
    """Each Python's share of that many stacks that libdw has followed to the first function."""
    share = math.ceil(100_000 / sum(map(has_information, pythons.interpreters())))
    times = math.ceil(1.05 * share / MANY_THREADS)
    by_libdw = check_stopped([*python.argv, "-c", BUSY], MANY_THREADS, times, LIBDW_LEAST if has_information(python) else 0)
    assert by_libdw >= share or not has_information(python), (by_libdw, share)


LIBRARY = """
import sys, threading, time
%s
def work():
    while True:
        %s
for _ in range(int(sys.argv[1])): threading.Thread(target=work, daemon=True).start()
print("{}", flush=True)
time.sleep(1000)
"""


def test_stacks_of_a_library():
    """In OpenBLAS's assembly libdw knows no way at some instructions."""
    try:
        programs = peers.virtual_environment("native-libraries", test_native_libraries.PACKAGES)
    except peers.Missing as why:
        pytest.skip(str(why))
    check_stopped([programs / "python", "-c", LIBRARY % test_native_libraries.LIBRARIES["numpy"]], 30, 30, 0.8)
