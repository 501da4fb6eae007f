# SPDX-License-Identifier: Apache-2.0
"""The kernel's walk and user space's find the same: frames, code objects, signatures, names, lines."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

import harness
import pythons
import pytest
from inline import Source, check_sums, dump_map, names, recording, running

# Walks one thread by user space's build of the walk, and names what it finds.
WALKER = os.path.join(os.path.dirname(harness.PYBPF), "walker")

# The main thread stays in one place: only the position in leaf moves.
PLACE = Source("""
try: from thread import get_ident
except ImportError: from threading import get_ident
class Klass(object):
    def method(self, n):
        if n: return self.method(n - 1)  #: recursion
        leaf()  #: method
def leaf():
    while True: pass
def generator():
    Klass().method(20)  #: generator
    yield 1
def middle():
    for _ in generator(): pass  #: middle
def root():
    return [(lambda: middle())() for _ in (1,)]
def other():
    while True: time.sleep(0.01)
for _ in range(3):
    thread = threading.Thread(target=other)
    thread.daemon = True
    thread.start()
ready(thread=get_ident() & 0xffffffffffffffff)
root()
""")

SLEEPERS = Source("""
def first(): time.sleep(100)
def second(): time.sleep(100)
def third(): time.sleep(100)
threads = [threading.Thread(target=f, name=f.__name__) for f in (first, second, third)]
for thread in threads:
    thread.daemon = True
    thread.start()
ready(sleepers={thread.name: thread.ident for thread in threads})
time.sleep(100)
""")


def walk(target, thread=None):
    done = subprocess.run(
        [WALKER, str(target.pid), str(thread or target.says["thread"])],
        capture_output=True,
        timeout=harness.PATIENCE,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode())


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        harness.wait_for(lambda: harness.state(pid) == "T")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def all_interpreters():
    return [pytest.param(item, id=item.name) for item in pythons.interpreters()]


def kernel_codes(recorder):
    """(address, signature) of each code object that the kernel side has met."""
    number = recorder.map_id("codes")
    assert number, "bpftool does not show the map of code objects"
    found = set()
    for entry in dump_map("dump", number):
        key = entry["formatted"]["key"]
        found.add((int(key["code"]), int(key["sig"])))
    return found


def in_leaf(walked):
    return walked["frames"][0]["name"].endswith("leaf")


@pytest.mark.parametrize("interpreter", all_interpreters())
def test_same_frames(interpreter):
    with running(interpreter, PLACE) as target:
        harness.wait_for(lambda: in_leaf(walk(target)))
        with recording(target.pid, "--full-filenames") as recorder:
            with stopped(target.pid):
                walked = walk(target)
            codes = kernel_codes_after_some_samples(recorder)
            run = recorder.finish()
    assert walked["flags"] == 0
    assert walked["depth"] == len(walked["frames"]) >= 25
    frames = walked["frames"]
    # The two ways in which user space reads a code object agree on its signature.
    for frame in frames:
        assert frame["sig"] == frame["own_sig"], frame
    # What the program knows of itself.
    lines = {name: PLACE.line(name) for name in ("method", "generator", "middle", "recursion")}
    own = [frame["name"].rpartition(".")[2] for frame in frames]
    assert own[:22] == ["leaf"] + ["method"] * 21
    assert [frame["line"] for frame in frames[1:22]] == [lines["method"]] + [lines["recursion"]] * 20
    assert own[22:24] == ["generator", "middle"]
    assert [frame["line"] for frame in frames[22:24]] == [lines["generator"], lines["middle"]]
    assert own[-1] == "<module>"
    # The kernel's stacks: the same but for where in leaf the thread was.
    wanted = [(frame["name"], frame["file"], frame["line"]) for frame in reversed(frames[1:])]
    stacks = [stack for stack, _ in check_sums(run) if names(stack)[-1] == "leaf"]
    mains = [stack for stack in stacks if len(stack) == len(frames)]
    assert mains, "no stack of %d frames: %s" % (len(frames), [len(stack) for stack in stacks])
    for stack in mains:
        assert [(frame.name, frame.file, frame.line) for frame in stack[:-1]] == wanted
        assert stack[-1].file == frames[0]["file"]
    assert not any(run.stats["incomplete"].values()), run.stats
    if codes is not None:
        missing = {(frame["code"], frame["sig"]) for frame in frames} - codes
        assert not missing, "the kernel does not have %s" % missing


def kernel_codes_after_some_samples(recorder):
    """None without bpftool, which reads another program's maps."""
    if not shutil.which("bpftool"):
        time.sleep(0.5)
        return None
    harness.wait_for(lambda: len(kernel_codes(recorder)) >= 6)
    return kernel_codes(recorder)


@pytest.mark.skipif(not shutil.which("bpftool"), reason="bpftool is missing")
def test_maps_can_be_read():
    """So that the comparison of signatures cannot fall silent unnoticed."""
    with running(harness.default_python(), PLACE) as target, recording(target.pid) as recorder:
        assert kernel_codes_after_some_samples(recorder)


def test_each_thread_its_own():
    """Threads asleep show where they sleep; a thread that Python does not have is not found."""
    item = harness.default_python()
    with running(item, SLEEPERS) as target:
        for name, thread in target.says["sleepers"].items():
            harness.wait_for(lambda: name in [f["name"] for f in walk(target, thread)["frames"]])
        done = subprocess.run([WALKER, str(target.pid), "0x1000"], capture_output=True)
        assert done.returncode == 1
