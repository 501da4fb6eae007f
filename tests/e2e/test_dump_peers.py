# SPDX-License-Identifier: Apache-2.0
"""pybpf dump beside py-spy and pystack: snapshots of the same stopped process have the same threads, functions and lines."""

import contextlib
import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest

import harness
import pythons
from test_dump import dump

sys.path[:0] = [str(harness.TOP / "tests")]

import peers  # noqa: E402

MOMENTS = 4
# Few frames of all moments are of functions that have not begun: a line table that is misread has many.
NOT_BEGUN_SHARE = 0.02


def last(name):
    """Without the class: the peers have it in some versions, and ours from 3.11 on."""
    return name.rsplit(".", 1)[-1]


def ours(snapshot):
    """(name, [(function, file, line), the outermost first]) of each thread"""
    return [
        (thread["name"], [(last(frame["function"]), frame["file"], frame["line"]) for frame in thread["frames"]])
        for thread in snapshot["threads"]
    ]


def py_spy(snapshot):
    # It has names of threads from 3.6 on.
    done = peers.run([*peers.py_spy(), "dump", "--nonblocking", "--json", "-p", str(snapshot["pid"])])
    if "Failed to find a python interpreter" in done.stdout:
        pytest.skip("py-spy finds no interpreter in it")
    assert done.returncode == 0, done.stdout
    return [
        (thread["thread_name"], [(last(frame["name"]), frame["filename"], frame["line"]) for frame in thread["frames"][::-1]])
        for thread in json.loads(done.stdout)
    ]


def pystack(snapshot):
    done = peers.run([*peers.pystack(), "--no-color", "remote", "--no-block", str(snapshot["pid"])])
    assert done.returncode == 0, done.stdout
    names = {thread["tid"]: thread["name"] for thread in snapshot["threads"]}
    threads = []
    for line in done.stdout.splitlines():
        thread = re.match(r"Traceback for thread (\d+)", line)
        frame = re.match(r'    \(Python\) File "(.*)", line (\d+), in (.*)', line)
        if thread:
            threads.append((names[int(thread[1])], []))
        elif frame:
            threads[-1][1].append((last(frame[3]), frame[1], int(frame[2])))
    return threads


def without_shims(stack):
    """
    From 3.13 on, both peers show the frame that the interpreter puts below an __init__ to look at what it returns
    (_Py_InitCleanup). It is no function of the program, and sys._current_frames() does not have it.
    """
    return [frame for frame in stack if frame != ("__init__", "__init__", 0)]


def compare(mine, theirs, first):
    """The frames that differ may only be functions that have not begun. Returns their number."""
    assert len(mine) == len(theirs), (mine, theirs)
    if mine == theirs:
        return 0
    assert mine[:-1] == theirs[:-1] and mine[-1][:2] == theirs[-1][:2], (mine, theirs)
    # To 3.10 the peers have another line of it: they look up the one of instruction -1 as if it was the last or the first.
    name, path, line = mine[-1]
    assert os.path.basename(path) != "moments.py" or line in first[name], (mine, theirs)
    return 1


def by_name(threads):
    """Sorted by name and stack; without names, by stack."""
    named = all(name for name, _ in threads)
    return sorted((name if named else "", stack) for name, stack in threads), named


def compare_snapshots(mine, theirs, first):
    theirs, named = by_name([(name, without_shims(stack)) for name, stack in theirs])
    if not named:
        # They are paired by their functions.
        mine = [("", stack) for _, stack in mine]
    mine = sorted(mine)
    assert [name for name, _ in mine] == [name for name, _ in theirs]
    return sum(compare(one, other, first) for (_, one), (_, other) in zip(mine, theirs))


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        harness.wait_for(lambda: all(harness.state(int(task.name)) == "T" for task in Path("/proc/%d/task" % pid).iterdir()))
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("python", pythons.of_each_version(pythons.interpreters()), ids=lambda item: item.name)
@pytest.mark.parametrize("peer, find", [(py_spy, peers.py_spy), (pystack, peers.pystack)], ids=["py-spy", "pystack"])
def test_a_moment_of_a_program_that_runs(python, peer, find):
    """It is stopped by a signal, so that all see the same moment; py-spy itself cannot stop one that a signal stops."""
    try:
        find()
    except peers.Missing as missing:
        pytest.skip(str(missing))
    frames = differ = 0
    busy = set()
    with harness.target(python, "moments.py") as target:
        for moment in range(MOMENTS):
            time.sleep(0.02 * moment)
            with stopped(target.pid):
                snapshot = dump(target.pid, "--no-source")
                mine, theirs = ours(snapshot), peer(snapshot)
            assert len(mine) == 7
            differ += compare_snapshots(mine, theirs, target.says["first"])
            frames += sum(len(stack) for _, stack in mine)
            busy |= {tuple(stack) for name, stack in mine if not name.startswith("stands")}
    assert differ <= NOT_BEGUN_SHARE * frames
    assert len(busy) > MOMENTS, busy
