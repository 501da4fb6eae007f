# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --native: the C frames between Python's functions, compared with gdb and with programs that are known."""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import pytest

import harness
import pythons
from harness import pybpf
from test_dump import MIXES, by_name, dump, stack
from test_dump_core import gcore
from test_dump_freeze import TRACES, run_python

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)
INCOMPLETE = "[native frames incomplete]"
HERE = [python for python in pythons.of_each_version(pythons.interpreters()) if python.runs_here()]
every_version = pytest.mark.parametrize("python", HERE, ids=lambda item: item.name)


def plain(name):
    """Without what only one of both shows: arguments, versions, parts and clones, and the C library's own names for its functions."""
    return re.sub(r"^(_|GI_|libc_)*|@.*$|[ (<].*$|\..*$|_impl$", "", name or "")


def gdb_frames(pid):
    """({TID: the addresses of its frames, the innermost first}, {address: functions}); those that are inlined share one."""
    done = subprocess.run(
        ["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "set backtrace past-main on", "-ex", "set print address on",
         "-ex", "thread apply all bt -frame-info location-and-address"],
        capture_output=True, text=True, errors="replace", check=False, timeout=harness.PATIENCE,
    )
    threads, functions = {}, {}
    for line in done.stdout.splitlines():
        thread = re.match(r"Thread .*\(LWP (\d+)\)", line)
        frame = re.match(r"#\d+ +(0x[0-9a-f]+) in ([^ ]+)", line)
        if thread:
            addresses = threads.setdefault(int(thread[1]), [])
        elif frame:
            address = int(frame[1], 16)
            addresses += [address] if address not in addresses[-1:] else []
            functions.setdefault(address, set()).add(plain(frame[2]))
    assert threads, done
    return threads, functions


@every_version
def test_as_gdb_has_it(python):
    with harness.target(python, "standing.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        snapshot = dump(target.pid, "--native")
        others, functions = gdb_frames(target.pid)
    # A wait that a stop ends early ends the thread in 2.7 (docs/dump.md, --freeze).
    threads = [thread for thread in snapshot["threads"] if thread["tid"] in others]
    assert len(threads) >= len(snapshot["threads"]) - (python.version[0] == 2)
    for thread in threads:
        ours = []
        for frame in reversed(thread["native_frames"]):
            ours += [frame["address"]] if frame["address"] not in ours[-1:] else []
        theirs = others[thread["tid"]]
        # gdb adds functions that debugging symbols tell of jumps (tail calls); the loader's first ones it may leave out.
        same = [address for address in theirs if address in ours]
        assert len(same) > 5 and ours[:len(same)] == same, thread["name"]
        assert len(ours) - len(same) <= 2, thread["name"]
        named = [frame for frame in thread["native_frames"] if frame["function"] and frame["address"] in same]
        wrong = [(frame["function"], functions[frame["address"]]) for frame in named if plain(frame["function"]) not in functions[frame["address"]]]
        assert len(named) > 5 and not wrong, (thread["name"], wrong)


@every_python
def test_each_run_of_the_loop_has_its_functions(python):
    """The Python stack is the one that is told without it, and the innermost function of C is the one that waits."""
    with harness.target(python, "standing.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        snapshot = dump(target.pid, "--native")
        says = target.says
    threads = by_name(snapshot)
    for name, chain in says["stacks"].items():
        assert stack(threads[name]) == chain, name
    # musl has no call frame information, and parts of the loop of sid's have no name.
    assert all(thread["native_whole"] and thread["native_fits"] for thread in snapshot["threads"])
    assert all(len(thread["native_frames"]) > 5 for thread in snapshot["threads"])
    for thread in snapshot["threads"]:
        last = thread["native_frames"][-1]
        assert last["caller"] == len(thread["frames"]) - 1
        assert not last["interpreter"] or python.kind == "static" or last["function"] is None, last
        callers = [-1 if frame["caller"] is None else frame["caller"] for frame in thread["native_frames"] if not frame["python"]]
        assert callers == sorted(callers) and callers[0] == -1
        assert any(frame["python"] for frame in thread["native_frames"])


# The same functions again and again, now called by Python and now by C.
CALLS = """
import sys, time
def leaf(_):
    print("[]"); sys.stdout.flush(); time.sleep(1000)
def by_c(n):
    sorted([n], key=by_python if n else leaf)
def by_python(n):
    plain(n)
def plain(n):
    by_c(n - 1)
by_c(3)
"""


@every_version
def test_functions_of_c_stand_between_those_that_they_connect(python):
    with harness.started([*python.argv, "-c", CALLS], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        (thread,) = dump(process.pid, "--native")["threads"]
        text = pybpf("dump", "-p", process.pid, "--native").out
    names = [frame["function"] for frame in thread["frames"]]
    assert names == ["<module>"] + ["by_c", "by_python", "plain"] * 3 + ["by_c", "leaf"]
    called = {i: [frame["function"] for frame in thread["native_frames"] if frame["caller"] == i and not frame["python"]]
              for i in range(len(names))}
    for i, name in enumerate(names):
        assert ("builtin_sorted" in called[i]) == (name == "by_c"), (name, called[i])
        # From 3.11 on the loop runs functions that Python calls without C in between.
        if name in ("by_python", "plain", "<module>") and python.version >= (3, 11):
            assert not called[i], (name, called[i])
    order = re.findall(r"in (\w+)\n|^  C (builtin_sorted)", text, re.M)
    order = [one or other for one, other in order if (one or other) in ("by_c", "by_python", "plain", "leaf", "builtin_sorted")]
    assert order == ["by_c", "builtin_sorted", "by_python", "plain"] * 3 + ["by_c", "builtin_sorted", "leaf"]


def test_reversed_is_the_same_from_its_end():
    with harness.started([*harness.default_python().argv, "-c", CALLS], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        down, up = (pybpf("dump", "-p", process.pid, "--native", "--no-source", *args).out for args in ((), ("--reverse",)))
    lines = [[line for line in text.splitlines() if line.startswith("  ")] for text in (down, up)]
    assert len(lines[0]) > 20 and lines[0] == lines[1][::-1]


@every_version
def test_of_a_core_file(python):
    with tempfile.TemporaryDirectory() as folder:
        with harness.target(python, "standing.py") as target:
            harness.wait_for(lambda: harness.state(target.pid) == "S")
            live = by_name(dump(target.pid, "--native"))
            path, _ = gcore(target.pid, folder)
        run = pybpf("dump", "--core", path, "--native", "--json")
    assert not run.code and not run.err, run
    for name, thread in by_name(json.loads(run.out)).items():
        assert thread["native_frames"] == live[name]["native_frames"], name


# On arm64 the function that enters the kernel has its return address in a register, which only a stop tells.
tells_sleepers = pytest.mark.skipif(os.uname().machine != "x86_64", reason="sleeping threads are stopped, too, on arm64")


@tells_sleepers
@every_python
def test_threads_that_sleep_are_not_stopped(python):
    """Their frames are those that they have when they are stopped. Where these are found by the frame pointer, they are."""
    with harness.target(python, "standing.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        slept = dump(target.pid, "--native")
        stopped = by_name(dump(target.pid, "--native", "--freeze"))
    compiled = pythons.answer(python.argv, "import sysconfig; print(sysconfig.get_config_var('CFLAGS'))")[1]
    if "-fno-omit-frame-pointer" in compiled:
        # Some compilers describe a function by its frame pointer only if its frame's size changes.
        assert 0 < slept["threads_stopped"] <= len(slept["threads"]) and slept["longest_stop_s"] is not None, slept
    else:
        assert slept["threads_stopped"] == 0 and slept["longest_stop_s"] is None, slept
    assert len(slept["threads"]) > 8 and slept["stood_still_s"] is None, slept
    for thread in slept["threads"]:
        assert thread["native_frames"] == stopped[thread["name"]]["native_frames"], thread["name"]


ONE_RUNS = """
import threading, time
def turn():
    while True: pass
threading.Thread(target=turn, daemon=True).start()
print("[]", flush=True)
time.sleep(1000)
"""


@tells_sleepers
def test_threads_that_another_process_traces():
    """What sleeps has its frames; of what runs there is a sentence, and Python's functions."""
    with harness.started([sys.executable, "-c", ONE_RUNS], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        with run_python(TRACES, *os.listdir("/proc/%d/task" % process.pid)) as tracer:
            harness.read_ready_line(tracer)
            run = pybpf("dump", "-p", process.pid, "--native", "--json")
    sentence, snapshot = run.err, json.loads(run.out)
    assert run.code == 1 and "cannot be stopped: another process traces them" in sentence, run.err
    main, other = snapshot["threads"]
    assert main["native_whole"] and main["native_fits"]
    assert other["native_frames"] is None and other["frames"][-1]["function"] == "turn"


# vfork() waits uninterruptibly, here in a function of which nothing tells how it was called.
STUCK = """
#include <unistd.h>
void stuck(void) { if (!vfork()) { sleep(30); _exit(0); } }
"""
ALL_STUCK = """
import ctypes, sys, threading, time
library = ctypes.CDLL(sys.argv[1])
for _ in range(40): threading.Thread(target=library.stuck, daemon=True).start()
print("[]", flush=True)
time.sleep(1000)
"""


@tells_sleepers
def test_threads_that_do_not_stop(tmp_path):
    """They are waited for together, not one by one: a minute would be over before."""
    path = tmp_path / "stuck.so"
    subprocess.run(["cc", "-xc", "-O1", "-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-o", path, "-"],
                   input=STUCK, text=True, check=True)
    argv = [harness.default_python().argv[0], "-c", ALL_STUCK, path]
    with harness.started(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True) as process:
        harness.read_ready_line(process)
        run = pybpf("dump", "-p", process.pid, "--native", "--json")
        os.killpg(process.pid, signal.SIGKILL)
    assert run.code == 1 and "cannot be stopped: they are in an uninterruptible sleep" in run.err, run.err
    main, *others = json.loads(run.out)["threads"]
    assert main["native_whole"] and len(others) == 40
    assert all(thread["native_frames"] is None and thread["cause"] for thread in others)


NAPS = """
import random, threading, time
def nap(_): time.sleep(random.random() * 0.012)
def through_sorted(): sorted([1], key=nap)
def through_map(): list(map(nap, [1]))
def through_min(): min([1], key=nap)
def plain(): nap(0)
def work():
    while True: random.choice([through_sorted, through_map, through_min, plain])()
for _ in range(6): threading.Thread(target=work, daemon=True).start()
print("[]", flush=True)
time.sleep(1000)
"""
THROUGH = {"through_sorted": ["builtin_sorted"], "through_map": ["map_next"], "through_min": ["min_max"], "plain": []}


@pytest.mark.parametrize("python", [item for item in HERE if (3, 7) < item.version < (3, 14)], ids=lambda item: item.name)
def test_threads_that_wake_meanwhile(python):
    """Some sleep all the time that they are read, others do not: neither has functions of two moments."""
    seen = stops = 0
    with harness.started([*python.argv, "-c", NAPS], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        while seen < 120 or not 0 < stops < seen:
            snapshot = dump(process.pid, "--native")
            stops += snapshot["threads_stopped"]
            for thread in snapshot["threads"]:
                called = {frame["function"] for frame in thread["frames"]} & set(THROUGH)
                if "nap" not in [frame["function"] for frame in thread["frames"]] or not thread["native_fits"]:
                    continue
                seen += 1
                names = [frame["function"] for frame in thread["native_frames"]]
                assert [name for name in names if [name] in THROUGH.values()] == THROUGH[called.pop()], thread
    assert seen


# C calls each function, so that what has called one is known without Python's stack.
KEYS = """
import sys
def key_0(_): return 0
def key_1(_): return sorted([0], key=key_0)
def key_2(_): return sorted([0], key=key_1)
print("[]"); sys.stdout.flush()
while True: sorted([0], key=key_2)
"""
CALLED = ["<module>", "key_2", "key_1", "key_0"]


@every_version
def test_a_run_of_the_loop_without_a_function(python):
    """A thread that is stopped between two functions, and a profile's samples: what C has been called by is what calls it."""
    more = collections.Counter()
    with harness.started([*python.argv, "-c", KEYS], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        argv = [harness.PYBPF, "dump", "-p", str(process.pid), "--native", "--json", "--watch", "0.01"]
        with harness.started(argv, stdout=subprocess.PIPE, text=True) as watching:
            while min(more[0], more[1]) < 5:
                (thread,) = json.loads(watching.stdout.readline())["threads"]
                functions = [frame["function"] for frame in thread["frames"]]
                assert functions == CALLED[: len(functions)], thread
                if thread["native_fits"]:
                    callers = [frame["caller"] for frame in thread["native_frames"] if frame["function"] == "builtin_sorted"]
                    assert callers == list(range(len(callers))), thread
                    more[sum(frame["python"] for frame in thread["native_frames"]) - len(functions)] += 1
        run = harness.record_busy(process.pid, "--native", fewest=1000, rate=999)
    assert set(more) == {0, 1}, more
    assert run.stats["native"]["joined_plus_one"] > 10, run.stats["native"]
    for frames, _ in run.stacks():
        names = [frame.name for frame in frames if frame.name in (*CALLED, "builtin_sorted", INCOMPLETE)]
        by_turns = [name for called in CALLED for name in (called, "builtin_sorted")]
        assert INCOMPLETE in names or names == by_turns[: len(names)], harness.show(frames)


def test_what_runs_is_whole_or_says_so():
    """Where the loop is between two functions, the two stacks need not fit; Python's is told all the same."""
    fits = stops = 0
    with harness.started([sys.executable, "-c", MIXES], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        for _ in range(20):
            snapshot = dump(process.pid, "--native")
            assert snapshot["stood_still_s"] is None
            assert (snapshot["longest_stop_s"] is None) == (snapshot["threads_stopped"] == 0)
            stops += snapshot["threads_stopped"]
            for thread in snapshot["threads"]:
                assert thread["frames"] and thread["native_frames"]
                fits += thread["native_fits"]
                if not thread["native_fits"]:
                    assert all(frame["caller"] is None for frame in thread["native_frames"])
    assert fits > 10 and stops > 10


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program has machine code of x86-64")
@pytest.mark.parametrize(
    "python", [item for item in (pythons.one(name="system-python3.11"), *HERE) if item and item.version > (3, 5)], ids=lambda item: item.name
)
def test_code_right_behind_a_library_is_none_of_it(python):
    """What follows its instructions tells how to go on from there."""
    with harness.target(python, "beside_library.py") as target:
        pages = target.says["pages"]
        harness.wait_for(lambda: pybpf("dump", "-p", target.pid).out.count("in stand_python") == len(pages) > 0)
        threads = [thread for thread in dump(target.pid, "--native")["threads"] if thread["tid"] != target.pid]
    for thread in threads:
        made = [frame for frame in thread["native_frames"] if any(0 <= frame["address"] - page < 4096 for page in pages)]
        assert len(made) == 1 and made[0]["file"] is None, thread["native_frames"]
        assert thread["native_whole"] and thread["native_fits"], thread["native_frames"]
        assert thread["frames"][made[0]["caller"]]["function"].endswith("run"), thread["native_frames"]


READS_CLOCKS = """
import time
print("[]", flush=True)
clock = time.time
while True: clock(); clock(); clock(); clock(); clock(); clock(); clock(); clock()
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="libdw does not follow the kernel's code")
def test_the_kernels_own_code_has_names():
    with harness.started([harness.default_python().argv[0], "-c", READS_CLOCKS], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)

        def met():
            (thread,) = dump(process.pid, "--native")["threads"]
            found = {frame["function"] for frame in thread["native_frames"] if frame["file"] == "[vdso]"}
            assert found <= {"clock_gettime", "gettimeofday"}, thread["native_frames"]
            return found and thread["native_whole"]

        harness.wait_for(met)


# Each mapping has another file for its neighbour, so that none are told as one.
MANY_FILES = """
import mmap, os, sys, time
maps, files = [], [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
for i in range(8000):
    maps.append(mmap.mmap(files[i % 2], 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC))
print("[]"); sys.stdout.flush()
sorted([1], key=lambda _: time.sleep(1000))
"""


def test_more_mappings_than_are_listed(tmp_path):
    paths = [tmp_path / "one", tmp_path / "other"]
    for path in paths:
        path.write_bytes(bytes(4096))
    with harness.started([harness.default_python().argv[0], "-c", MANY_FILES, *paths], stdout=subprocess.PIPE) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        (thread,) = dump(process.pid, "--native")["threads"]
    assert thread["native_whole"] and thread["native_fits"], thread["native_frames"]


def test_a_stack_without_end():
    """A thread whose stack pointer is anywhere: its native stack is told to be cut off, and Python's is whole."""
    code = "import ctypes, os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"
    with harness.started([sys.executable, "-c", code], stdin=subprocess.DEVNULL) as process:
        harness.wait_for(lambda: harness.state(process.pid) == "T")
        snapshot = dump(process.pid, "--native")
        os.kill(process.pid, signal.SIGCONT)
    (thread,) = snapshot["threads"]
    assert [frame["function"] for frame in thread["frames"]] == ["<module>"]
    assert thread["native_fits"]


LEADERLESS = """
import ctypes, sys, threading, time
threading.Thread(target=time.sleep, args=(1000,), name="other").start()
print("[]"); sys.stdout.flush()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_first_thread_has_ended():
    with harness.started([harness.default_python().argv[0], "-c", LEADERLESS], stdout=-1) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "Z")
        snapshot = dump(process.pid, "--native")
    thread = by_name(snapshot)["other"]
    assert thread["native_whole"] and thread["native_fits"], thread
    assert any("sleep" in (frame["function"] or "") for frame in thread["native_frames"]), thread
