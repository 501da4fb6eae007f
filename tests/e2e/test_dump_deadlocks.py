# SPDX-License-Identifier: Apache-2.0
"""pybpf dump: who has the lock that a thread waits for, and circles of such threads."""

import json
import re
import time

import pytest

import harness
import pythons
from harness import pybpf

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)
# A stripped 3.6 does not say where its GIL is, and musl's Python has no ctypes.
WITHOUT = ("stripped-shared3.6", "built-python3.13-musl")
with_gil = pytest.mark.parametrize(
    "python",
    [item for item in pythons.interpreters() if item.kind != "free-threaded" and item.name not in WITHOUT],
    ids=lambda item: item.name,
)
PATIENCE = 10  # seconds


def dump(pid, *args):
    run = pybpf("dump", "-p", pid, "--json", "--no-source", *args)
    assert run.code == 0 and not run.err, run
    (line,) = run.out.splitlines()
    return json.loads(line)


def names(snapshot):
    return {thread["tid"]: thread["name"] for thread in snapshot["threads"]}


def holders(snapshot, says):
    """{name of a thread: name of the one that has what it waits for, or None}"""
    called = names(snapshot)
    return {
        thread["name"]: called.get(thread["gil_holder"] or thread["lock_holder"])
        for thread in snapshot["threads"]
        if thread["name"] in says
    }


def circles(waits):
    """The circles that follow from who waits for whom, as sets of names."""
    found = set()
    for name in waits:
        path = [name]
        while waits.get(path[-1]) and waits[path[-1]] not in path:
            path.append(waits[path[-1]])
        if waits.get(path[-1]) == name:
            found.add(frozenset(path))
    return found


@every_python
@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
def test_who_has_the_lock(python, frozen):
    """Each thread that waits is told who has its lock, as the program knows it, and each circle is named once."""
    with harness.target(python, "deadlocks.py") as target:
        says = target.says["waits"]
        for _ in range(5):
            snapshot = dump(target.pid, *(["--freeze"] if frozen else []))
            found = holders(snapshot, says)
            # The stack of a holder that runs may not be certain at the first look, on a machine with much to do.
            assert {name: holder or says[name] for name, holder in found.items()} == says, found
            if frozen or found == says:
                break
    assert found == says
    called = names(snapshot)
    named = [frozenset(called[tid] for tid in circle) for circle in snapshot["deadlocks"]]
    assert len(named) == len(set(named)) and set(named) == circles(says)
    for circle in snapshot["deadlocks"]:
        for tid, after in zip(circle, circle[1:] + circle[:1]):
            assert says[called[tid]] == called[after]


@with_gil
def test_a_mutex_and_the_gil(python):
    """One thread has the GIL and waits for a mutex of C, whose owner waits for the GIL."""
    with harness.target(python, "deadlocks.py", "mutex") as target:
        until = time.monotonic() + PATIENCE
        while True:
            snapshot = dump(target.pid)
            if snapshot["deadlocks"] or time.monotonic() > until:
                break
            time.sleep(0.1)
        says = target.says["waits"]
    assert holders(snapshot, says) == says
    ((one, other),) = snapshot["deadlocks"]
    assert {names(snapshot)[one], names(snapshot)[other]} == set(says)
    for finding in snapshot["findings"]:  # the main thread waits for the GIL at times
        if finding["kind"] == "GIL":
            assert finding["text"].endswith(' waits for the GIL that thread %d "has-gil" has, which is part of a deadlock' % finding["holder"])


def test_text_says_what_the_circle_is():
    with harness.target(harness.default_python(), "deadlocks.py") as target:
        run = pybpf("dump", "-p", target.pid, "--no-source")
        snapshot = dump(target.pid)
    tids = {thread["name"]: thread["tid"] for thread in snapshot["threads"]}
    lines = run.out.splitlines()
    first, second = tids["with-0"], tids["with-1"]
    assert (
        'Deadlock: thread %d "with-0" waits for a lock that thread %d "with-1" has, '
        "which waits for a lock that thread %d has" % (first, second, first)
    ) in lines
    assert 'Deadlock: thread %d "twice" waits for a lock that it has itself' % tids["twice"] in lines
    assert 'Thread %d "asks-holder": [lock], which thread %d has, daemon' % (tids["asks-holder"], tids["holder"]) in lines
    assert 'Thread %d "twice": [lock], which it has itself, daemon' % tids["twice"] in lines
    assert sum(line.startswith("Deadlock: ") for line in lines) == len(snapshot["deadlocks"])


@every_python
def test_the_head_says_what_many_wait_for(python):
    with harness.target(python, "alike.py") as target:
        text = pybpf("dump", "-p", target.pid, "--no-source").out
        snapshot = dump(target.pid)
    tids = {thread["name"]: thread["tid"] for thread in snapshot["threads"]}
    (line,) = [thread["frames"][-1]["line"] for thread in snapshot["threads"] if thread["name"] == "holder"]
    sentence = '%d threads wait for a lock that thread %d "holder" has, which sleeps in long_holder (alike.py:%d)' % (
        target.says["takers"],
        tids["holder"],
        line,
    )
    assert text.split("\n\n")[0].splitlines()[2:] == [sentence]
    takers = sorted(tid for name, tid in tids.items() if name.startswith("worker-"))
    (found,) = snapshot["findings"]
    assert dict(found, threads=sorted(found["threads"])) == {
        "kind": "lock",
        "holder": tids["holder"],
        "threads": takers,
        "text": sentence,
    }


def test_findings_are_those_of_the_threads():
    """Each is what the threads themselves are said to wait for, and nobody who is part of a circle is told twice."""
    with harness.target(harness.default_python(), "deadlocks.py") as target:
        snapshot = dump(target.pid)
        text = pybpf("dump", "-p", target.pid, "--no-source").out
    threads = {thread["tid"]: thread for thread in snapshot["threads"]}
    in_circles = {tid for circle in snapshot["deadlocks"] for tid in circle}
    assert [f["threads"] for f in snapshot["findings"] if f["kind"] == "deadlock"] == snapshot["deadlocks"]
    waits = [f for f in snapshot["findings"] if f["kind"] != "deadlock"]
    for finding in waits:
        for tid in finding["threads"]:
            assert threads[tid]["lock_holder"] == finding["holder"] and tid not in in_circles
    told = sum(len(finding["threads"]) for finding in waits)
    assert told == sum(bool(thread["lock_holder"]) for thread in threads.values()) - len(in_circles)
    called = names(snapshot)
    (spinner,) = [f["text"] for f in waits if called[f["holder"]] == "spinner"]
    assert re.search(r', which (runs|waits for a CPU) in spin \(deadlocks\.py:\d+\)$', spinner), spinner
    (chain,) = [f["text"] for f in waits if called[f["holder"]] == "taken-asks"]
    assert re.search(r', which waits for a lock that thread \d+ "taker" has$', chain), chain
    assert "\n%d more thread%s what others wait for\n" % (len(waits) - 5, " has" if len(waits) == 6 else "s have") in text


def test_who_may_have_given_a_lock_back_may_have_it():
    with harness.target(harness.default_python(), "deadlocks.py") as target:
        snapshot = dump(target.pid)
        text = pybpf("dump", "-p", target.pid, "--no-source").out
    threads = {thread["name"]: thread for thread in snapshot["threads"]}
    gives = threads["acquired-gives"]["tid"]
    assert threads["acquired-asks"]["unsure_lock_holder"] == gives
    assert threads["taken-asks"]["unsure_lock_holder"] is None
    assert 'Thread %d "acquired-asks": [lock], which thread %d may have, daemon' % (threads["acquired-asks"]["tid"], gives) in text


def test_threads_that_go_on_are_no_deadlock():
    """Locks that are taken in both orders, but given back in time: no dump may call that a deadlock."""
    with harness.target(harness.default_python(), "busy_locks.py") as target:
        snapshots = [dump(target.pid, *(["--freeze"] if i % 2 else [])) for i in range(40)]
    assert not any(snapshot["deadlocks"] for snapshot in snapshots)
    assert any(
        thread["lock_holder"] or thread["unsure_lock_holder"] for snapshot in snapshots for thread in snapshot["threads"]
    )
