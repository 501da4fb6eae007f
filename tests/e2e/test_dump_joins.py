# SPDX-License-Identifier: Apache-2.0
"""pybpf dump: for the end of which thread another one waits."""

import json

import pytest

import harness
import pythons
from harness import pybpf

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)


@every_python
def test_who_waits_for_the_end_of_whom(python):
    with harness.target(python, "joins.py") as target:
        says = target.says["joins"]

        def wait_in_locks():
            run = pybpf("dump", "-p", target.pid, "--json")
            assert run.code == 0 and not run.err, run
            threads = json.loads(run.out)["threads"]
            return threads if sum(thread["state"] == "lock" for thread in threads) == 4 else None

        threads = harness.wait_for(wait_in_locks)
        text = pybpf("dump", "-p", target.pid).out
    names = {thread["tid"]: thread["name"] for thread in threads}
    assert {thread["name"]: names.get(thread["joins"]) for thread in threads if thread["name"] in says} == says
    tids = {name: tid for tid, name in names.items()}
    line = 'Thread %d "joins": [lock], until thread %d "lasts" ends, daemon' % (tids["joins"], tids["lasts"])
    assert line in text.splitlines(), text
    assert text.count(" ends,") == 2


@pytest.mark.parametrize("python", pythons.of_each_version(pythons.interpreters()), ids=lambda item: item.name)
def test_who_joins_a_thread_that_waits_for_its_lock_is_in_a_deadlock(python):
    """Not the one that waits for some time only; 2.7 looks every 50 ms whether that is over."""
    asleep = 3 if python.version < (3,) else 6
    with harness.target(python, "joins.py", "deadlock") as target:

        def meet():
            run = pybpf("dump", "-p", target.pid, "--json")
            assert run.code == 0 and not run.err, run
            snapshot = json.loads(run.out)
            return snapshot if sum(thread["state"] == "lock" for thread in snapshot["threads"]) == asleep else None

        snapshot = harness.wait_for(meet)
        text = pybpf("dump", "-p", target.pid).out
    names = {thread["tid"]: thread["name"] for thread in snapshot["threads"]}
    assert [{names[tid] for tid in circle} for circle in snapshot["deadlocks"]] == [{"joiner-ever", "taker-ever"}]
    assert [finding["kind"] for finding in snapshot["findings"]].count("deadlock") == 1
    tids = {name: tid for tid, name in names.items()}
    line = 'Deadlock: thread %d "joiner-ever" waits for the end of thread %d "taker-ever", which waits for a lock that thread %d has'
    assert line % (tids["joiner-ever"], tids["taker-ever"], tids["joiner-ever"]) in text.splitlines(), text
