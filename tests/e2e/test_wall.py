# SPDX-License-Identifier: Apache-2.0
"""--mode=wall and --mode=offcpu: every moment of every thread has one cause and one stack."""

import collections
import functools
import json
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

import harness
import pythons
from harness import pybpf
from processes import sampled_for

pytestmark = pytest.mark.usefixtures("profiler")

# What the leaf says in each function of tests/targets/waits.py, %d: the port.
CAUSES = {
    "sleep": "[sleep]",
    "lock": "[lock]",
    "pipe": "[pipe: read]",
    "tcp": "[network: tcp 127.0.0.1:%(tcp)d]",
    "timeout": "[network: tcp 127.0.0.1:%(tcp)d]",
    "unix": "[network: unix]",
    "udp": "[network: udp on 127.0.0.1:%(udp)d]",
    "poll": "[poll: 2 descriptors]",
    "epoll": "[poll: epoll until a pipe]",
    "select": "[poll: select]",
    "child": "[child: N]",
    "flock": "[lock: file N]",
}
US = 1e6
ROUNDED_S = 0.0005  # a run's duration is told in ms
every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)
every_version = pytest.mark.parametrize(
    "python", pythons.of_each_version(pythons.interpreters()), ids=lambda item: item.name
)


def leaf(stack):
    text = stack[-1].text
    return re.sub(r"^\[(child:|lock: file) [^]]+\]$", r"[\1 N]", text)


def by_function(stacks):
    """
    Microseconds by leaf of the waits in each wait_ function; and of its thread those on a CPU and without a stack, and
    those elsewhere but for the sleep between calls: such as between a look at the clock and the call.
    """
    found, threads = collections.defaultdict(collections.Counter), {}
    for stack, us in stacks:
        for frame in stack:
            if frame.name.startswith("wait_"):
                threads[stack[0].text] = frame.name[5:]
                if leaf(stack).startswith("["):
                    found[frame.name[5:]][leaf(stack)] += us
                break
    elsewhere = collections.Counter()
    for stack, us in stacks:
        waits = any(frame.name.startswith("wait_") for frame in stack)
        if not leaf(stack).startswith("[") or {frame.name for frame in stack} & UNKNOWN:
            elsewhere[threads.get(stack[0].text)] += us
        elif not waits and leaf(stack) != "[sleep]":
            elsewhere[threads.get(stack[0].text)] += us
    return found, elsewhere


def run_waits(python, seconds, *kinds, options=()):
    command = python.command("waits.py", str(seconds), *kinds)
    with harness.priority_of(python.argv):
        done = subprocess.run(
            [harness.PYBPF, "--mode=wall", "-o", "/dev/stderr", "-q", "-F", "999", "--threads", "--no-children", *options, "--", *command],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=harness.PATIENCE + seconds,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), harness.parse(done.stderr)


@functools.lru_cache(maxsize=None)
def waits_of(python):
    return run_waits(python, 2)


@every_python
def test_waits_are_as_long_as_the_program_measures(python):
    """The program's clock has a part of its thread's time elsewhere, which is not known exactly."""
    says, stacks = waits_of(python)
    found, elsewhere = by_function(stacks)
    wrong, vague = [], []
    for kind, seconds in says["seconds"].items():
        have, more = sum(found[kind].values()) / US, elsewhere[kind] / US
        vague += [kind] * (more > 0.35 * seconds)  # on a busy machine the one that starts processes
        if not have - 0.005 <= seconds <= have + more + 0.005 or len(vague) > len(says["seconds"]) / 2:
            wrong.append("%s: %.4f s and %.4f s on a CPU of %.4f s: %s" % (kind, have, more, seconds, dict(found[kind])))
    assert not wrong


@every_python
def test_each_wait_has_its_cause(python):
    says, stacks = waits_of(python)
    found, _ = by_function(stacks)
    for kind, cause in CAUSES.items():
        cause = cause % says["ports"] if "%(" in cause else cause
        waits = collections.Counter(
            {name: us for name, us in found[kind].items() if name.startswith("[") and not name.startswith(OTHERS)}
        )
        assert waits[cause] >= 0.95 * sum(waits.values()) > 0, (kind, waits)


# In place of a stack: time on a CPU that no sample met, and a switch in the middle of a change of frames.
UNKNOWN = {"[on CPU, not sampled]", "[stack not readable]"}
# What happens to any thread beside its wait.
OTHERS = ("[waiting for a CPU]", "[GIL", "[on CPU, not sampled]")
THREAD = re.compile(r".*\((\d+)\)", re.S)


def thread_times(stacks):
    """Microseconds by TID, of a run with --threads."""
    found = collections.Counter()
    for stack, us in stacks:
        found[int(THREAD.fullmatch(stack[0].text).group(1))] += us
    return found


def record_threads(pid, *options):
    run = harness.record(pid, "--mode=wall", "--threads", *options, seconds=1, rate=99)
    return thread_times(run.stacks()), run


@every_version
def test_the_time_of_each_thread_is_that_of_the_run(python):
    """Those that have slept since long before the run included."""
    with harness.target(python, "crowd.py", "10") as target:
        times, run = record_threads(target.pid, "--idle")
        alive = {int(tid) for tid in os.listdir("/proc/%d/task" % target.process.pid)}
    seconds = run.stats["duration_s"]
    assert set(times) == alive
    wrong = {tid: us / US for tid, us in times.items() if abs(us / US - seconds) > max(0.005 * seconds, 0.005)}
    assert not wrong, (wrong, seconds)


@pytest.mark.parametrize("version", [(2, 7), (3, 8), (3, 12), (3, 13)], ids=lambda version: "%d.%d" % version)
def test_five_hundred_threads_that_are_switched_while_they_are_found(version):
    """On another CPU a switch may have begun before a thread is found, and go on after that."""
    python = pythons.one(version=version)
    if not python:
        pytest.skip("not here")
    for _ in range(2):
        with harness.target(python, "naps.py", "500") as target:
            times, run = record_threads(target.pid, "--idle")
            alive = {int(tid) for tid in os.listdir("/proc/%d/task" % target.process.pid)}
        seconds = run.stats["duration_s"]
        assert set(times) == alive and len(alive) == 501
        assert max(times.values()) / US <= 1.005 * seconds, (max(times.values()), seconds)
        # A thread's time begins when it is found, which takes some milliseconds, longer beside a load.
        assert sum(times.values()) / US >= 0.9 * seconds * len(alive)


def test_threads_that_sleep_throughout_are_left_out_and_named():
    with harness.target(harness.default_python(), "crowd.py", "10") as target:
        times, run = record_threads(target.pid)
    assert len(times) == 1
    assert "10 threads slept throughout and are left out (--idle keeps them)" in run.err
    assert "9 in asleep" in run.err, run.err


SLEEPERS = """
import threading, time
for name, count in [("first", 5), ("second", 4), ("third", 3), ("fourth", 2), ("fifth", 1)]:
    exec("def %s():\\n    time.sleep(1000)" % name)
    for _ in range(count):
        threading.Thread(target=globals()[name], daemon=True).start()
while True:
    time.sleep(0.01)
"""


def test_all_that_slept_throughout_are_counted():
    """Three functions are named, and the threads in others counted."""
    with harness.started([harness.default_python().argv[0], "-c", SLEEPERS]) as process:
        harness.wait_for(lambda: len(os.listdir("/proc/%d/task" % process.pid)) == 16)
        harness.wait_for(lambda: all("hrtimer" in path.read_text() for path in Path("/proc/%d/task" % process.pid).glob("*/wchan") if path.parent.name != str(process.pid)))
        run = harness.record(process.pid, "--mode=wall", rate=99)
    assert "15 threads slept throughout and are left out (--idle keeps them): 5 in first, 4 in second, 3 in third and 3 in others\n" in run.err, run.err


def test_a_process_that_only_sleeps_is_shown():
    """Its sleep is what one wants to know of it."""
    script = "import time\ndef hangs():\n    time.sleep(1000)\nhangs()"
    with harness.started([harness.default_python().argv[0], "-c", script]) as process:
        harness.wait_for(lambda: "hrtimer" in open("/proc/%d/wchan" % process.pid).read())
        run, least_s = sampled_for(0.3, "-p", process.pid, "--mode=wall", rate=99)
    stacks = run.stacks()
    assert [[frame.name for frame in stack] for stack, _ in stacks] == [["<module>", "hangs", "[sleep]"]]
    assert least_s <= stacks[0][1] / US <= run.stats["duration_s"] + ROUNDED_S
    assert {state: round(s * US) for state, s in run.stats["state_s"].items() if s} == {"sleep": stacks[0][1]}


def test_offcpu_leaves_time_on_cpu_out():
    with harness.target(harness.default_python(), "crowd.py", "2") as target:
        wall, _ = record_threads(target.pid)
        run = pybpf("-p", target.pid, "-d", 1, "--mode=offcpu", "--idle")
    assert sum(wall.values()) > 0.9 * US
    leaves = {stack[-1].name for stack, _ in run.stacks()}
    assert leaves <= {"[lock]", "[waiting for a CPU]", "[GIL]", "[other: signal]"}, leaves
    assert "0.0 % on CPU" not in run.err and "on CPU" not in run.err.split("thread-seconds")[1].splitlines()[0]


def skip_without_gil(python):
    if python.kind == "free-threaded":
        pytest.skip("free-threaded builds have no GIL")
    if python.version == (3, 6) and python.kind == "stripped":
        pytest.skip("a stripped 3.6 does not say where its GIL is")


@every_python
def test_the_gil_is_told_from_a_lock(python):
    """Two threads compute in turns; a third one waits for a lock that nobody gives back."""
    skip_without_gil(python)
    with harness.target(python, "gil.py") as target:
        run = pybpf("-p", target.pid, "-d", 1, "--mode=wall", "--idle", "--wait-detail=none")
    found = collections.defaultdict(collections.Counter)
    for stack, us in run.stacks():
        for frame in stack:
            if frame.name in ("computes", "locked"):
                found[frame.name][leaf(stack)] += us
    assert found["locked"]["[lock]"] > 0.99 * sum(found["locked"].values())
    computes = found["computes"]
    assert computes["[GIL]"] > 0.001 * sum(computes.values()), computes
    # A wait may go on while the process is found: 5 ms, the switch interval, and when a CPU is free.
    assert computes["[lock]"] < 0.01 * US, computes


def holders(python, which):
    """Microseconds that `suffers` of tests/targets/holds.py waited for the GIL, by the function that held it."""
    skip_without_gil(python)
    with harness.target(python, "holds.py", which) as target:
        run = harness.record(target.pid, "--mode=wall", rate=99)
    found = collections.Counter()
    for stack, us in run.stacks():
        held = re.fullmatch(r"\[GIL(?:: held in (.*))?\]", leaf(stack))
        if held and any(frame.name == "suffers" for frame in stack):
            found[held.group(1)] += us
    return found


@every_version
def test_the_holder_of_the_gil_is_named(python):
    found = holders(python, "keeps")
    assert found["keeps"] >= 0.8 * sum(found.values()) > 0, found


@every_version
def test_a_holder_that_changes_frames_is_named_or_not_known(python):
    """Reading a thread that runs: never a function that it was not in."""
    found = holders(python, "changes")
    assert set(found) <= {"changer", "changes", "first", "second", "third", None}, found


def test_wait_detail_none():
    _, stacks = run_waits(harness.default_python(), 1, "tcp", "pipe", options=["--wait-detail=none"])
    leaves = {leaf(stack) for stack, _ in stacks if leaf(stack).startswith("[")}
    assert {"[network]", "[pipe]"} <= leaves
    assert not [name for name in leaves if ":" in name]


def test_bad_mode():
    run = pybpf("-p", 1, "--mode=clock")
    assert run.code == 2
    assert "cpu, wall, offcpu, gil, exception or memory" in harness.one_sentence(run.err)


def test_cycles_and_waits_exclude_each_other():
    with harness.target(harness.default_python(), "spin.py") as target:
        run = pybpf("-p", target.pid, "-d", 1, "--mode=wall", "-e", "cycles")
    assert run.code == 1
    assert "leave -e out" in harness.one_sentence(run.err)


def waits_of_script(script, *options):
    """Microseconds by leaf, of a script that is run to its end."""
    argv = [harness.default_python().argv[0], "-c", script]
    run = pybpf("--mode=wall", "--idle", "-q", *options, "--", *argv)
    assert run.code == 0, run.err
    found = collections.Counter()
    for stack, us in run.stacks():
        found[leaf(stack)] += us
    return found


ABSTRACT = """
import socket, threading, time
near, far = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
far.bind("\\0x")
far.listen(1)
near.connect("\\0x")
there = far.accept()[0]
threading.Timer(0.5, there.send, [b"x"]).start()
near.recv(1)
"""


def test_the_name_of_an_abstract_socket_ends_where_it_ends():
    """It has no NUL at its end, and what the kernel has behind it is nobody's."""
    found = waits_of_script(ABSTRACT)
    assert found["[network: unix @x]"] > 0.4 * US, found


PEERS = """
import socket, threading, time
bound = threading.Semaphore(0)
def name(number):
    return "\\0peer-%d-%s" % (number, begin)
def sends():
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    for number in range(5000):
        bound.acquire()
        time.sleep(0.0002)
        sender.sendto(b"x", name(number))
begin = time.time()
threading.Thread(target=sends).start()
for number in range(5000):
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    receiver.bind(name(number))
    bound.release()
    receiver.recv(1)
    receiver.close()
"""


def test_more_peers_than_names_keep_their_state():
    """A server has a new address for each connection: those without room for a name are no other kind of wait."""
    found = waits_of_script(PEERS)
    assert not found["[other]"], found
    named = sum(name.startswith("[network: unix @peer-") for name in found)
    assert 3000 < named <= 4096, named
    assert found["[network]"] > 0.05 * sum(us for name, us in found.items() if name.startswith("[network")), found


STOPPER = """
import os, sys, time
pid, path, least, most = int(sys.argv[1]), sys.argv[2], 0, 0
for _ in range(3):
    time.sleep(0.2)
    before = time.monotonic()
    os.kill(pid, 19)
    while open("/proc/%d/stat" % pid).read().rpartition(")")[2].split()[0] != "T": pass
    stopped = time.monotonic()
    time.sleep(0.2)
    least += time.monotonic() - stopped
    os.kill(pid, 18)
    most += time.monotonic() - before
open(path, "w").write("%f %f" % (least, most))
"""
STOPPED = """
import os, subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", stopper, str(os.getpid()), path])
while child.poll() is None: pass
"""


def test_stopped_while_it_ran(tmp_path):
    """As long as the one who stopped it says."""
    path = tmp_path / "times"
    found = waits_of_script("stopper, path = %r, %r\n" % (STOPPER, str(path)) + STOPPED)
    least, most = map(float, path.read_text().split())
    assert 0.6 <= least <= found["[stopped]"] / US <= most, (least, most, found)


EXECUTES = """
import os, sys, threading, time
def say():
    os.write(2, b"%f " % time.monotonic())
def executes():
    time.sleep(0.5)
    say()
    os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(0.5)"])
threading.Thread(target=executes).start()
say()
time.sleep(10)
"""


def test_an_exec_by_another_thread():
    """It takes its leader's TID: what it waited for before is its own, with its name."""
    argv = [harness.default_python().argv[0], "-c", EXECUTES]
    begin = time.monotonic()
    run = pybpf("--mode=wall", "--idle", "-q", "--threads", "--", *argv)
    took_s = time.monotonic() - begin
    asleep_s, executed_s = map(float, run.err.split())
    slept, queued_us = collections.defaultdict(int), 0
    for stack, us in run.stacks():
        if leaf(stack) == "[sleep]":
            slept[stack[0].text, stack[-2].name] += us
        elif leaf(stack) == "[waiting for a CPU]":
            queued_us += us
    assert {name for _, name in slept} == {"executes", "<module>"}, slept
    for (thread, name), us in slept.items():
        assert re.fullmatch(r"\S.* \(\d+\)", thread), slept
        # The main thread sleeps until then, and the program for half a second after it.
        least_s, most_s = (0.5, took_s - 0.5) if name == "executes" else (executed_s - asleep_s + 0.5, took_s)
        assert 0.98 * least_s * US - queued_us <= us < most_s * US, (slept, queued_us, run.err, took_s)
