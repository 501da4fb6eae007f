# SPDX-License-Identifier: Apache-2.0
"""pybpf dump: daemons, exceptions, garbage collections, and which ready threads have a CPU."""

import os
import re
import time

import pytest

import cgroups
import harness
import pythons
from harness import pybpf
from test_dump import by_name, dump

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)
default = harness.default_python


def tells(python):
    """2.7 and 3.6 do not say where the exceptions and the collections are."""
    return python.version >= (3, 7)


@every_python
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=["", "frozen"])
def test_exceptions_and_daemons(python, options):
    with harness.target(python, "besides.py") as target:
        threads = by_name(dump(target.pid, *options))
        stood = target.says["stood"]
    assert len(stood) == 6 and not threads["MainThread"]["daemon"]
    for name, says in stood.items():
        thread = threads[name]
        assert thread["daemon"] is says["daemon"], name
        assert thread["exception"] == (says["exception"] if tells(python) else None), name
        assert thread["handles_exception"] is ((says["exception"] is not None) if tells(python) else None), name
        assert thread["collecting"] is (False if tells(python) else None), name


@pytest.mark.parametrize("python", [p for p in pythons.interpreters() if p.version[0] == 3], ids=lambda item: item.name)
def test_a_finalizer_of_a_collection(python):
    """Which of several threads collects is told from 3.15 on; before, that one of them does."""
    with harness.target(python, "besides.py", "collects") as target:
        snapshot = dump(target.pid)
        text = pybpf("dump", "-p", target.pid, "--no-source").out
    told = {name: thread["collecting"] for name, thread in by_name(snapshot).items()}
    somebody = "Garbage is being collected; this Python does not tell by which thread\n"
    if not tells(python):
        assert snapshot["collecting"] is None and set(told.values()) == {None}
    elif python.version < (3, 15):
        assert snapshot["collecting"] is True and set(told.values()) == {None}
        assert somebody in text and ", collecting garbage" not in text
    else:
        assert snapshot["collecting"] is True
        assert {name for name, collects in told.items() if collects} == {"in_finalizer"}
        assert None not in told.values()
        assert somebody not in text
        assert re.search(r'"in_finalizer": \[sleep\].*, collecting garbage\n', text), text


@pytest.mark.parametrize("python", [p for p in pythons.interpreters() if tells(p)], ids=lambda item: item.name)
def test_the_only_thread_collects(python):
    with harness.target(python, "besides.py", "alone") as target:
        harness.wait_for(lambda: by_name(dump(target.pid))["MainThread"]["state"] == "sleep")
        snapshot = dump(target.pid)
    assert snapshot["collecting"] is True
    assert [thread["collecting"] for thread in snapshot["threads"]] == [True]
    assert "stand" in [frame["function"] for frame in snapshot["threads"][0]["frames"]]


def test_the_words():
    with harness.target(default(), "besides.py") as target:
        text = pybpf("dump", "-p", target.pid, "--no-source").out
    assert '"in_nested_handler": [sleep], handling Mine\n' in text
    assert '"in_handler": [sleep], daemon, handling KeyError\n' in text
    assert '"after_handler": [sleep], daemon\n' in text


def scheduled(pid):
    """The time that each of the threads has run, by TID."""
    times = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as stat:
            times[int(tid)] = int(stat.read().split()[0])
    return times


def test_threads_on_a_cpu_and_waiting_for_one():
    """Threads that share a CPU take turns; with one that never gets it, the others have it."""
    seen = {}
    with harness.target(default(), "crowded.py") as target:
        os.sched_setscheduler(target.says["last"], os.SCHED_IDLE, os.sched_param(0))
        for _ in range(40):
            before = scheduled(target.pid)
            snapshot = dump(target.pid)
            after = scheduled(target.pid)
            for thread in snapshot["threads"]:
                ran = after[thread["tid"]] > before[thread["tid"]]
                seen.setdefault(thread["state"], []).append(ran)
                # What has run has run; the scheduler's own count says so.
                assert thread["state"] != "on CPU" or ran, snapshot
                assert thread["cause"] == "[%s]" % thread["state"], thread
            time.sleep(0.005)
    assert len(seen["on CPU"]) >= 5 and len(seen["waiting for a CPU"]) >= 30, {k: len(v) for k, v in seen.items()}
    assert "running" not in seen or len(seen["running"]) <= 5, seen


def test_a_control_group_whose_share_is_used_up():
    """It gets 1 ms in 100 ms of a CPU: its threads are ready, and wait."""
    try:
        mount = cgroups.with_controller("cpu")
    except cgroups.Missing as missing:
        pytest.skip(str(missing))
    with cgroups.directory("pybpf-besides-%d" % os.getpid(), mount) as place:
        (place.path / "cpu.cfs_quota_us").write_text("1000")
        with harness.target(default(), "crowded.py") as target:
            place.add(target.pid)
            time.sleep(0.3)
            states = [thread["state"] for _ in range(5) for thread in dump(target.pid)["threads"] if thread["state"] != "sleep"]
    # On a machine with much to do a look takes longer, and each thread may have its millisecond meanwhile.
    assert len(states) == 20 and states.count("waiting for a CPU") > states.count("on CPU"), states
