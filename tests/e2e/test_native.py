# SPDX-License-Identifier: Apache-2.0
"""--native: functions of C between Python's, of a program whose chains are known; and what it says where they are not."""

import collections
import dataclasses
import json
import mmap
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
import native
import pythons
import test_events
import test_uprobes
from harness import pybpf, total

pytestmark = pytest.mark.usefixtures("profiler")

INTERPRETERS = pythons.interpreters()
every_python = pytest.mark.parametrize("python", INTERPRETERS, ids=lambda item: item.name)
RATE = 499
INCOMPLETE = "[native frames incomplete]"
# Until tables are there: mappings are read, and each file.
BEGIN_S = 0.5
ENOUGH = 400  # samples of some 12 chains
NO_ROW = 0.005  # in musl, of which nothing tells but its instructions


def calls(python, *options, seconds=2):
    """(Run, chains) of native_calls.py."""
    why = native.why_not(python)
    if why:
        pytest.skip("%s: %s" % (python.name, why))
    with harness.target(python, "native_calls.py", native.library(python, "native_calls"), "300") as target:
        return harness.record_busy(target.pid, *options, fewest=ENOUGH, seconds=seconds, rate=RATE), target.says["chains"]


def own(stack, chains):
    """From the function that is called by main() on: Python's functions and those of the library."""
    names = [frame.name.rpartition(".")[2] for frame in stack if "native_calls" in frame.file]
    names = names[names.index("main") + 1 :] if "main" in names else []
    known = {name for chain in chains.values() for name in chain} | set(chains)
    return [name for name in names if name in known]


def is_prefix(part, whole):
    return whole[: len(part)] == part


def check_chains(run, chains):
    """Each whole stack is a part of a chain from its start on. Returns ({(chain, it is to its end): samples}, whole ones, all)."""
    met, whole, samples = collections.Counter(), 0, 0
    for stack, count in run.stacks():
        samples += count
        if any(frame.text == INCOMPLETE for frame in stack):
            continue
        whole += count
        names = own(stack, chains)
        if names:
            assert stack[0].name in ("<module>", "[CPython]"), harness.show(stack)  # without names it is one frame
            assert names[0] in chains, harness.show(stack)
            assert is_prefix(names[1:], chains[names[0]]), harness.show(stack)
            met[names[0], len(names) == 1 + len(chains[names[0]])] += count
    return met, whole, samples


@every_python
def test_chains_that_are_known(python):
    """Each chain is met to its end."""
    run, chains = calls(python, "--native")
    met, whole, samples = check_chains(run, chains)
    ends = run.stats["native"]
    assert whole >= samples - RATE * BEGIN_S, (whole, samples, ends)
    for name in chains:
        assert met[name, True] > 2 * met[name, False], (name, met)  # samples of a chain are few
    assert any(["nc_vfork", "vfork"] == [frame.name for frame in stack[-2:]] for stack, _ in run.stacks()), run.out
    assert ends["not_joined"] == 0 and ends["joined"] > ends["joined_plus_one"], ends
    # A thread that ends has no memory any more; what resolves a library's function at its first call keeps its frame by rbx.
    assert ends["stuck"] == 0 and ends["no_row"] <= NO_ROW * samples and ends["fault"] + ends["register"] <= 0.01 * samples, ends


@every_python
def test_pythons_frames_are_those_without_it(python):
    run, chains = calls(python, "--native", seconds=1)
    for stack, _ in run.stacks():
        names = [frame.name for frame in stack if frame.file.endswith(".py")]
        assert names[:2] == ["<module>", "main"] or names == ["<module>"], harness.show(stack)
        assert len(names) < 3 or names[2] in chains or names[2] == "threads", harness.show(stack)
    without, _ = calls(python, seconds=1)
    assert not any(frame.name.startswith("nc_") for stack, _ in without.stacks() for frame in stack)


TRACED = """
import sys, time
def work(): return [1]
def watcher(frame, event, arg):
    for i in range(100): pass
    return watcher
def go():
    while time.time() < end: work()
end = time.time() + 300
sys.stdout.write("{}\\n")
sys.stdout.flush()
sys.%s(watcher)
go()
"""


@pytest.mark.parametrize("how", ["settrace", "setprofile"])
@pytest.mark.parametrize("python", [item for item in INTERPRETERS if item.kind != "stripped"], ids=lambda item: item.name)
def test_functions_that_trace(python, how):
    """What the interpreter does to call them is its own."""
    argv = [*python.argv, "-u", "-c", TRACED % how]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.record(process.pid, "--native").stats["native"]["whole"] > 0)
        run = harness.record_busy(process.pid, "--native", rate=RATE)
    callers = collections.Counter()
    for stack, count in run.stacks():
        names = [frame.name for frame in stack]
        if "watcher" in names and INCOMPLETE not in names:
            callers[names[names.index("watcher") - 1]] += count
    nameless = {"[CPython]"} if "sid-" in python.name else set()
    assert callers and set(callers) <= {"go", "work"} | nameless, callers


def test_threads_without_python():
    run, _ = calls(harness.default_python(), "--native")
    chains = collections.Counter()
    for stack, count in run.rows():
        chains[tuple(frame.name for frame in stack if frame.name.startswith("nc_"))] += count
    whole = chains["nc_outer", "nc_middle", "nc_inner", "nc_burn"]
    assert whole > 20 and whole > 0.8 * sum(chains.values()), chains


def test_all_shows_the_interpreter():
    python = harness.default_python()
    run, _ = calls(python, "--native=all", seconds=2)
    loop = "_PyEval_EvalFrameDefault"
    shown = sum(count for stack, count in run.stacks() if any(frame.name == loop for frame in stack))
    assert shown > 0.5 * sum(count for _, count in run.stacks())
    run, _ = calls(python, "--native", seconds=1)
    assert not any(frame.name == loop for stack, _ in run.stacks() for frame in stack)


def test_waits_have_native_frames():
    """The function of C that waits is between Python's function and what it waits for."""
    script = "import ctypes, time\nctypes.CDLL(None).usleep.argtypes = [ctypes.c_uint]\n" \
             "for _ in range(20): ctypes.CDLL(None).usleep(100000)"
    argv = [harness.default_python().argv[0], "-c", script]
    run = pybpf("--mode=wall", "--native", "-q", "--", *argv)
    assert run.code == 0, run.err
    slept = collections.Counter()
    for stack, us in run.stacks():
        if stack[-1].text == "[sleep]":
            slept["usleep" in [frame.name for frame in stack]] += us
    assert slept[True] > 1.2e6, slept


def test_waits_for_the_gil_have_native_frames():
    """The function of C that gives the GIL up and wants it back is between Python's function and the wait."""
    script = (
        "import threading, time, zlib\nDATA = bytes(100000)\nend = time.time() + 1.5\n"
        "def spins():\n    while time.time() < end: pass\n"
        "def packs():\n    while time.time() < end: zlib.compress(DATA)\n"
        "thread = threading.Thread(target=spins)\nthread.start()\npacks()\nthread.join()"
    )
    run = pybpf("--mode=gil", "--native", "-q", "--", harness.default_python().argv[0], "-c", script)
    assert run.code == 0, run.err
    waited = collections.Counter()
    for stack, us in run.stacks():
        names = [frame.name for frame in stack]
        if "packs" in names and INCOMPLETE not in names and stack[-1].text.startswith("[GIL: held"):
            waited[any(frame.name not in ("packs", "<module>") and frame.file for frame in stack[:-1])] += us
    assert waited[True] > 0.95 * sum(waited.values()) > 0, waited


def test_page_faults_have_native_frames():
    """The function that touches the page is the innermost one, and all pages are counted."""
    pages = 256
    script = (
        "import ctypes, mmap, os\nlibc = ctypes.CDLL(None)\nSIZE = %d\n"
        "libc.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)\n"
        "def fills():\n    memory = mmap.mmap(-1, SIZE)\n    memory.madvise(mmap.MADV_NOHUGEPAGE)\n"
        "    libc.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 1, SIZE)\n"
        "times = 0\nwhile sum(os.times()[:2]) < 1:\n    fills()\n    times += 1\nprint(times)" % (pages * mmap.PAGESIZE)
    )
    command = [harness.default_python().argv[0], "-c", script]
    run = pybpf("-e", "page-faults", "--native", "-q", "-o", "/dev/stderr", "--", *command)
    assert run.code == 0, run.err
    of = [(stack, count) for stack, count in harness.parse(run.err) if any(frame.name == "fills" for frame in stack)]
    whole = [(stack, count) for stack, count in of if not any(frame.text == INCOMPLETE for frame in stack)]
    assert total(of) >= pages * int(run.out), of
    assert total(whole) > 0.2 * total(of), of
    touched = total([(stack, count) for stack, count in whole if "memset" in stack[-1].name or "libc" in stack[-1].file])
    assert touched > 0.95 * total(whole), whole


ASKS = """
import ctypes, os, sys
library, function = ctypes.CDLL(sys.argv[1]), ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p)
def asks():
    for _ in range(100): library.nc_call_back(function)
calls = 0
while sum(os.times()[:2]) < 1:
    asks()
    calls += 100
print(calls)
"""


@pytest.mark.parametrize("kind", ["tracepoint", "uprobe"])
def test_calls_have_native_frames(kind, tracefs):
    """The function that is called is the innermost one, below its caller, and all calls are counted."""
    python = harness.default_python()
    event = test_events.GETPPID if kind == "tracepoint" else "uprobe:%s:getppid" % test_uprobes.libc_of(python)
    command = [*python.argv, "-c", ASKS, native.library(python, "native_calls")]
    run = pybpf("-e", event, "--native", "-q", "-o", "/dev/stderr", "--", *command)
    assert run.code == 0, run.err
    of = [(stack, count) for stack, count in harness.parse(run.err) if any(frame.name == "asks" for frame in stack)]
    whole = [(stack, count) for stack, count in of if not any(frame.text == INCOMPLETE for frame in stack)]
    assert total(of) == int(run.out) > 0, run.err
    assert total(whole) > 0.2 * total(of), of  # tables are made meanwhile
    assert all([frame.name for frame in stack[-2:]] == ["nc_call_back", "getppid"] for stack, _ in whole), run.err


def test_a_library_that_is_loaded_later(tmp_path):
    """Its table is made when it is met."""
    python = harness.default_python()
    script = tmp_path / "late.py"
    script.write_text(
        "import ctypes, sys, time\nend = time.time() + 1\nwhile time.time() < end: sum(range(1000))\n"
        "late = ctypes.CDLL(sys.argv[1])\nfor _ in range(30): late.nc_outer(50)\n"
    )
    run = pybpf("--native", "-q", "-F", RATE, "--", python.argv[0], script, native.library(python, "native_calls"))
    found = collections.Counter()
    for stack, count in run.stacks():
        names = [frame.name for frame in stack]
        if "nc_burn" in names or INCOMPLETE in names:
            called = names[names.index("nc_burn") - 3 :] if "nc_burn" in names else []  # which calls the clock
            found[called[:4] == ["nc_outer", "nc_middle", "nc_inner", "nc_burn"] and INCOMPLETE not in names] += count
    assert found[True] > 0.7 * sum(found.values()) and found[True] > 100, found


def test_two_programs_at_the_same_addresses():
    """What is known of an instruction of one is nothing about the other's."""
    pair = [pythons.one((3, 11)), pythons.one((3, 12))]
    if not all(pair):
        pytest.skip("it takes Python 3.11 and 3.12")
    arguments = ["native_calls.py", native.library(pair[0], "native_calls"), "300"]
    fixed = [dataclasses.replace(python, argv=("setarch", "-R", *python.argv)) for python in pair]
    with harness.target(fixed[0], *arguments) as one, harness.target(fixed[1], *arguments) as other:
        run = harness.record(one.pid, "-p", other.pid, "--native=all", seconds=2, rate=RATE)
    met = collections.Counter()
    for stack, count in run.stacks():
        version = "3.11" if "(%d)" % one.pid in stack[0].text else "3.12"
        files = {frame.file for frame in stack[1:] if frame.file.startswith("libpython")}
        assert files <= {"libpython%s.so.1.0" % version}, harness.show(stack)
        met[version] += count if files else 0
    assert min(met["3.11"], met["3.12"]) > 50, met


def test_top():
    """Functions of C have rows, and Python's have the time of what they call."""
    python = harness.default_python()
    with harness.target(python, "native_calls.py", native.library(python, "native_calls"), "300") as target:
        run = pybpf("top", "-p", target.pid, "-d", 3, "-F", RATE, "--native", "--output=jsonl", "--rows", 200)
    assert run.code == 0, run.err
    intervals = [{row["name"]: row for row in json.loads(line)["functions"]} for line in run.out.splitlines()]
    # The last one is what is left of the run, which may be no sample.
    rows = [rows for rows in intervals if rows.get("main", {"total": 0})["total"] >= 10][-1]
    assert rows["nc_burn"]["file"] == "native_calls.so", rows["nc_burn"]
    assert rows["nc_burn"]["kind"] == "native" and rows["main"]["kind"] == "python"
    # Before tables are there, which takes long beside a load, functions of C have no rows.
    # It may have a few samples then, of which some are outside of nc_burn().
    assert rows["nc_burn"]["total"] + 3 > 0.9 * rows["main"]["total"] > 0, (rows["nc_burn"], rows["main"])
    assert rows["nc_burn"]["self"] > 0 and not rows["main"]["self"]


DIGESTS = """
import hashlib, sys, time
DATA = b"x" * 2000000
def digest(until):
    while time.time() < until: hashlib.sha512(DATA).digest()
print("{}", flush=True)
digest(time.time() + 300)
"""


def test_assembly_of_openssl():
    """The caller's stack pointer is kept on the stack, or in registers that are known of the innermost function only."""
    argv = [harness.default_python().argv[0], "-c", DIGESTS]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        run = harness.record_busy(process.pid, "--native", fewest=ENOUGH, seconds=2, rate=RATE)
    if not any("libcrypto" in frame.file for stack, _ in run.stacks() for frame in stack):
        pytest.skip("this Python's hashlib is not OpenSSL's")
    whole = sum(count for stack, count in run.stacks() if all(frame.text != INCOMPLETE for frame in stack))
    assert whole > 0.9 * total(run.stacks()) and run.stats["native"]["expression"] == 0, run.stats["native"]
    named = sum(count for stack, count in run.stacks() if "SHA512_Update" in [frame.name for frame in stack])
    assert named > 0.8 * whole, run.out


SWAPS = """
import _ctypes, ctypes, sys, time
end = time.time() + 3
while time.time() < end:
    for path, name in (sys.argv[1], "nc_outer"), (sys.argv[2], "xy_outer"):
        library, until = ctypes.CDLL(path), time.time() + 0.3
        while time.time() < until:
            getattr(library, name)(5)
        _ctypes.dlclose(library._handle)
"""


SPAWNS = """
import subprocess, sys
sys.stdout.write("{}\\n")
sys.stdout.flush()
def spawns(): subprocess.call(["/bin/true"])
while True: spawns()
"""


def test_vfork():
    """Its return address is in a register, as its stack is its child's, too. subprocess calls it from 3.10 on."""
    python = harness.default_python()
    with harness.started([*python.argv, "-S", "-c", SPAWNS], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        run = harness.record_busy(process.pid, "--native", fewest=60, seconds=2, rate=RATE)
    made = collections.Counter()
    for stack, count in run.stacks():
        if "vfork" in stack[-1].name:
            made[INCOMPLETE in [frame.text for frame in stack]] += count
    assert made[False] > 5 and made[True] <= 0.2 * made.total(), made


def test_a_library_in_the_place_of_another_one(tmp_path):
    """As large, and with other functions at the same addresses, some of them longer: none has the other one's name."""
    python, source = harness.default_python(), harness.TOP / "tests" / "targets" / "native_calls.c"
    text = source.read_text(encoding="utf-8").replace("nc_", "xy_")
    (tmp_path / "other.c").write_text(text.replace("i < 2000", "i < 2000 && now.tv_nsec >= 0"), encoding="utf-8")
    words = ["gcc", "-O2", "-w", "-D_GNU_SOURCE", "-shared", "-fPIC", "-pthread", "-o", tmp_path / "other.so", tmp_path / "other.c"]
    subprocess.run(words, check=True)
    (tmp_path / "swaps.py").write_text(SWAPS)
    run = pybpf("--native", "-q", "-F", RATE, "--", python.argv[0], tmp_path / "swaps.py",
                native.library(python, "native_calls"), tmp_path / "other.so")
    assert run.code == 0, run.err
    chains = collections.Counter()
    for stack, count in run.stacks():
        chains[tuple(frame.name for frame in stack if frame.name[:3] in ("nc_", "xy_"))] += count
    whole = [tuple(mark + name for name in ("outer", "middle", "inner", "burn")) for mark in ("nc_", "xy_")]
    others = {chain: count for chain, count in chains.items() if chain and not any(is_prefix(chain, one) for one in whole)}
    assert min(chains[one] for one in whole) > 30, chains
    assert sum(others.values()) < 0.02 * sum(chains.values()), chains


MANY_MAPPINGS = """
import mmap, sys
maps, kinds = [], (mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_EXEC)
for i in range(8000):
    maps.append(mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, kinds[i % 2]))
print("[]"); sys.stdout.flush()
while True:
    sorted(range(1000), key=lambda x: -x)
"""


def test_code_in_no_file_leaves_room_for_libraries():
    """A list of mappings has an end. Those that JITs have made are told apart by the thousand."""
    argv = [harness.default_python().argv[0], "-c", MANY_MAPPINGS]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        run = harness.record_busy(process.pid, "--native", fewest=ENOUGH, seconds=1, rate=RATE)
    assert run.stats["native"]["whole"] > 0.8 * total(run.stacks()), run.stats["native"]


TOO_DEEP = """
import ctypes, sys, time
library = ctypes.CDLL(sys.argv[1])
def inner(): library.nc_deep(%d, 100)
back = ctypes.CFUNCTYPE(None)(inner)
def outer(): library.nc_call_back(back)
end = time.time() + 300
print("{}", flush=True)
while time.time() < end: outer()
"""
FRAMES_MAX = 1024  # of C, which are followed


def test_more_frames_than_are_followed():
    """The innermost ones are shown, above the mark; Python's are all there."""
    python = harness.default_python()
    argv = [*python.argv, "-c", TOO_DEEP % (FRAMES_MAX + 76), native.library(python, "native_calls")]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        run = harness.record_busy(process.pid, "--native", fewest=200, seconds=1, rate=RATE)
    ends = run.stats["native"]
    assert ends["limit"] > max(50, total(run.stacks()) - RATE * BEGIN_S) and ends["whole"] < 0.1 * ends["limit"], ends
    met = 0
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        assert is_prefix([frame.name for frame in stack if frame.file == "<string>"], ["<module>", "outer", "inner"]), names
        deep = names.count("nc_deep")
        if deep:
            assert names[: names.index("nc_deep")] == ["<module>", "outer", "inner", INCOMPLETE], harness.show(stack)
            assert deep < FRAMES_MAX, deep
        met += count * (deep >= FRAMES_MAX - 3)  # beside nc_burn() and what that calls
    assert met > 0.9 * ends["limit"], (met, ends)


def test_no_room():
    """Tables that do not fit are told, and Python's stacks are as they were."""
    run, _ = calls(harness.default_python(), "--native", "--native-memory", "1", seconds=1)
    assert run.stats["native"]["bytes"] <= 1 << 20
    assert run.stats["samples"]["python"] > 0


@pytest.mark.parametrize("left", ["all but its start-up code", "none"])
def test_code_without_information(left, tmp_path):
    """Its instructions tell the callers: at once where a file has no other information, else once a stack has ended there."""
    python, library = harness.default_python(), tmp_path / "native_calls.so"
    source = Path(__file__).parents[1] / "targets" / "native_calls.c"
    build = ["cc", "-O2", "-fno-asynchronous-unwind-tables", "-fPIC", "-shared", "-pthread", "-o", library, source]
    subprocess.run(build, check=True)
    if left == "none":
        subprocess.run(["objcopy", "--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr", library], check=True)
    with harness.target(python, "native_calls.py", library, "300") as target:
        run = harness.record_busy(target.pid, "--native", fewest=ENOUGH, seconds=2, rate=RATE)
        chains = target.says["chains"]
    met, whole, samples = check_chains(run, chains)
    # A function that aligns its stack keeps the frame by another register than the frame pointer.
    assert {name for name in chains if not met[name, True]} <= {"aligned"}, met
    assert whole >= 0.75 * samples, (whole, samples, run.stats["native"])


@pytest.mark.parametrize("seed", range(3))
def test_a_library_whose_information_is_damaged(seed, tmp_path):
    """It costs native frames, where instructions do not tell them as well, and neither a stack of Python's nor the end of the run."""
    python = harness.default_python()
    made = Path(native.library(python, "native_calls")).read_bytes()
    words = ["objcopy", "-O", "binary", "--only-section=.eh_frame", native.library(python, "native_calls"), tmp_path / "section"]
    subprocess.run(words, check=True)
    section = (tmp_path / "section").read_bytes()
    damaged, chance = bytearray(section), random.Random(seed)
    for _ in range(30):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    if not seed:
        damaged[:4] = b"\xff\xff\xff\x7f"  # a length of 2 GB
    (tmp_path / "native_calls.so").write_bytes(made.replace(section, bytes(damaged)))
    with harness.target(python, "native_calls.py", tmp_path / "native_calls.so", "300") as target:
        run = harness.record(target.pid, "--native", seconds=1, rate=RATE)
        chains = target.says["chains"]
    ends = run.stats["native"]
    assert sum(ends[end] for end in ("no_row", "stuck", "fault", "expression")) > 0, ends
    for stack, _ in run.stacks():
        names = [frame.name for frame in stack if frame.file.endswith(".py")]
        assert len(names) < 3 or names[2] in chains or names[2] == "threads", harness.show(stack)


def used_maps(pid):
    """The names of the maps that instructions of a process's programs name, as bpftool cuts them, and of all its maps."""
    words = list(harness.fdinfo(pid))

    def bpftool(*arguments):
        return json.loads(subprocess.run(["bpftool", "-j", *arguments], capture_output=True, check=True).stdout)

    names = {number: bpftool("map", "show", "id", number).get("name") for number in {one["map_id"] for one in words if "map_id" in one}}
    used = set()
    for number in {one["prog_id"] for one in words if "prog_id" in one}:
        for instruction in bpftool("prog", "dump", "xlated", "id", number):
            used.update(re.findall(r"map\[id:(\d+)\]", instruction.get("disasm", "")))
    return {names.get(number) for number in used}, set(names.values())


@pytest.mark.skipif(not shutil.which("bpftool"), reason="bpftool is not installed")
@pytest.mark.parametrize("options", [[], ["--native"]], ids=["", "native"])
def test_without_it_the_programs_have_nothing_of_it(options):
    """No instruction that the verifier has left uses a map of its tables."""
    python = harness.default_python()
    with harness.target(python, "spin.py") as target:
        with harness.started([harness.PYBPF, *options, "-p", str(target.pid), "-o", os.devnull], stderr=subprocess.PIPE) as run:
            harness.wait_for(lambda: harness.program_runs(run.pid)[1])
            used, known = used_maps(run.pid)
    ours = {name for name in known if name and name.startswith("native")}
    assert len(ours) == 3 and len(used) > 5, (used, known)
    assert used & ours == (ours if options else set()), used


def test_kernels_that_cannot():
    run = pybpf("--native", "--without-kernel-feature=bpf_loop", "-p", os.getpid(), "-d", 0.3)
    assert run.code != 0 and run.out == ""
    assert "--native needs Linux 5.17" in harness.one_sentence(run.err)


@pytest.mark.parametrize("words, said", [(["--native=some"], "it takes all"), (["--native-memory", "0"], "0")])
def test_bad_input(words, said):
    run = pybpf(*words, "-p", os.getpid())
    assert run.code == 2 and said in harness.one_sentence(run.err)


def test_as_py_spy_has_it():
    run, _ = calls(harness.default_python(), "-n", seconds=1)
    assert any(frame.name == "nc_burn" for stack, _ in run.stacks() for frame in stack)


def test_formats(tmp_path):
    """Readers can tell a function of C from Python's."""
    python = harness.default_python()
    with harness.target(python, "native_calls.py", native.library(python, "native_calls"), "300") as target:
        for name in ("p.pybpf", "p.json", "p.html", "p.svg"):
            run = pybpf("--native", "-p", target.pid, "-d", 1, "-F", RATE, "-o", tmp_path / name)
            assert run.code == 0, run.err
    frames = json.loads((tmp_path / "p.json").read_text(encoding="utf-8"))["frames"]
    assert ("nc_burn", "native", "native_calls.so") in {(frame["name"], frame["kind"], frame["file"]) for frame in frames}
    folded = subprocess.run([harness.PYBPF, "report", tmp_path / "p.pybpf", "-f", "folded"], capture_output=True, text=True)
    assert "nc_burn (native_calls.so)" in folded.stdout, folded.stderr
    words = [harness.PYBPF, "report", tmp_path / "p.pybpf", "-f", "folded", "--no-native"]
    python = subprocess.run(words, capture_output=True, text=True).stdout
    assert "native" not in python.replace("native_calls.py", ""), python
    assert total(harness.parse_all(python)) == total(harness.parse_all(folded.stdout)) > 0
