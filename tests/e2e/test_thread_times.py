# SPDX-License-Identifier: Apache-2.0
"""Short waits that --min-block leaves out, and the time of threads that a run in CPU mode tells."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

import pytest

import harness
import pythons
from harness import pybpf
from processes import sampling

pytestmark = pytest.mark.usefixtures("profiler")

US = 1e6
TICK_S = 1 / os.sysconf("SC_CLK_TCK")  # what /proc tells times in
VERSIONS = [(2, 7), (3, 8), (3, 11), (3, 12), (3, 13), pythons.NEWEST]


def differing():
    """One Python of each kind of frames and threads."""
    found = {}
    for item in pythons.interpreters():
        if item.version[:2] in VERSIONS and (item.kind != "free-threaded" or item.version[:2] == (3, 13)):
            found.setdefault((item.version[:2], item.kind == "free-threaded"), item)
    return list(found.values())


some_pythons = pytest.mark.parametrize("python", differing(), ids=lambda item: item.name)

# Both kinds of wait, with their number and the seconds that the program measures around them.
WAITS = """
import json, os, sys, time
clock = getattr(time, "perf_counter", time.time)
waits = {"brief": [0, 0.0], "extended": [0, 0.0], "late": 0.0}
def brief(count):
    for _ in range(count):
        begin = clock()
        time.sleep(0.002)
        waited = clock() - begin
        waits["brief"][1] += waited
        waits["brief"][0] += 1
        if waited >= 0.03: waits["late"] += waited
def extended():
    begin = clock()
    time.sleep(0.06)
    waits["extended"][1] += clock() - begin
    waits["extended"][0] += 1
def main():
    for _ in range(8):
        brief(20)
        extended()
main()
sys.stdout.write(json.dumps(waits) + "\\n")
"""


def run_of(*args):
    """A run with its statistics; its stacks are in a file."""
    with tempfile.TemporaryDirectory() as folder:
        stats, out = os.path.join(folder, "stats"), os.path.join(folder, "out.folded")
        run = pybpf("--json-stats", stats, "-o", out, *args)
        assert run.code == 0, run.err
        with open(stats, encoding="utf-8") as file:
            run.stats = json.load(file)
        with open(out, encoding="utf-8") as file:
            return run, harness.parse(file.read())


def asleep_in(stacks, function):
    return sum(us for stack, us in stacks if stack[-1].name == "[sleep]" and function in {frame.name for frame in stack}) / US


@some_pythons
def test_short_waits_are_left_out_and_counted(python):
    run, stacks = run_of("--mode=wall", "--min-block", "30ms", "--", *python.argv, "-S", "-c", WAITS)
    says = json.loads(run.out)
    # On a busy machine a brief sleep may be a long one, or be over before it began.
    assert asleep_in(stacks, "brief") <= says["late"], stacks
    # It waits for a CPU afterwards.
    assert 0.98 * 0.06 * says["extended"][0] <= asleep_in(stacks, "extended") <= says["extended"][1]
    # The start and the end of a program have short waits of their own, such as for a disk.
    short = run.stats["waits"]
    assert 0.95 * says["brief"][0] <= short["short"] < says["brief"][0] + 100
    assert 0.95 * 0.002 * says["brief"][0] <= short["short_s"] < says["brief"][1] + 0.2
    line = re.search(r"^pybpf: ([\d,]+) waits shorter than 30 ms are left out: ([\d.]+) (m?)s$", run.err, re.M)
    assert int(line.group(1).replace(",", "")) == short["short"] and abs(float(line.group(2)) / (1000 if line.group(3) else 1) - short["short_s"]) < 0.006


ENDLESS = WAITS.split("def main")[0] + "while True:\n    brief(20)\n    extended()\n"


def test_a_thread_adds_up_to_the_run_with_what_is_left_out():
    with harness.started([*harness.default_python().argv, "-S", "-c", ENDLESS]) as process:
        run = harness.record(process.pid, "--mode=wall", "--idle", "--min-block", "30ms", seconds=2, rate=99)
    seconds, short = run.stats["duration_s"], run.stats["waits"]["short_s"]
    # A wait that began before the run, and one that goes on at its end, may be kept although they are brief.
    assert asleep_in(run.stacks(), "brief") < 0.02
    assert short > 0.1
    assert abs(harness.total(run.stacks()) / US + short - seconds) < max(0.005 * seconds, 0.005)


def test_a_long_wait_for_the_gil_is_not_short_as_its_parts_are():
    """A thread sleeps for the GIL for 5 ms at most, and then again."""
    with harness.target(harness.default_python(), "holds.py", "keeps") as target:
        for seconds in (0.25, 1, 4, 16):  # until the threads had a CPU for long enough
            run = harness.record(target.pid, "--mode=wall", "--min-block", "20ms", seconds=seconds, rate=99)
            waits = [us for stack, us in run.stacks() if stack[-1].name.startswith("[GIL") and "suffers" in {f.name for f in stack}]
            if sum(waits) > 0.02 * US:
                break
    assert sum(waits) > 0.02 * US, run.stacks()


@pytest.mark.parametrize("value", ["abc", "0", "-1ms", "1e3", ""])
def test_bad_length_of_waits(value):
    run = pybpf("-p", 1, "--mode=wall", "--min-block=" + value)
    assert run.code == 2
    assert "500us, 1ms" in harness.one_sentence(run.err)


def test_short_waits_are_of_modes_with_waits():
    run = pybpf("-p", 1, "--min-block=1ms")
    assert run.code == 2
    assert "--mode=wall" in harness.one_sentence(run.err)


SPINS = """
import sys, threading, time
def sleeps():
    time.sleep(1000)
def spins():
    while True:
        pass
for work in [sleeps] * int(sys.argv[1]) + [spins]:
    thread = threading.Thread(target=work)
    thread.daemon = True
    thread.start()
print("ready")
sys.stdout.flush()
sleeps()
"""


def on_one_cpu(script, *args):
    argv = ["taskset", "-c", "0", *harness.default_python().argv, "-S", "-c", script, *args]
    return harness.started(argv, stdout=subprocess.PIPE)


def test_cpu_mode_tells_the_time_of_threads():
    """A thread that would run all the time and shares its CPU with another process, and four that sleep."""
    with on_one_cpu(SPINS, "3") as process, on_one_cpu(SPINS, "0") as other:
        assert process.stdout.readline() and other.stdout.readline()
        run = harness.record(process.pid, seconds=2, rate=99)
    seconds, states = run.stats["duration_s"], run.stats["state_s"]
    assert run.stats["threads"]["counted"] == 5
    # A wait for a CPU that has not ended is not counted yet, and on a busy machine it can be long.
    assert -0.1 * seconds < states["asleep"] - 4 * seconds < 0.5 * seconds, states
    assert -0.5 * seconds < states["on CPU"] + states["waiting for a CPU"] - seconds < 0.1 * seconds, states
    assert states["waiting for a CPU"] > 0.25 * seconds and states["on CPU"] > 0.02 * seconds, states
    line = re.search(r"^pybpf: ([\d.]+) thread-seconds: ([\d.]+) % on CPU, ([\d.]+) % waiting for a CPU, ([\d.]+) % asleep ", run.err, re.M)
    assert abs(float(line.group(1)) - 5 * seconds) < 0.1 * seconds
    assert abs(sum(map(float, line.groups()[1:])) - 100) < 0.3
    assert "that is without" not in run.err


BEGINS = """
import sys, threading, time
def sleeps():
    time.sleep(1000)
def ends():
    sys.stdin.readline()
    begin = time.thread_time()
    while time.thread_time() < begin + 0.3:
        pass
    print(time.thread_time() - begin)
    sys.stdout.flush()
def begins():
    for _ in range(int(sys.argv[1])):
        thread = threading.Thread(target=sleeps)
        thread.daemon = True
        thread.start()
old = threading.Thread(target=ends)
old.start()
print("ready")
sys.stdout.flush()
old.join()
begins()
sleeps()
"""


def test_threads_that_begin_or_end_during_the_run():
    argv = [*harness.default_python().argv, "-S", "-c", BEGINS, "4"]
    with harness.started(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout.readline()
        with sampling("-p", process.pid, rate=99) as run:
            harness.wait_for(lambda: harness.samples_now(run.pid))
            process.stdin.write(b"\n")
            ran_s = float(process.stdout.readline())
            time.sleep(2)
        cpu_s = harness.cpu_s(process.pid)
        lived = sum(age(process.pid, tid) for tid in os.listdir("/proc/%d/task" % process.pid) if int(tid) != process.pid)
    seconds, threads, states = run.stats["duration_s"], run.stats["threads"], run.stats["state_s"]
    assert threads["counted"] == 5 and threads["ended"] == 1, threads
    # The new threads began after the run and are a little older now than they were at its end.
    all_s = states["asleep"] + states["on CPU"] + states["waiting for a CPU"]
    assert seconds < all_s <= seconds + lived + 5 * TICK_S, (all_s, lived)
    # The thread that ended is not among the states.
    assert ran_s <= threads["ended_cpu_s"] <= cpu_s + TICK_S - states["on CPU"], (ran_s, threads, states, cpu_s)
    assert re.search(r"^pybpf: that is without threads that ended, which took 0\.\d+ s of CPU time \(", run.err, re.M)


def age(pid, tid):
    with open("/proc/%d/task/%s/stat" % (pid, tid), encoding="ascii") as file:
        begin_s = int(file.read().rsplit(")", 1)[1].split()[19]) * TICK_S
    with open("/proc/uptime", encoding="ascii") as file:
        return float(file.read().split()[0]) - begin_s


def test_nothing_is_said_of_a_process_that_ended():
    run, _ = run_of("--", sys.executable, "-S", "-c", "sum(range(10000000))")
    assert run.stats["threads"]["counted"] == 0 and run.stats["processes"]["ended"] == 1
    assert "thread-seconds" not in run.err


@pytest.mark.parametrize("microseconds", [50, 50000])
def test_cpu_time_that_samples_do_not_stand_for_is_told(microseconds):
    """The kernel's count of the thread's time says whether it has to be."""
    with harness.target(harness.default_python(), "bursts.py", str(microseconds)) as target:
        run = harness.record(target.pid, seconds=3, rate=4999)
    told = re.search(r"^pybpf: process %d took ([\d.]+) s of CPU time, of which its samples stand for ([\d.]+) s" % target.pid, run.err, re.M)
    took, asked = run.stats["state_s"]["on CPU"], run.stats["samples"]["asked"]
    if told:
        assert abs(float(told.group(2)) - asked / 4999) < 0.001 and float(told.group(2)) < 0.95 * float(told.group(1))
        assert asked / 4999 < took
    else:
        assert asked > 0.9 * 4999 * took - 3.29 * (4999 * took) ** 0.5 - 5, (asked, took)


ALONE = """
print("ready", flush=True)
held = []
while True:
    held.append(bytearray(5000))
    sum(range(3000))
    if len(held) > 20000:
        held.clear()
"""


@pytest.mark.parametrize("mode", ["cpu", "memory"])
def test_a_thread_alone_has_none_that_ended(mode):
    """What a program does while pybpf attaches and detaches, which takes long with memory, is not that of ended threads."""
    argv = [*harness.default_python().argv, "-c", ALONE]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout.readline() == b"ready\n"
        run = pybpf("-p", process.pid, "--mode=" + mode, "-d", 0.5)
        assert run.code == 0, run.err
        assert "thread-seconds" in run.err and "ended" not in run.err, run.err
