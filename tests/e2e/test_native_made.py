# SPDX-License-Identifier: Apache-2.0
"""--native: code that is in no file, as JITs make it: followed by what its instructions do, named by perf maps, jitdumps and GDB's JIT interface."""

import collections
import contextlib
import os
import subprocess

import pytest

import harness
import native
import peers
import pythons
from test_dump import dump
from test_unknown_lines import with_jit

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 499
ENOUGH = 400
INCOMPLETE = "[native frames incomplete]"
UNKNOWN = "[unknown code]"
IN_C = ("nc_outer", "nc_middle", "nc_inner", "nc_burn")
MADE = ("made outer", "made_framed", "made_frameless")
NUMBA = "numba==0.68.1"
WASMTIME = "wasmtime==50.0.1"


@contextlib.contextmanager
def making(*words):
    python = harness.default_python()
    with harness.target(python, "made_code.py", native.library(python, "native_calls"), "300", *words) as target:
        path = "/tmp/perf-%d.map" % target.pid
        try:
            yield target, path
        finally:
            for made in path, "/tmp/jit-%d.dump" % target.pid:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(made)


def chains(run):
    """(Frames of made code and of the library, without the clock's; marked or not) -> samples."""
    found = collections.Counter()
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        shown = tuple(name for name in names if name.startswith(("made", "nc_", UNKNOWN)) or name == "old")
        found[shown, INCOMPLETE in names] += count
    return found


def is_part(shown, whole):
    """Whether these functions follow each other in a chain."""
    return any(whole[at : at + len(shown)] == shown for at in range(len(whole)))


def check(found, made, spin, is_stale=False):
    """Whole chains are known ones from their start; marked ones a part of these. Most are whole.

    An instruction alone may be met before its mapping is known. is_stale: above a mark there may be something that lay on
    the stack where the code before it had its return address.
    """
    for shown, marked in found:
        if marked and shown[:1] == (UNKNOWN,) and (is_stale or len(shown) == 1):
            shown = shown[1:]
        for whole in made + IN_C, spin:
            if shown == whole[: len(shown)] or (marked and is_part(shown, whole)):
                break
        else:
            raise AssertionError((shown, marked, found))
    assert found[made + IN_C, False] > 50 and found[spin, False] > 10, found
    lost = sum(count for (shown, marked), count in found.items() if marked and shown)
    assert is_stale or lost < found.total() / 2, found


@pytest.mark.parametrize("how", ["named", "dumped", "registered"])
def test_frames_and_names(how):
    with making(how) as (target, _):
        found = chains(harness.record_busy(target.pid, "--native", fewest=ENOUGH, seconds=2, rate=RATE))
    check(found, MADE, ("made_spin",))


@pytest.mark.parametrize("change", ["another user's", "a link"])
def test_names_are_the_users_own(change):
    """Anybody may make a file of that name."""
    with making("named") as (target, path):
        if change == "a link":
            os.rename(path, path + "s")
            os.symlink(path + "s", path)
        else:
            os.chown(path, 65534, 65534)
        try:
            found = chains(harness.record_busy(target.pid, "--native", fewest=ENOUGH, seconds=2, rate=RATE))
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path + "s")
    check(found, (UNKNOWN,), (UNKNOWN,))


def test_code_that_changes_in_its_place():
    """What was found out of the code that was there before leads to no function that was not called."""
    with making("named", "changing") as (target, _):
        run = harness.record_busy(target.pid, "--native", fewest=2 * ENOUGH, seconds=4, rate=RATE)
    check(chains(run), MADE, ("made_spin",), is_stale=True)


def test_code_that_is_replaced():
    """Another function is in the place of one that was unloaded: it has its own name, after a moment."""
    with making("replaced") as (target, _):
        run = harness.record_busy(target.pid, "--native", fewest=2 * ENOUGH, seconds=12, rate=RATE)
    found = collections.Counter()
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        found.update({(caller, name): count for caller in names for name in names if caller in ("first", "second") and name.startswith("made ")})
    for caller, other in ("first", "second"), ("second", "first"):
        assert found[caller, "made " + caller] > found[caller, "made " + other], found


TRAMPOLINES = """
import sys, time
def leaf(): sum(range(3000))
def key(x): leaf(); return -x
def work(): sorted(range(30), key=key)
print("{}", flush=True)
end = time.time() + 300
while time.time() < end: work()
"""
CHAIN = ["<module>", "work", "builtin_sorted", "list_sort", "list_sort_impl", "key", "leaf"]


@pytest.mark.parametrize("python", [item for item in pythons.interpreters() if item.version >= (3, 12) and not item.root], ids=lambda item: item.name)
def test_trampolines_for_perf(python):
    """-X perf has Python call each of its functions by code that it makes: that is stepped over."""
    with harness.started([*python.argv, "-X", "perf", "-c", TRAMPOLINES], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        path = "/tmp/perf-%d.map" % process.pid
        if not os.path.exists(path):
            pytest.skip("this Python has no trampolines")
        run = harness.record_busy(process.pid, "--native", fewest=ENOUGH, seconds=2, rate=RATE)
        (thread,) = dump(process.pid, "--native")["threads"]
        os.unlink(path)
    made = [frame["function"] for frame in thread["native_frames"] if not frame["file"]]
    assert made[:2] == ["py::<module>:<string>", "py::work:<string>"], thread["native_frames"]
    whole = 0
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        if INCOMPLETE in names:
            continue
        whole += count
        assert not any(name.startswith(("py", UNKNOWN)) for name in names), harness.show(stack)
        known = [name for name in names if name in CHAIN]
        assert known == CHAIN[: len(known)] or "list_sort_impl" not in names, harness.show(stack)
    assert whole > 0.5 * harness.total(run.stacks()), run.stats["native"]
    assert run.stats["native"]["not_joined"] == 0, run.stats["native"]


@pytest.mark.parametrize("python", with_jit(), ids=lambda item: item.name)
def test_cpythons_own_jit(python):
    pythons.copy_targets()
    with harness.started(python.command("jitted.py", "jit"), stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        run = harness.record_busy(process.pid, "--native", fewest=2 * ENOUGH, seconds=4, rate=RATE)
    whole = 0
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        if INCOMPLETE not in names:
            whole += count
            assert UNKNOWN not in names, harness.show(stack)
    assert whole > 0.5 * harness.total(run.stacks()), run.stats["native"]
    assert run.stats["native"]["not_joined"] == 0, run.stats["native"]


COMPILED = """
import time
import numba, numpy
@numba.njit
def add_up(values, turns):
    total = 0.0
    for turn in range(turns):
        for i in range(values.shape[0]):
            total += values[i] * 1.5 - total * 0.25
        total += numpy.sort(values * 2.0)[turn]
    return total
def make():
    @numba.njit
    def inner(count):
        total = 0
        for i in range(count): total = (total * 31 + i) ^ (total >> 3)
        return total
    return inner
values = numpy.random.rand(20000)
inner = make()
def work():
    add_up(values, 20)
    inner(3000000)
work()
print("{}", flush=True)
end = time.time() + 300
while time.time() < end: work()
"""
COMPILED_NAMES = ("__main__::add_up", "__main__::make::<locals>::inner")


def test_numba():
    """What LLVM compiled has no frame pointers, and its callers are found; its functions are registered with debuggers."""
    try:
        python = peers.virtual_environment("numba", (NUMBA,)) / "python"
    except peers.Missing as why:
        pytest.skip(str(why))
    with harness.started([python, "-c", COMPILED], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        harness.record(process.pid, "--native", seconds=1, rate=RATE)
        run = harness.record_busy(process.pid, "--native", fewest=ENOUGH, seconds=15, rate=RATE)
        dumps = [next(thread for thread in dump(process.pid, "--native")["threads"] if thread["tid"] == process.pid) for _ in range(10)]
    assert {frame["function"] for one in dumps for frame in one["native_frames"] if not frame["file"]} & set(COMPILED_NAMES)
    called, whole = collections.Counter(), 0
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        compiled = [name for name in names if name in (*COMPILED_NAMES, UNKNOWN)]
        called.update({name: count for name in compiled})
        if not compiled or INCOMPLETE in names:
            continue
        whole += count
        assert names[:2] == ["<module>", "work"] and "Dispatcher_call" in names, harness.show(stack)
    assert whole > 0.9 * called.total() > 20, run.stats["native"]
    assert min(called[name] for name in COMPILED_NAMES) > 9 * called[UNKNOWN], called


WEBASSEMBLY = """
import os, sys, time
import wasmtime
os.chdir("{}")
config = wasmtime.Config()
config.profiler = "jitdump"
store = wasmtime.Store(wasmtime.Engine(config))
module = wasmtime.Module(store.engine, '''(module
    (func $leaf (param $turns i32) (result i32) (local $i i32) (local $sum i32)
        (loop $again
            (local.set $sum (i32.xor (i32.mul (local.get $sum) (i32.const 1103515245)) (local.get $i)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get $i) (local.get $turns))))
        (local.get $sum))
    (func $middle (param $turns i32) (result i32) (i32.add (call $leaf (local.get $turns)) (i32.const 1)))
    (func (export "run") (param $turns i32) (result i32) (i32.add (call $middle (local.get $turns)) (i32.const 1))))''')
run = wasmtime.Instance(store, module, []).exports(store)["run"]
def work(): run(store, 3000000)
work()
print("{}", flush=True)
end = time.time() + 300
while time.time() < end: work()
"""


def test_wasmtime(tmp_path):
    """Cranelift's code has frame pointers; wasmtime writes a jitdump if it is told to."""
    try:
        python = peers.virtual_environment("wasmtime", (WASMTIME,)) / "python"
    except peers.Missing as why:
        pytest.skip(str(why))
    with harness.started([python, "-c", WEBASSEMBLY.replace("{}", str(tmp_path), 1)], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        run = harness.record_busy(process.pid, "--native", fewest=ENOUGH, seconds=5, rate=RATE)
    found = collections.Counter()
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        if "leaf" in names or UNKNOWN in names:
            assert names[:2] == ["<module>", "work"], harness.show(stack)
            found[INCOMPLETE not in names and names[-2:] == ["middle", "leaf"]] += count
    assert found[True] > 0.9 * found.total() > 20, found
