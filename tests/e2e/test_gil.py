# SPDX-License-Identifier: Apache-2.0
"""--mode=gil: who waits for the GIL, who holds it, and who sleeps with it."""

import collections
import functools
import json
import os
import re

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

US = 1e6
ASLEEP_S = 0.02  # ASLEEP_US of tests/targets/gilwaits.py


def one_of_each_version():
    found = [pythons.one(version=version) for version in pythons.SUPPORTED]
    return [item for item in found if item]


def of_versions(*versions):
    return [item for item in one_of_each_version() if item.version in versions]


def ids(item):
    return item.name


def functions(stack):
    return {frame.name for frame in stack}


@functools.lru_cache(maxsize=None)
def run_waits(python, mode, waiting, tmp):
    """What tests/targets/gilwaits.py says of itself, the stacks, the statistics and the account."""
    path, stats = os.path.join(tmp, "gil.folded"), os.path.join(tmp, "gil.json")
    command = python.command("gilwaits.py", "1", str(waiting))
    run = pybpf("--mode=" + mode, "-F", 999, "--no-children", "-o", path, "--json-stats", stats, "--", *command)
    assert run.code == 0, run.err
    with open(path, encoding="utf-8") as folded, open(stats, encoding="utf-8") as numbers:
        return json.loads(run.out), harness.parse(folded.read()), json.load(numbers), run.err


@pytest.mark.parametrize("python", one_of_each_version(), ids=ids)
def test_a_sleep_with_the_gil_is_counted_and_measured(python, tmp_path_factory):
    says, stacks, stats, err = run_waits(python, "gil", 1, str(tmp_path_factory.getbasetemp()))
    sleeps, gil = len(says["asleep"]), stats["gil"]
    seconds = sum(us for stack, us in stacks if stack[-1].name == "[asleep with the GIL: sleep]" and stack[-2].name == "asleep") / US
    assert sleeps >= 5 and (sleeps - 1) * ASLEEP_S <= seconds <= sum(says["asleep"]) + 0.001, (seconds, says)
    assert ASLEEP_S <= gil["longest_asleep_with_it_s"] <= max(says["asleep"]) + 0.05, (gil, says)
    # Now and then one sleep of a run is not recognized. Imports that read a disk are sleeps with the GIL, too.
    assert sleeps - 1 <= gil["asleep_with_it"] <= sleeps + 100, (gil, says)
    place = re.search(r"asleep with the GIL held: \d+ times?, .*, in (\S+) \(", err)
    # An import that reads a slow disk may be the longest.
    assert place and (place.group(1) == "asleep" or gil["longest_asleep_with_it_s"] > max(says["asleep"])), err


@pytest.mark.parametrize("python", one_of_each_version(), ids=ids)
def test_the_right_holder_has_the_wait(python, tmp_path_factory):
    """While one thread sleeps with the GIL, the other waits for it; else nobody keeps it for long."""
    says, stacks, stats, err = run_waits(python, "gil", 1, str(tmp_path_factory.getbasetemp()))
    held = collections.Counter()
    everybody = sum(us for stack, us in stacks if stack[-1].name == "[GIL: held in asleep]") / US
    for stack, us in stacks:
        match = re.fullmatch(r"\[GIL: held in (.*)\]", stack[-1].name)
        if "reads" in functions(stack):
            held[match.group(1) if match else stack[-1].name] += us
    # While the first threads begin, a holder may not be certain, for one wait.
    assert held["[GIL]"] <= (ASLEEP_S + 0.002) * US, held
    blocked = re.search(r"asleep \(.*gilwaits\.py:\d+\) blocked \d+ waits?, ([\d.]+) s, longest ([\d.]+) ms", err)
    assert blocked, err
    # A thread that has no function yet waits, too.
    assert abs(float(blocked.group(1)) - everybody) < ASLEEP_S + 0.002
    assert float(blocked.group(2)) <= 1000 * max(says["asleep"]) + 1
    # It waits for all of most sleeps: but for the time that it queued for a CPU every 5 ms.
    sleeping = len(says["asleep"]) * ASLEEP_S
    assert sleeping - float(stats["state_s"]["waiting for a CPU"]) - 0.05 <= held["asleep"] / US <= sum(says["asleep"])


@pytest.mark.parametrize("waiting", [1, 7, 49], ids=["2 threads", "8 threads", "50 threads"])
@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 8), (3, 12)), ids=ids)
def test_waits_are_as_long_as_the_programs_own_clock_says(python, waiting, tmp_path_factory):
    """
    It measures from C code without the GIL to Python that has it: waits for a holder, and the time until a CPU was
    there. What the thread waited for before that C code read the clock, while it let the GIL go, is not in it.
    """
    says, stacks, _, _ = run_waits(python, "wall", waiting, str(tmp_path_factory.getbasetemp()))
    least, most = 0, 0
    for stack, us in stacks:
        if "reads" in functions(stack):
            most += us / US
            least += us / US if stack[-1].name.startswith("[GIL: held in") else 0
    assert 0.98 * least - 0.01 <= says["waited"] <= 1.02 * most + 0.02, (least, says["waited"], most)
    assert least > 0.05


# A stripped 3.6 does not say where its GIL is, and musl's Python has no ctypes.
WITHOUT = ("stripped-shared3.6", "built-python3.13-musl")
WITH_GIL = [item for item in pythons.interpreters() if item.kind != "free-threaded" and item.name not in WITHOUT]


@pytest.mark.parametrize("python", WITH_GIL, ids=ids)
def test_what_the_holder_did(python, tmp_path):
    """Also while nobody waits for the GIL: an interpreter in a library or in the program, with symbols or without."""
    stats, seconds = tmp_path / "stats.json", 0.4
    run = pybpf("--mode=gil", "-F", 999, "--json-stats", stats, "--", *python.command("gilheld.py", str(seconds)))
    assert run.code == 0, run.err
    counted = json.loads(stats.read_text())
    gil, samples = counted["gil"], counted["gil_samples"]
    elsewhere, kernel = gil["held_in_other_code_s"], gil["held_in_kernel_s"]
    # The interpreter starts and ends, too, for which it calls the C library.
    assert samples["unknown_code"] == 0 and 0.9 * seconds - kernel < elsewhere < 1.5 * seconds, gil
    assert 0.9 * seconds - kernel < gil["held_on_cpu_s"] - elsewhere - kernel < 2 * seconds, gil
    assert gil["held_on_cpu_s"] <= 1.05 * counted["state_s"]["on CPU"], counted
    assert seconds <= gil["asleep_with_it_s"] < 1.5 * seconds, gil
    assert re.search(r"the GIL was held for [\d.]+ s: [\d.]+ s in the interpreter, [\d.]+ s in other code, .* s asleep$", run.err, re.M)


@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 11), (3, 15)), ids=ids)
def test_stacks_of_holders(python, tmp_path):
    path = tmp_path / "gil.folded"
    command = python.command("gilwaits.py", "1", "7")
    run = pybpf("--mode=gil", "--gil-holders", "--no-children", "-o", path, "--", *command)
    assert run.code == 0, run.err
    sleeping = sum(len(json.loads(run.out)["asleep"]) * [ASLEEP_S])
    blocks = collections.Counter()
    for stack, us in harness.parse(path.read_text()):
        if stack[-1].name == "[blocks: reads]":
            blocks[stack[-2].name] += us / US
    assert blocks["asleep"] > 0.5 * sleeping, blocks
    assert blocks["[holder not known]"] <= 0.01 * sum(blocks.values()), blocks
    assert sum(blocks.values()) <= float(run.err.split("waits for the GIL, ")[1].split(" s,")[0]) + 0.001


@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 11), (3, 15)), ids=ids)
def test_both_sides_of_a_wait(python, tmp_path):
    path = tmp_path / "gil.folded"
    run = pybpf("--mode=gil", "--gil-pairs", "--no-children", "-o", path, "--", *python.command("gilwaits.py", "1", "7"))
    assert run.code == 0, run.err
    pairs = collections.Counter()
    for stack, us in harness.parse(path.read_text()):
        names = [frame.text for frame in stack]
        wait = next(i for i, name in enumerate(names) if name.startswith(("[GIL", "[asleep with the GIL")))
        held = re.fullmatch(r"\[GIL: held in (.*)\]", names[wait])
        behind = [re.fullmatch(r"\[holder: (\S+) \((\S+):\d+\)\]", name).group(1, 2) for name in names[wait + 1 :]]
        assert bool(held) == bool(behind), names
        if held:
            assert behind[0][0] == held.group(1)
            # Threads begin in threading.py, the main one in the module.
            first = ("__bootstrap" if python.version < (3,) else "_bootstrap", "threading.py")
            assert (behind[-1][0].split(".")[-1], behind[-1][1]) in (first, ("<module>", "gilwaits.py")), behind
            pairs[stack[wait - 1].name, behind[0][0]] += us
    assert sum(us for (_, holder), us in pairs.items() if holder == "asleep") > 0.1 * sum(pairs.values()), pairs


HANGS = """
import ctypes, threading, time
def hangs():
    ctypes.PyDLL(None).usleep(1000000000)
threading.Thread(target=hangs).start()
"""


def test_a_thread_that_has_slept_with_the_gil_since_before_the_run():
    with harness.started([harness.default_python().argv[0], "-c", HANGS]) as process:
        tasks = "/proc/%d/task" % process.pid

        def asleep():
            return any("hrtimer" in open("%s/%s/wchan" % (tasks, tid)).read() for tid in os.listdir(tasks))

        harness.wait_for(asleep)
        run = harness.record(process.pid, "--mode=gil")
    found = {stack[-2].name: us for stack, us in run.stacks() if stack[-1].name == "[asleep with the GIL: sleep]"}
    assert set(found) == {"hangs"} and abs(found["hangs"] / US - run.stats["duration_s"]) < 0.01, run.out
    assert "in hangs (" in run.err.split("asleep with the GIL held: 1 time,")[1]


def refused(python, environment=None):
    with harness.target(python, "gil.py") as target:
        run = pybpf("-p", target.pid, "-d", 0.2, "--mode=gil")
    assert run.code == 1
    return harness.one_sentence(run.err)


def test_a_free_threaded_build_without_a_gil_explains_itself():
    python = pythons.one(kind="free-threaded")
    if not python:
        pytest.skip("no free-threaded build here")
    assert "--mode=wall shows the locks" in refused(python)


def test_a_free_threaded_build_with_its_gil_on_is_like_any_other(monkeypatch):
    python = pythons.one(kind="free-threaded")
    if not python:
        pytest.skip("no free-threaded build here")
    monkeypatch.setenv("PYTHON_GIL", "1")
    with harness.target(python, "gil.py") as target:
        run = harness.record(target.pid, "--mode=gil")
    waits = collections.Counter(stack[-1].name for stack, _ in run.stacks() if "computes" in functions(stack))
    assert "[GIL: held in computes]" in waits, run.out
    assert "free-threaded" in run.err


def stripped(version):
    python = pythons.one(version=version, kind="stripped")
    return python or pytest.skip("not here")


def test_a_python_that_does_not_say_where_its_gil_is():
    """3.6 has its GIL in static variables."""
    assert "does not say where its GIL is" in refused(stripped((3, 6)))


def test_a_gil_that_is_found_without_its_symbol(tmp_path_factory):
    """2.7's has a short function that reads it."""
    test_a_sleep_with_the_gil_is_counted_and_measured(stripped((2, 7)), tmp_path_factory)
    test_the_right_holder_has_the_wait(stripped((2, 7)), tmp_path_factory)


# One thread that was never another's: 2.7 and 3.6 make no GIL for it.
ALONE = "import time; end = time.time() + 1\nwhile time.time() < end: time.sleep(0.01); sum(range(10000))"


@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 8)), ids=ids)
def test_a_program_without_threads_has_no_waits(python):
    run = pybpf("--mode=gil", "--no-children", "--", *python.argv, "-c", ALONE)
    assert run.code == 0, run.err
    assert "pybpf: 0 waits for the GIL, 0.000 s" in run.err


# Waits of a known number: the main thread wants the GIL each time when a sleep with the GIL has begun.
TURNS = """
import ctypes, threading, time
keeps, gives = ctypes.PyDLL(None), ctypes.CDLL(None)
turn, over = threading.Semaphore(0), []
def keeper():
    for i in range(20):
        turn.acquire()
        keeps.usleep(30000)
thread = threading.Thread(target=keeper)
thread.start()
time.sleep(0.3)
def waits():
    gives.usleep(10000)
for i in range(20):
    turn.release()
    waits()
    time.sleep(0.05)
thread.join()
"""


@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 8), (3, 12)), ids=ids)
def test_a_wait_counts_once(python, tmp_path):
    stats = tmp_path / "gil.json"
    run = pybpf("--mode=gil", "--no-children", "--json-stats", stats, "--", *python.argv, "-c", TURNS)
    assert run.code == 0, run.err
    found = re.search(r"keeper \(.*\) blocked (\d+) waits?, ([\d.]+) s, longest ([\d.]+) ms", run.err)
    # The first sleep of 10 ms is over when the other one has 20 ms to go.
    assert found and 18 <= int(found.group(1)) <= 22, run.err
    assert 0.2 <= float(found.group(2)) <= 0.5 and 15 <= float(found.group(3)) <= 60, run.err
    assert json.loads(stats.read_text())["gil"]["waits"] <= 70, run.err


@pytest.mark.parametrize(
    "options, says",
    [
        (["--gil-holders"], "with --mode=gil"),
        (["--mode=wall", "--gil-holders"], "with --mode=gil"),
        (["--mode=gil", "--idle"], "with --mode=wall or --mode=offcpu"),
        (["--mode=gil", "--gil-holders", "--threads"], "exclude each other"),
    ],
    ids=" ".join,
)
def test_options_that_exclude_each_other(options, says):
    run = pybpf("-p", os.getpid(), *options)
    assert run.code == 2
    assert says in harness.one_sentence(run.err)
