# SPDX-License-Identifier: Apache-2.0
"""Helpers that crash, are killed or stand still while they read: what is not known is said, and never taken for a fact."""

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

import dump_schema
import harness
from harness import pybpf
from test_helpers import SPIN, as_user, helpers_of, silent_file_system

pytestmark = pytest.mark.usefixtures("profiler")
PYTHON = "/usr/bin/python3"
TARGETS = harness.TOP / "tests" / "targets"
# Long enough to send a signal meanwhile, and shorter than the time for which an answer is waited for.
LATE_S = 1.0
CRASHED, LATE = "the helper process crashed or was killed", "the helper process gave no answer in time"


@contextlib.contextmanager
def late_value(folder):
    """A process of whose second thread a variable is late, and the server of it."""
    with silent_file_system(folder, b"\0" * 4096, LATE_S) as server:
        argv = [PYTHON, shutil.copy(TARGETS / "late_value.py", folder), str(folder / "mnt" / "file")]
        with harness.started(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
            assert process.stdout.readline() == b"ready\n"
            harness.wait_for(lambda: all(harness.state(int(tid)) == "S" for tid in os.listdir("/proc/%d/task" % process.pid)))
            yield process, server


def is_asleep_in_a_fault(pid):
    time.sleep(0.005)
    return harness.state(pid) == "D"


def waits_for_the_server(dump):
    """A helper that is asleep in the page's fault, which takes LATE_S; the disk's faults are shorter."""
    with contextlib.suppress(OSError):
        for pid in helpers_of(dump.pid):
            if all(is_asleep_in_a_fault(pid) for _ in range(10)):
                return pid
    return None


def check_snapshot(snapshot, tids, why):
    """All threads are there; the late one was not read, and those after it perhaps."""
    assert snapshot["complete"] is False
    assert {thread["tid"] for thread in snapshot["threads"]} == tids and len(snapshot["threads"]) == len(tids)
    assert why in {thread["unread"] for thread in snapshot["threads"]}
    for thread in snapshot["threads"]:
        assert thread["python"] is True, "taken for a thread that no interpreter knows"
        functions = [frame["function"] for frame in thread["frames"]]
        if thread["unread"]:
            assert not functions and thread["state"] in ("sleep", "unknown")
        else:
            assert functions[-1] in ("stand_plain", "<module>"), functions


def test_an_answer_that_does_not_come(folder):
    with late_value(folder) as (process, server):
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % process.pid)}
        whole = pybpf("dump", "-p", process.pid, "--json")
        server.silence()
        run = pybpf("dump", "-p", process.pid, "--json", "--locals")
        text = pybpf("dump", "-p", process.pid, "--locals")
    assert whole.code == 0 and json.loads(whole.out)["complete"] is True
    assert {thread["tid"] for thread in json.loads(whole.out)["threads"]} == tids and len(tids) == 4
    assert run.code == 1 and "not all of it could be read: " + LATE in run.err, run.err
    check_snapshot(json.loads(run.out), tids, LATE)
    assert text.code == 1 and LATE in text.err, text.err
    assert "Not all of it could be read: " + LATE in text.out
    assert re.search(r"\nThread \d+ .*, not read: %s\n  \[stack not shown: it could not be read\]\n" % LATE, text.out), text.out
    assert len(re.findall(r"\nThread \d+ ", text.out)) == len(tids)
    assert "not a thread of Python" not in text.out and "no Python function" not in text.out


@pytest.mark.parametrize("number,why", [(signal.SIGKILL, CRASHED), (signal.SIGSEGV, CRASHED), (signal.SIGSTOP, LATE)])
@pytest.mark.parametrize("options", [[], ["--freeze"], ["--native"]], ids=["", "frozen", "native"])
def test_a_helper_that_gets_a_signal_while_it_reads(folder, number, why, options):
    with late_value(folder) as (process, server):
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % process.pid)}
        server.delay()
        argv = harness.tied([harness.PYBPF, "dump", "-p", str(process.pid), "--json", "--locals", *options], "TERM")
        with harness.started(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump:
            os.kill(harness.wait_for(lambda: waits_for_the_server(dump), step=0.001), number)
            out, err = (text.decode() for text in dump.communicate(timeout=harness.PATIENCE))
        # It does not stay stopped.
        harness.wait_for(lambda: harness.state(process.pid) == "S")
    dump_schema.check(out)
    assert dump.returncode == 1 and why in err
    check_snapshot(json.loads(out), tids, why)


def test_a_source_that_has_no_answer(folder):
    """The stack is there; the lines are not, for a reason that is not the program's."""
    text = (SPIN % ("", "import time\nprint('ready', flush=True)\ntime.sleep(1000)")).encode()
    with silent_file_system(folder, text) as server, as_user([PYTHON, folder / "mnt" / "file"]) as process:
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        whole = pybpf("dump", "-p", process.pid, "--json")
        server.silence()
        run = pybpf("dump", "-p", process.pid, "--json")
        bare = pybpf("dump", "-p", process.pid, "--json", "--no-source")
    for done, code, source in (whole, 0, "time.sleep(1000)"), (run, 1, None), (bare, 0, None):
        snapshot = json.loads(done.out)
        assert done.code == code and snapshot["complete"] is (code == 0), done
        (thread,) = snapshot["threads"]
        assert thread["unread"] is None
        assert [(frame["function"], frame["source"]) for frame in thread["frames"]] == [("<module>", source)]


def run_beside(chance, number, *args):
    """A run of pybpf one of whose helpers gets the signal at a random moment: (status, stdout, stderr)."""
    argv = harness.tied([harness.PYBPF, *map(str, args)], "TERM")
    with harness.started(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        end = time.monotonic() + chance.random() * 0.15
        hit = False
        while process.poll() is None:
            # The first is their forkserver.
            for pid in helpers_of(process.pid)[1:]:
                if time.monotonic() < end and chance.random() > 0.05:
                    continue
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
                    hit = True
            if hit:
                break
        out, err = (text.decode() for text in process.communicate(timeout=harness.PATIENCE))
    assert "was refused" not in err
    return process.returncode, out, err


# What is said of a process that is no Python, that is gone, or of nothing.
LIES = ("no Python", "has ended", "there is no process", "ended before", "not a thread of Python")
RUNS = 25


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_dump_beside_helpers_that_die(number):
    """Status 0 is the whole truth; with any other all threads are there, and those that were not read say so."""
    chance = random.Random(number)
    with harness.target(harness.default_python(), "crowd.py", "60") as target:
        tids = {int(tid) for tid in os.listdir("/proc/%d/task" % target.pid)}
        for _ in range(RUNS if number != signal.SIGSTOP else RUNS // 3):
            code, out, err = run_beside(chance, number, "dump", "-p", target.pid, "--json", "--no-source")
            assert code == 0 or "pybpf: " in err, err
            assert not any(lie in err for lie in LIES), err
            for snapshot in map(json.loads, out.splitlines()):
                dump_schema.check(out)
                assert {thread["tid"] for thread in snapshot["threads"]} == tids
                assert snapshot["complete"] is (code == 0), (code, err)
                assert all(thread["python"] for thread in snapshot["threads"])
                assert code or not any(thread["unread"] for thread in snapshot["threads"])
                assert all(thread["frames"] or thread["unread"] for thread in snapshot["threads"])
            assert out or code == 1


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_tasks_beside_helpers_that_die(number):
    chance = random.Random(number)
    with harness.target(harness.default_python(), "task_tree.py", "cycle") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        (whole,) = map(json.loads, pybpf("dump", "-p", target.pid, "--json", "--async").out.splitlines())
        names = sorted(task["name"] for task in whole["tasks"])
        for _ in range(RUNS if number != signal.SIGSTOP else RUNS // 5):
            code, out, err = run_beside(chance, number, "dump", "-p", target.pid, "--json", "--async")
            for snapshot in map(json.loads, out.splitlines()):
                assert snapshot["complete"] is (code == 0), (code, err)
                if code == 0 or snapshot["tasks"] is not None:
                    assert sorted(task["name"] for task in snapshot["tasks"]) == names
                else:
                    assert snapshot["tasks_note"], snapshot
            assert out or code == 1 and "pybpf: " in err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
def test_a_list_beside_helpers_that_die(spinning, number):
    chance = random.Random(number)
    for _ in range(RUNS if number != signal.SIGSTOP else RUNS // 5):
        code, out, err = run_beside(chance, number, "ps", "-p", spinning.pid, "--json")
        (row,) = json.loads(out)
        assert not any(lie in err for lie in LIES), err
        assert (code == 0) is (row["version"] is not None and "not_read" not in row), (code, row)
        assert row["version"] or "is left out" in row["not_supported"]


RUN = ["-d", "0.5", "-F", "199"]
LIVE = ["top", "--output", "jsonl", "-i", "0.2", "-d", "0.5", "--no-wait-states"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGSTOP])
@pytest.mark.parametrize("words", [RUN, [*RUN, "--children"], LIVE], ids=["record", "children", "top"])
def test_a_run_beside_helpers_that_die(spinning, words, number):
    """It samples the program, or says why it cannot: never that there is no Python, or none that runs."""
    chance = random.Random(number)
    for _ in range(4 if number != signal.SIGSTOP else 1):
        code, out, err = run_beside(chance, number, *words, "-p", spinning.pid)
        assert not any(lie in err for lie in (*LIES, "no interpreter runs there yet")), err
        assert "spin" in out or str(spinning.pid) in out + err, (code, out, err)
        assert code or "is not known" not in err, err


def test_a_doctor_beside_helpers_that_stand_still():
    """It does not say that the kernel cannot read memory."""
    chance = random.Random(1)
    _, out, _ = run_beside(chance, signal.SIGSTOP, "doctor")
    (line,) = re.findall(r"reading memory +(.*)", out)
    assert "works" in line or "not known: " in line, out
