# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --diff-after and --watch: which threads have not run, stood where they were, moved, came and ended."""

import json
import re
import signal
import subprocess
import sys
import time

import pytest

import dump_schema
import harness
import pythons
from harness import pybpf

EVERY = pythons.of_each_version(pythons.interpreters())
every_version = pytest.mark.parametrize("python", EVERY, ids=lambda item: item.name)
OPTIONS = ([], ["--freeze"])

# Threads whose names say what they do between two looks.
CHANGES = """
import sys, threading, time
lock = threading.Lock()
lock.acquire()
def none():
    lock.acquire()
def same_place():
    while True:
        time.sleep(0.01)
def first():
    sys.stdin.readline()
def second():
    sys.stdin.readline()
def moved():
    first()
    for work in added, ended:
        start(work)
    second()
def added():
    lock.acquire()
def ended():
    pass
def gone():
    first_done.wait()
first_done = threading.Event()
def start(work):
    thread = threading.Thread(target=work, name=work.__name__)
    thread.daemon = True
    thread.start()
    return thread
for work in none, same_place, moved:
    start(work)
leaves = start(gone)
time.sleep(0.5)
print("[]")
sys.stdout.flush()
while not any(thread.name == "added" for thread in threading.enumerate()):
    time.sleep(0.01)
first_done.set()
leaves.join()
time.sleep(1000)
"""


def changing(python):
    return harness.started([*python.argv, "-c", CHANGES], stdout=subprocess.PIPE, stdin=subprocess.PIPE)


@every_version
@pytest.mark.parametrize("options", OPTIONS, ids=["", "frozen"])
def test_each_thread_is_told(python, options):
    with changing(python) as process:
        harness.read_ready_line(process)
        argv = [harness.PYBPF, "dump", "-p", str(process.pid), "--watch", "2", "--json", *options]
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as run:
            run.stdout.readline()
            process.stdin.write(b"\n")
            process.stdin.flush()
            line = run.stdout.readline()
            run.terminate()
    dump_schema.check(line)
    snapshot = json.loads(line)
    assert snapshot["ended"] == 1 and 2 <= snapshot["since_s"] < 20
    changes = {thread["name"]: thread["change"] for thread in snapshot["threads"] if thread["name"] != "MainThread"}
    same_place = changes.pop("same_place")  # it has left its sleep for a moment every 10 ms
    assert same_place in ("same place", "moved")
    assert changes == {"none": "none", "moved": "moved", "added": "new"}


def test_text():
    with changing(harness.default_python()) as process:
        harness.read_ready_line(process)
        run = pybpf("dump", "-p", process.pid, "--diff-after", "300ms")
    assert run.code == 0 and not run.err
    assert re.search(r"^Since the snapshot [\d.]+ s ago: 3 not run, \d in the same place, \d moved, 0 new, 0 ended$", run.out, re.M), run.out
    assert re.search(r'^Thread \d+ "none": \[lock\], daemon, has not run for [\d.]+ s$', run.out, re.M), run.out


def test_watching_goes_on_until_it_is_interrupted():
    with changing(harness.default_python()) as process:
        harness.read_ready_line(process)
        argv = [harness.PYBPF, "dump", "-p", str(process.pid), "--watch", "0.1", "--json"]
        begin = time.monotonic()
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as run:
            snapshots = [json.loads(run.stdout.readline()) for _ in range(5)]
            run.send_signal(signal.SIGINT)
            rest = run.stdout.read()
            dump_schema.check(rest)
            rest = [json.loads(line) for line in rest.splitlines()]
        took_s = time.monotonic() - begin
        assert run.returncode == -signal.SIGINT
    assert snapshots[0]["since_s"] is None and {thread["change"] for thread in snapshots[0]["threads"]} == {None}
    for snapshot in snapshots[1:] + rest:
        assert snapshot["since_s"] >= 0.1
        assert {thread["change"] for thread in snapshot["threads"] if thread["name"] == "none"} == {"none"}
    assert sum(snapshot["since_s"] for snapshot in snapshots[1:] + rest) < took_s


def test_watching_ends_with_the_process():
    with harness.started([sys.executable, "-c", "print('[]', flush=True); import time; time.sleep(1)"], stdout=subprocess.PIPE) as one:
        harness.read_ready_line(one)
        run = pybpf("dump", "-p", one.pid, "--watch", "0.2", "--json")
    assert len(run.out.splitlines()) >= 2 and run.code == 1
    assert str(one.pid) in harness.one_sentence(run.err)


@pytest.mark.parametrize(
    "args, words",
    [
        (["--watch", "1", "--diff-after", "1"], ["exclude each other", "goes on", "looks twice"]),
        (["--watch", "0"], ["--watch 0", "10ms"]),
        (["--diff-after", "abc"], ["--diff-after abc", "500ms"]),
    ],
)
def test_bad_input(args, words):
    run = pybpf("dump", "-p", 1, *args)
    assert run.code == 2 and not run.out
    assert all(word in harness.one_sentence(run.err) for word in words), run.err
