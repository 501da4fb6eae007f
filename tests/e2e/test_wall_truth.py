# SPDX-License-Identifier: Apache-2.0
"""--mode=wall against other witnesses of the same run: perf's record of switches, and the clock of each of 500 threads."""

import collections
import json
import re
import shutil
import subprocess

import pytest

import harness

pytestmark = pytest.mark.usefixtures("profiler")

US = 1e6
SWITCH = re.compile(r"\s*(\d+\.\d+):\s+sched:sched_switch: .*prev_pid=(\d+) .*prev_state=(\S+) ==> .*next_pid=(\d+) ")
NEW = re.compile(r"\s*(\d+\.\d+):\s+sched:sched_wakeup_new: .* pid=(\d+) ")


def command(path, *args):
    target = harness.default_python().command("clocked.py", *map(str, args))
    return [harness.PYBPF, "-q", "--mode=wall", "--threads", "--no-children", "-f", "json", "-o", str(path), "--", *target]


def states_of(path):
    """{TID: {state: [seconds, count]}} of a profile in json; "": it runs."""
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for sample in profile["samples"]:
        state = profile["frames"][profile["stacks"][sample["stack"]]["frame"]].get("state", "")
        entry = found[profile["threads"][sample["thread"]]["tid"]][state]
        entry[0] += sample["value"] / US
        entry[1] += sample["count"]
    return found


def run(argv):
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
    return next(json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))


def off_cpu(recorded, tid):
    """
    How the thread was off its CPUs as perf saw it: {state that it left with: count}, seconds, and those of them after its
    last sleep, in which it ends: what is after sched_process_exit is no time of a thread any more. And whether perf was
    told when it came back each time: on some virtual machines it is not.
    """
    script = subprocess.run(
        ["perf", "script", "-i", recorded, "--ns", "-F", "time,event,trace"], capture_output=True, text=True, check=True
    )
    counts, seconds, left, pushed, whole = collections.Counter(), 0, None, 0, True
    for line in script.stdout.splitlines():
        match = NEW.match(line)
        if match and int(match[2]) == tid:
            left, slept = float(match[1]), False
        match = SWITCH.match(line)
        if not match:
            continue
        at, prev, state, coming = float(match[1]), int(match[2]), match[3], int(match[4])
        if prev == tid:
            counts[state[0]] += 1
            whole = whole and left is None
            left, slept = at, state[0] in "SD"
        elif coming == tid and left:
            seconds += at - left
            pushed = 0 if slept else pushed + at - left
            left = None
    return counts, seconds, pushed, whole


def test_switches_and_sleeps_are_those_that_perf_records(tmp_path):
    """A wake-up that is not told either leaves a sleep in the time on a CPU."""
    if not shutil.which("perf"):
        pytest.skip("no perf here")
    nap, recorded = 0.002, tmp_path / "perf.data"
    perf = ["perf", "sched", "record", "-m", "4096", "-o", str(recorded), "--"]
    says = run(perf + command(tmp_path / "wall.json", 1, 200, nap))
    (tid,) = map(int, says)
    counts, seconds, ending, whole = off_cpu(recorded, tid)
    states = states_of(tmp_path / "wall.json")[tid]
    slept = sum(count for state, (_, count) in states.items() if state not in ("", "waiting for a CPU"))
    # A page that has to be read is a sleep, too.
    switched = counts["S"] + counts["D"]
    assert switched - 1 <= slept <= switched and counts["S"] >= 200, (counts, dict(states))
    have = sum(value for state, (value, _) in states.items() if state)
    assert -nap - ending <= have - seconds, (have, seconds, ending, counts, dict(states))
    assert not whole or have - seconds <= 0.001, (have, seconds, ending, counts, dict(states))


def test_each_of_500_threads_has_the_time_of_its_own_clock(tmp_path):
    """Its clock goes on while it waits for a CPU and for the GIL after a sleep; nothing beyond that is added."""
    sleeps, nap = 10, 0.1
    says = {int(tid): seconds for tid, seconds in run(command(tmp_path / "wall.json", 500, sleeps, nap)).items()}
    states = states_of(tmp_path / "wall.json")
    assert len(says) == 500 and set(says) <= set(states)
    wrong, missing = {}, 0
    for tid, seconds in says.items():
        have, count = states[tid]["sleep"]
        every = sum(value for value, _ in states[tid].values())
        missing += sleeps - count
        if not (have <= 1.005 * seconds + 0.001 and seconds <= 1.005 * every + 0.001 and 0 <= sleeps - count <= 1):
            wrong[tid] = (seconds, have, every, count)
    assert not wrong
    assert missing <= 0.01 * sleeps * len(says)
