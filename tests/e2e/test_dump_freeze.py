# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --freeze: one moment of all threads, and the process goes on afterwards as if nothing had been."""

import contextlib
import json
import os
import random
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import harness
import pythons
from harness import pybpf
from test_dump import MIXES, by_name, dump, stack

EVERY = pythons.of_each_version(pythons.interpreters())
every_version = pytest.mark.parametrize("python", EVERY, ids=lambda item: item.name)


def run_python(code, *args):
    return harness.started([sys.executable, "-c", code, *args], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


def states(pid):
    """The kernel's letters for the threads of a process."""
    found = set()
    for path in Path("/proc", str(pid), "task").glob("*/stat"):
        with contextlib.suppress(OSError):
            found.add(path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0])
    return found


@every_version
def test_it_shows_what_a_process_that_runs_shows(python):
    with harness.target(python, "standing.py") as target:
        running, begin = dump(target.pid), time.monotonic()
        frozen = dump(target.pid, "--freeze")
        took_s = time.monotonic() - begin
        assert not states(target.pid) & {"T", "t"}
        says = target.says
    assert running["stood_still_s"] is None and 0 < frozen["stood_still_s"] < took_s
    one, other = by_name(running), by_name(frozen)
    assert {name: thread["cause"] for name, thread in one.items()} == {name: thread["cause"] for name, thread in other.items()}
    for name, chain in says["stacks"].items():
        assert stack(other[name]) == chain, name
    assert not any(thread["moving"] for thread in frozen["threads"])


@pytest.mark.parametrize("python", [p for p in EVERY if p.version[0] == 3], ids=lambda item: item.name)
def test_no_thread_moves_and_none_has_a_stack_that_it_never_had(python):
    met = set()
    with harness.started([*python.argv, "-c", MIXES], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        for _ in range(10):
            snapshot = dump(process.pid, "--freeze")
            assert sum(thread["has_gil"] for thread in snapshot["threads"]) <= 1
            for thread in snapshot["threads"]:
                names = [frame["function"] for frame in thread["frames"]]
                assert not thread["moving"], thread
                assert len({name[2:] for name in names if re.fullmatch(r"[abc]_\d+", name)}) <= 1, names
                order = "".join(name[0] for name in names if re.fullmatch(r"[abc]_\d+", name))
                assert "abc".startswith(order), names
                met.add(order)
    assert met & {"a", "ab", "abc"}


# A thread that works, one that sleeps for short times, and one that begins others.
BEATS = """
import sys, threading, time
beats = [0, 0, 0]
def naps():
    while True:
        time.sleep(0.001)
        beats[1] += 1
def begins():
    while True:
        thread = threading.Thread(target=time.sleep, args=(0.001,))
        thread.start()
        thread.join()
        beats[2] += 1
for work in naps, begins:
    threading.Thread(target=work, daemon=True).start()
print("[]", flush=True)
told = time.monotonic()
while True:
    beats[0] += 1
    if time.monotonic() > told + 0.05:
        told = time.monotonic()
        print(*beats, flush=True)
"""


def beats(process):
    return [int(number) for number in process.stdout.readline().split()]


def test_killed_at_any_moment_it_leaves_nothing_stopped():
    chance = random.Random(1)
    met = 0
    with run_python(BEATS) as process:
        harness.read_ready_line(process)
        for _ in range(60):
            argv = [harness.PYBPF, "dump", "-p", str(process.pid), "--freeze", "--no-source"]
            run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            end = time.monotonic() + chance.random() * 0.15
            while time.monotonic() < end and run.poll() is None:
                if "t" in states(process.pid):
                    met += 1
                    time.sleep(chance.random() * 0.005)
                    break
            run.kill()
            run.wait()
            harness.wait_for(lambda: not states(process.pid) & {"T", "t"})
        now = before = beats(process)
        while select.select([process.stdout], [], [], 0)[0]:  # printed earlier
            before = beats(process)
        for _ in range(4):
            now = beats(process)
        assert all(after > earlier for after, earlier in zip(now, before)), (before, now)
    assert met >= 5, "it was hardly ever met while it stood: %d" % met


SIGNALLED = """
import os, select, signal, sys, threading, time
# Python calls a handler once for several signals, but writes a byte for each.
there, here = os.pipe()
os.set_blocking(here, False)
signal.set_wakeup_fd(here)
signal.signal(signal.SIGRTMIN + 1, lambda number, frame: None)
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("[]", flush=True)
while not select.select([sys.stdin], [], [], 0.001)[0]:
    pass
print(len(os.read(there, 1 << 16)), flush=True)
"""


def test_signals_arrive_as_often_as_they_were_sent():
    """Those of real time are counted by the kernel; some come while the process stops."""
    with harness.started([sys.executable, "-c", SIGNALLED], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as process:
        harness.read_ready_line(process)
        sent = 0
        for _ in range(10):
            argv = [harness.PYBPF, "dump", "-p", str(process.pid), "--freeze", "--json"]
            run = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            while run.poll() is None:
                os.kill(process.pid, signal.SIGRTMIN + 1)
                sent += 1
                time.sleep(0.0005)
            assert run.returncode == 0
        time.sleep(0.2)
        process.stdin.write(b"\n")
        process.stdin.flush()
        assert int(process.stdout.readline()) == sent


def test_what_a_signal_had_stopped_stays_stopped():
    with run_python("import time; print('[]', flush=True); time.sleep(1000)") as process:
        harness.read_ready_line(process)
        os.kill(process.pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.state(process.pid) == "T")
        (thread,) = dump(process.pid, "--freeze")["threads"]
        assert thread["cause"] == "[stopped]" and thread["frames"]
        time.sleep(0.1)
        assert harness.state(process.pid) == "T"
        os.kill(process.pid, signal.SIGCONT)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        (thread,) = dump(process.pid, "--freeze")["threads"]
        assert thread["cause"] == "[sleep]"


TRACES = """
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
PTRACE_SEIZE = 0x4206
for tid in sys.argv[1:]:
    assert libc.ptrace(PTRACE_SEIZE, int(tid), None, None) == 0, ctypes.get_errno()
print("[]", flush=True)
time.sleep(1000)
"""


def test_one_that_is_traced_already():
    with run_python("import time; print('[]', flush=True); time.sleep(1000)") as process:
        harness.read_ready_line(process)
        with run_python(TRACES, str(process.pid)) as tracer:
            harness.read_ready_line(tracer)
            run = pybpf("dump", "-p", process.pid, "--freeze")
            assert run.code == 1 and not run.out
            sentence = harness.one_sentence(run.err)
            assert "process %d traces it already" % tracer.pid in sentence and "leave out --freeze" in sentence
            assert pybpf("dump", "-p", process.pid).code == 0


def test_of_ones_own_without_root_and_several():
    user = ["setpriv", "--reuid", "54321", "--clear-groups", "--inh-caps=-all"]
    code = "import time; print('[]', flush=True); time.sleep(1000)"
    with harness.started([*user, "/usr/bin/python3", "-c", code], stdout=subprocess.PIPE) as own:
        harness.read_ready_line(own)
        done = subprocess.run([*user, harness.PYBPF, "dump", "-p", str(own.pid), "--freeze"], capture_output=True, text=True)
        assert done.returncode == 0 and "stood still for " in done.stdout, done
        with run_python(code) as other:
            harness.read_ready_line(other)
            run = pybpf("dump", "-p", own.pid, "-p", other.pid, "--freeze", "--json")
            snapshots = [json.loads(line) for line in run.out.splitlines()]
            assert {snapshot["pid"] for snapshot in snapshots} == {own.pid, other.pid} and not run.code
            assert all(snapshot["stood_still_s"] > 0 for snapshot in snapshots)


# The file object writes the rest of what the call did not take, and the plain call does not.
WRITES = """
import io, os, sys, threading, time
def plain():
    print(os.write(pipes[0][1], bytes(200000)), flush=True)
def whole():
    with open(pipes[1][1], "wb", buffering=0) as raw, io.BufferedWriter(raw) as out:
        out.write(bytes(200000))
pipes = [os.pipe(), os.pipe()]
for work in plain, whole:
    threading.Thread(target=work, daemon=True).start()
print("[]", flush=True)
sys.stdin.read(1)
read = 0
while read < 200000:
    read += len(os.read(pipes[1][0], 200000))
print(read, flush=True)
"""


def test_a_write_that_waits_ends_early():
    """As docs/dump.md says."""
    with harness.started([sys.executable, "-c", WRITES], stdout=subprocess.PIPE, stdin=subprocess.PIPE) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: [thread["cause"] for thread in dump(process.pid)["threads"]].count("[pipe: write]") == 2)
        dump(process.pid, "--freeze")
        assert 0 < int(process.stdout.readline()) < 200000
        process.stdin.write(b"x")
        process.stdin.flush()
        assert int(process.stdout.readline()) == 200000
