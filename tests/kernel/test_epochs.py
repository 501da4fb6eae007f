# SPDX-License-Identifier: Apache-2.0
"""A run in parts, as one without end takes them: what was counted is in exactly one, and what is forgotten is gone."""
import json
import os
import subprocess

import harness
import pytest
from inline import Source, running, two
from test_counting import TREE

EPOCHS = os.path.join(os.path.dirname(harness.PYBPF), "epochs")
PERIOD_MS = 100
ROOM = 32768

# A function of its own for nearly every sample.
NEW_FUNCTIONS = Source("""
def main():
    n = 0
    while True:
        n += 1
        names = {}
        exec("def made_%d():\\n    sum(range(3000))\\n    return %d" % (n, n), names)
        for _ in range(4):
            names["made_%d" % n]()
ready()
main()
""")


# Threads that sleep, wait for a lock and for the GIL, some that come and go, and some that come and sleep on.
WAITS = Source("""
import threading, time
lock = threading.Lock()
lock.acquire()
def sleeps():
    time.sleep(1000)
def locked():
    lock.acquire()
def contends():
    while True:
        until = time.time() + 0.004
        while time.time() < until:
            sum(range(3000))
        time.sleep(0.003)
def comes():
    time.sleep(0.13)
def stays():
    time.sleep(1000)
def main():
    for function in (sleeps, locked, contends, contends):
        thread = threading.Thread(target=function)
        thread.daemon = True
        thread.start()
    time.sleep(0.1)
    ready()
    n = 0
    while True:
        n += 1
        thread = threading.Thread(target=comes if n % 4 else stays)
        thread.daemon = True
        thread.start()
        time.sleep(0.07)
main()
""")


def take_parts(pid, seconds, rate, forget_every, room, features="", mode=None):
    argv = [EPOCHS, pid, seconds, rate, PERIOD_MS, forget_every, room] + [features] * bool(features or mode)
    argv += [mode] * bool(mode)
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0] == "ready"
    end = next(n for n, line in enumerate(lines) if line == "{")
    return [json.loads(line) for line in lines[1:end]], json.loads("\n".join(lines[end:]))


def check_sums(parts, stats):
    samples = stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], stats
    assert sum(part["samples"] for part in parts) == samples["python"], stats
    assert sum(part["events"] for part in parts) == samples["python"] - stats["incomplete"]["untimed"], stats


@pytest.mark.parametrize("forget_every", [0, 3])
@pytest.mark.parametrize("features", ["", "bpf_loop"])
@pytest.mark.parametrize("interpreter", two(), ids=lambda item: item.name)
def test_every_sample_is_in_one_part(interpreter, features, forget_every):
    """Thousands of stacks at 5 kHz, beside a process that keeps the CPUs busy."""
    with running(interpreter, TREE) as target, running(interpreter, TREE):
        parts, stats = take_parts(target.pid, 3, 4999, forget_every, ROOM, features)
    check_sums(parts, stats)
    assert stats["samples"]["python"] > 200, stats
    assert stats["samples"]["lost"] == 0, stats
    assert len(parts) > 10
    assert sum(1 for part in parts if part["samples"]) > len(parts) / 2, parts


def test_what_is_forgotten_makes_room():
    """Without end the tables would be full: they are not, and user space's are as large at the end as in between."""
    room = 500
    with running(two()[-1], NEW_FUNCTIONS) as target:
        # Seconds: longer where the machine is busy, so that there is no room.
        for seconds in (4, 12, 36):
            kept, full = take_parts(target.pid, seconds, 1999, 0, room)
            if full["samples"]["lost"]:
                break
        parts, stats = take_parts(target.pid, seconds, 1999, 1, room)
    check_sums(kept, full)
    check_sums(parts, stats)
    # What this shows takes more stacks and code objects than there is room for.
    assert full["samples"]["lost"] and full["code_objects"]["seen"] + stats["code_objects"]["seen"] > room, (full, stats)
    # A part takes longer where the machine is busy.
    lost = [said["samples"]["lost"] / said["samples"]["asked"] for said in (stats, full)]
    assert lost[0] < max(0.05, lost[1] / 2), lost
    middle = len(parts) // 2
    early, late = (max(part["bytes"] for part in half) for half in (parts[:middle], parts[middle:]))
    assert late < 2 * early, parts
    # Two maps take turns.
    all_codes = min(stats["code_objects"]["seen"], 2 * room)
    assert max(part["codes"] for part in parts[middle:]) < 0.7 * all_codes, (parts, stats)


def by_thread(part):
    """The time of each thread in microseconds, and how much of it rounding may be."""
    threads = {}
    for sample in part["samples"]:
        us, rows = threads.get(sample["tid"], (0, 1))
        threads[sample["tid"]] = us + sample["us"], rows + 1
    return threads


def names_of(part, tid):
    return {(sample["below"], sample["leaf"]) for sample in part["samples"] if sample["tid"] == tid}


@pytest.mark.parametrize("forget_every", [0, 3])
def test_waits_are_split_at_the_end_of_a_part(forget_every):
    """A part has as much of each thread as it is long, of threads that come and go the part in which they lived."""
    with running(two()[-1], WAITS) as target:
        parts, stats = take_parts(target.pid, 3, 199, forget_every, ROOM, "", "wall")
    assert len(parts) > 8, parts
    each = [by_thread(part) for part in parts]
    # Those of before the run, which live to its end.
    through = {tid for tid in set.intersection(*map(set, each)) if "[new thread]" not in {below for below, _ in names_of(parts[0], tid)}}
    assert len(through) >= 5, each
    for n in range(1, len(parts)):
        length = (parts[n]["end_ns"] - parts[n - 1]["end_ns"]) / 1000
        # One that begins while the threads are read is told of with the next part.
        most = 2 * length if n == 1 else (parts[n]["end_ns"] - parts[n - 2]["end_ns"]) / 1000
        for tid, (us, rows) in each[n].items():
            assert abs(us - length) <= rows if tid in through else us <= most + rows, (tid, us, length, parts[n])
    # The account has the same in nanoseconds.
    assert abs(sum(stats["state_s"].values()) * 1e6 - sum(us for part in each for us, _ in part.values())) <= sum(
        rows + 1 for part in each for _, rows in part.values()
    )
    # Stacks of those that sleep on are kept, and each wait counts once.
    for function, leaf in ("sleeps", "[sleep]"), ("locked", "[lock]"):
        tid = next(tid for tid in through if (function, leaf) in names_of(parts[-1], tid))
        assert all(names_of(part, tid) == {(function, leaf)} for part in parts[1:]), parts
        assert sum(sample["count"] for part in parts for sample in part["samples"] if sample["tid"] == tid) == 1
    later = [tid for tid in each[-1] if tid not in each[0] and names_of(parts[-1], tid) == {("stays", "[sleep]")}]
    assert later, parts
    for tid in later:
        # It may begin in one part and fall asleep in the next; from then on there is nothing else.
        asleep = [names_of(part, tid) == {("stays", "[sleep]")} for part in parts]
        assert all(asleep[asleep.index(True) :]), (tid, parts)
    assert not any(sample["leaf"] == "[stack not received]" for part in parts for sample in part["samples"]), parts
    assert len(set().union(*each)) > len(through) + 3, "threads that come and go are told"


def test_waits_for_the_gil_are_split():
    """They are in many parts, with who holds it; what is not shown is in the time by state."""
    with running(two()[-1], WAITS) as target:
        parts, stats = take_parts(target.pid, 2, 199, 3, ROOM, "", "gil")
    waits = [sum(sample["us"] for sample in part["samples"] if sample["leaf"].startswith("[GIL")) for part in parts]
    assert sum(1 for us in waits if us) > len(parts) / 2, parts
    rows = sum(len(part["samples"]) for part in parts)
    assert abs(sum(waits) - stats["state_s"]["GIL"] * 1e6) <= rows + 1, stats
    assert any(sample["leaf"] == "[GIL: held in contends]" for part in parts for sample in part["samples"]), parts
    length = (parts[-1]["end_ns"] - parts[0]["end_ns"]) / 1e9
    assert sum(stats["state_s"].values()) >= 5 * length, stats
