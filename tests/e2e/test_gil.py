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
from processes import sampled_for

pytestmark = pytest.mark.usefixtures("profiler")

US = 1e6
ASLEEP_S = 0.02  # ASLEEP_US of tests/targets/gilwaits.py
WOKEN_S = 0.03  # every 5 ms a thread that waits for the GIL is on a CPU, to ask for it
ROUNDED_S = 0.0005  # a run's duration is told in ms


def one_of_each_version():
    found = [pythons.one(version=version) for version in pythons.SUPPORTED]
    return [item for item in found if item]


def of_versions(*versions):
    return [item for item in one_of_each_version() if item.version in versions]


def ids(item):
    return item.name


def functions(stack):
    return {frame.name for frame in stack}


class Waits:
    """A run of tests/targets/gilwaits.py: what it says of itself, the stacks, the statistics and the account."""

    def __init__(self, python, mode, waiting, folder):
        saved, stats = os.path.join(folder, "gil.pybpf"), os.path.join(folder, "gil.json")
        command = python.command("gilwaits.py", "0.6", str(waiting))
        run = pybpf("--mode=" + mode, "-F", 999, "--no-children", "-o", saved, "--json-stats", stats, "--", *command)
        assert run.code == 0, run.err
        self.says, self.err = json.loads(run.out), run.err
        with open(stats, encoding="utf-8") as numbers:
            self.stats = json.load(numbers)
        profile = json.loads(pybpf("report", "-q", "-f", "json", saved).out)
        self.stacks = [(names_of(profile, sample["stack"]), sample["value"], sample["count"]) for sample in profile["samples"]]

    def where(self, leaf, function):
        """Seconds and number of the waits of that name in a function, which "" leaves open."""
        found = [(us, count) for names, us, count in self.stacks if names[-1] == leaf and (not function or function in names)]
        return sum(us for us, _ in found) / US, sum(count for _, count in found)


def names_of(profile, stack):
    """The names of a stack's frames, root first."""
    names = []
    while stack is not None:
        names.append(profile["frames"][profile["stacks"][stack]["frame"]]["name"])
        stack = profile["stacks"][stack]["parent"]
    return names[::-1]


def seconds_of(text):
    number, unit = text.split()
    return float(number) / {"s": 1, "ms": 1e3, "us": 1e6}[unit]


@functools.lru_cache(maxsize=None)
def run_waits(python, mode, waiting, tmp):
    return Waits(python, mode, waiting, tmp)


@pytest.mark.parametrize("python", one_of_each_version(), ids=ids)
def test_a_sleep_with_the_gil_is_counted_and_measured(python, tmp_path_factory):
    run = run_waits(python, "gil", 1, str(tmp_path_factory.getbasetemp()))
    asleep, gil = run.says["asleep"], run.stats["gil"]
    seconds, count = run.where("[asleep with the GIL: sleep]", "asleep")
    # Now and then one sleep of a run is not recognized.
    assert len(asleep) - 1 <= count <= len(asleep) and len(asleep) >= 2, (count, asleep)
    # The program's clock goes on while its thread waits for a CPU afterwards.
    assert count * ASLEEP_S <= seconds <= sum(asleep), (seconds, count, asleep)
    assert ASLEEP_S <= gil["longest_asleep_with_it_s"] and count <= gil["asleep_with_it"], gil
    place = re.search(r"asleep with the GIL held: \d+ times?, .*, longest \S+ \S+ in (\S+) \(", run.err)
    # An import that reads a slow disk is a sleep with the GIL, too, and may be the longest.
    assert place and place.group(1) not in ("reads", "read_clock"), run.err
    assert place.group(1) != "asleep" or gil["longest_asleep_with_it_s"] <= max(asleep), (run.err, gil, asleep)


@pytest.mark.parametrize("python", one_of_each_version(), ids=ids)
def test_the_right_holder_has_the_wait(python, tmp_path_factory):
    """While one thread sleeps with the GIL, the other waits for it; else nobody keeps it for long."""
    run = run_waits(python, "gil", 1, str(tmp_path_factory.getbasetemp()))
    asleep, longest = run.says["asleep"], run.says["longest"]
    # While the first threads begin, a holder may not be certain, for one wait. In 2.7, which is looked at but once, it may
    # be met between two functions.
    unsure = 2 + len(asleep) // 8 if python.version < (3,) else 1
    assert run.where("[GIL]", "reads")[0] <= unsure * (longest + 0.0001), (run.stacks, run.says)
    blocked = re.search(r"asleep \(.*gilwaits\.py:\d+\) blocked (\d+) waits?, ([\d.]+ [mu]?s), longest ([\d.]+ [mu]?s)", run.err)
    assert blocked, run.err
    # The account and the stacks say the same; a thread that has no function yet waits, too.
    seconds, waits = run.where("[GIL: held in asleep]", "")
    assert int(blocked.group(1)) == waits and abs(seconds_of(blocked.group(2)) - seconds) < 0.0006, (run.err, run.stacks)
    assert seconds_of(blocked.group(3)) <= longest + 0.0001, (run.err, longest)
    # Somebody waits for all of each sleep, but while it queues for a CPU. The last sleep may find nobody who still wants it.
    queued = run.stats["state_s"]["waiting for a CPU"]
    # In 2.7 the holder is looked at once, as the wait begins: it may read the clock then, right before it sleeps.
    if python.version < (3,):
        seconds += run.where("[GIL: held in read_clock]", "")[0]
    assert seconds >= (len(asleep) - 1) * ASLEEP_S - queued - WOKEN_S, (run.stacks, run.stats, asleep)
    assert 0.98 * run.where("[GIL: held in asleep]", "reads")[0] - 0.01 <= run.says["missed"], (run.stacks, run.says)


@pytest.mark.parametrize("waiting", [1, 7, 49], ids=["2 threads", "8 threads", "50 threads"])
@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 8), (3, 12)), ids=ids)
def test_waits_are_as_long_as_the_programs_own_clock_says(python, waiting, tmp_path_factory):
    """
    It measures from C code without the GIL to Python that has it: waits for a holder, and the time until a CPU was
    there. What the thread waited for before that C code read the clock, while it let the GIL go, is not in it, but in
    what it missed.
    """
    run = run_waits(python, "wall", waiting, str(tmp_path_factory.getbasetemp()))
    least, most = 0, 0
    for names, us, _ in run.stacks:
        if "reads" in names or names[-1] == "[on CPU, not sampled]":
            most += us / US
        if "reads" in names:
            least += us / US if names[-1].startswith("[GIL: held in") else 0
    assert 0.98 * least - 0.01 <= run.says["missed"] and run.says["waited"] <= 1.02 * most + 0.02, (least, run.says, most)
    assert least > 0 or run.says["missed"] < 0.05, run.says


# A stripped 3.6 does not say where its GIL is, and musl's Python has no ctypes.
WITHOUT = ("stripped-shared3.6", "built-python3.13-musl")
WITH_GIL = [item for item in pythons.interpreters() if item.kind != "free-threaded" and item.name not in WITHOUT]


@pytest.mark.parametrize("python", WITH_GIL, ids=ids)
def test_what_the_holder_did(python, tmp_path):
    """Also while nobody waits for the GIL: an interpreter in a library or in the program, with symbols or without."""
    stats, folded, seconds = tmp_path / "stats.json", tmp_path / "gil.folded", 0.4
    command = python.command("gilheld.py", str(seconds))
    run = pybpf("--mode=gil", "-F", 999, "--json-stats", stats, "-o", folded, "--", *command)
    assert run.code == 0, run.err
    says, counted = json.loads(run.out), json.loads(stats.read_text())
    gil, samples = counted["gil"], counted["gil_samples"]
    other, kernel = gil["held_in_other_code_s"], gil["held_in_kernel_s"]
    interpreter = gil["held_on_cpu_s"] - other - kernel
    # The interpreter starts and ends, too, for which it calls the C library.
    assert samples["unknown_code"] == 0, samples
    assert 0.9 * says["other"] - kernel < other < 1.1 * (says["all"] - says["interpreter"]) + 0.1, (gil, says)
    assert 0.9 * says["interpreter"] - kernel < interpreter < 1.1 * (says["all"] - says["other"]) + 0.1, (gil, says)
    assert gil["held_on_cpu_s"] <= 1.05 * counted["state_s"]["on CPU"], counted
    stacks = harness.parse(folded.read_text())
    asleep = sum(us for stack, us in stacks if "asleep" in functions(stack) and stack[-1].name.startswith("[asleep")) / US
    assert seconds <= asleep <= says["asleep"] + 0.0001 and asleep <= gil["asleep_with_it_s"] + 0.0001, (asleep, says, gil)
    assert re.search(r"the GIL was held for some [\d.]+ s, by samples: [\d.]+ s in the interpreter, [\d.]+ s in other code, .* s asleep$", run.err, re.M)


@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 11), pythons.NEWEST), ids=ids)
def test_stacks_of_holders(python, tmp_path):
    path = tmp_path / "gil.folded"
    command = python.command("gilwaits.py", "0.6", "7")
    run = pybpf("--mode=gil", "--gil-holders", "--no-children", "-o", path, "--", *command)
    assert run.code == 0, run.err
    says = json.loads(run.out)
    sleeping = len(says["asleep"]) * ASLEEP_S
    blocks = collections.Counter()
    for stack, us in harness.parse(path.read_text()):
        if stack[-1].name == "[blocks: reads]":
            blocks[stack[-2].name] += us / US
    assert blocks["asleep"] > 0.5 * sleeping, blocks
    # While the first threads begin, as in test_the_right_holder_has_the_wait; each of the seven may wait.
    unsure = 2 if python.version < (3,) else 1
    assert blocks["[holder not known]"] <= 0.01 * sum(blocks.values()) + 7 * unsure * says["longest"], (blocks, says)
    assert sum(blocks.values()) <= seconds_of(run.err.split("waits for the GIL, ")[1].split(",")[0]) + 0.001


@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 11), pythons.NEWEST), ids=ids)
def test_both_sides_of_a_wait(python, tmp_path):
    path = tmp_path / "gil.folded"
    run = pybpf("--mode=gil", "--gil-pairs", "--no-children", "-o", path, "--", *python.command("gilwaits.py", "0.6", "7"))
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
    # Beside a load every thread is kept from the CPU with the GIL, too.
    assert sum(us for (_, holder), us in pairs.items() if holder == "asleep") > 0.02 * sum(pairs.values()), pairs


def is_native(text):
    """Has it a file and no line?"""
    frame = harness.parse_frame(text)
    return bool(frame.file) and frame.line is None


def test_pairs_have_native_frames_of_the_thread_that_waits(tmp_path):
    """The holder may run while its stack is read, which is Python's alone."""
    path = tmp_path / "gil.folded"
    command = harness.default_python().command("gilwaits.py", "0.6", "2")
    run = pybpf("--mode=gil", "--gil-pairs", "--native", "--no-children", "-o", path, "--", *command)
    assert run.code == 0, run.err
    waited, holders = collections.Counter(), set()
    for stack, us in harness.parse(path.read_text()):
        wait = next(i for i, frame in enumerate(stack) if frame.text.startswith(("[GIL", "[asleep with the GIL")))
        holders.update(re.fullmatch(r"\[holder: (.*)\]", frame.text).group(1) for frame in stack[wait + 1 :])
        if stack[wait].text == "[GIL: held in asleep]" and "reads" in functions(stack):
            waited[any(is_native(frame.text) for frame in stack[:wait])] += us
    assert waited[True] > 0.9 * sum(waited.values()) > 0, waited
    assert "asleep" in {holder.split()[0] for holder in holders}
    assert not [holder for holder in holders if is_native(holder)], holders


def test_holders_block_functions_of_python_with_native_frames(tmp_path):
    path = tmp_path / "gil.folded"
    command = harness.default_python().command("gilwaits.py", "0.6", "2")
    run = pybpf("--mode=gil", "--gil-holders", "--native", "--no-children", "-o", path, "--", *command)
    assert run.code == 0, run.err
    blocks = collections.Counter()
    for stack, us in harness.parse(path.read_text()):
        if stack[-1].text.startswith("[blocks"):
            assert not [frame for frame in stack if is_native(frame.text)], harness.show(stack)
            blocks[stack[-1].text] += us
    # On a busy machine reads() may hardly have begun.
    own = sum(blocks["[blocks: %s]" % name] for name in ("reads", "suffers", "asleep", "sleeper"))
    assert own > 0.5 * sum(blocks.values()), blocks
    # And not in C's usleep().
    assert re.search(r"asleep with the GIL held: .* in asleep \(", run.err), run.err


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
        run, least_s = sampled_for(0.3, "-p", process.pid, "--mode=gil")
    found = {stack[-2].name: us for stack, us in run.stacks() if stack[-1].name == "[asleep with the GIL: sleep]"}
    assert set(found) == {"hangs"}, run.out
    assert least_s <= found["hangs"] / US <= run.stats["duration_s"] + ROUNDED_S, run.stats
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
    assert "pybpf: 0 waits for the GIL\n" in run.err


# Waits of a known number: the main thread wants the GIL each time when a sleep with the GIL has begun.
TURNS = """
from __future__ import print_function
import ctypes, threading, time
keeps, gives = ctypes.PyDLL(None), ctypes.CDLL(None)
clock, turn, took = getattr(time, "monotonic", time.time), threading.Semaphore(0), []
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
    begin = clock()
    turn.release()
    waits()
    took.append(clock() - begin)
    time.sleep(0.05)
thread.join()
print(max(took))
"""


@pytest.mark.parametrize("python", of_versions((2, 7), (3, 6), (3, 8), (3, 12)), ids=ids)
def test_a_wait_counts_once(python, tmp_path):
    stats = tmp_path / "gil.json"
    options = ["--no-children", "--json-stats", stats, "-o", tmp_path / "gil.folded"]
    run = pybpf("--mode=gil", *options, "--", *python.argv, "-c", TURNS)
    assert run.code == 0, run.err
    found = re.search(r"keeper \(.*\) blocked (\d+) waits?, ([\d.]+ [mu]?s), longest ([\d.]+ [mu]?s)", run.err)
    assert found, run.err
    count, seconds, longest = int(found.group(1)), seconds_of(found.group(2)), seconds_of(found.group(3))
    # The first sleep of 10 ms is over when the other one has 20 ms to go; beside a load it may last as long as that.
    assert 1 <= count <= 22 and count * longest >= seconds - 0.001, run.err
    # Most are longer than the 5 ms after which a thread asks for the GIL and waits on, by the program's own clock or less.
    assert 0.015 <= longest <= float(run.out) + 0.0001, (run.err, run.out)
    assert json.loads(stats.read_text())["gil"]["waits"] <= 70, run.err


# A thread that wakes up a known number of times, and each time waits for the GIL of one that computes.
BESIDE_ONE_THAT_COMPUTES = """
from __future__ import print_function
import os, threading, time
def computes():
    while True:
        sum(i * i for i in range(1000))
def wakes():
    for _ in range(40):
        time.sleep(0.01)
    os._exit(0)
thread = threading.Thread(target=computes)
thread.daemon = True
thread.start()
wakes()
"""


@pytest.mark.parametrize("python", of_versions((3, 8), (3, 12), pythons.NEWEST), ids=ids)
def test_a_wait_that_meets_several_holders_counts_once(python, tmp_path):
    """The holder is met in its loop, in sum(), in the generator, or not at all: those are stacks, but not waits."""
    saved, stats = tmp_path / "gil.json", tmp_path / "stats.json"
    options = ["--no-children", "-f", "json", "-o", saved, "--json-stats", stats]
    run = pybpf("--mode=gil", *options, "--", *python.argv, "-c", BESIDE_ONE_THAT_COMPUTES)
    assert run.code == 0, run.err
    profile = json.loads(saved.read_text(encoding="utf-8"))
    stacks = [(names_of(profile, sample["stack"]), sample["count"]) for sample in profile["samples"]]
    waits = [(names, count) for names, count in stacks if names[-1].startswith("[GIL") and "handing over" not in names[-1]]
    assert 20 <= sum(count for names, count in waits if "wakes" in names) <= 41, stacks
    assert sum(count for _, count in waits) == json.loads(stats.read_text())["gil"]["waits"], (stacks, run.err)


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


SHORT_INTERVAL = """
import sys, threading
sys.setswitchinterval(0.001)
numbers = range(2000000)
def holds():
    for _ in range(12):
        sum(numbers)  # does not look whether it should let the GIL go
holder = threading.Thread(target=holds)
holder.start()
while holder.is_alive():
    pass
"""


@pytest.mark.parametrize("python", pythons.of_each_version(pythons.interpreters()), ids=lambda item: item.name)
def test_a_wait_is_one_wait_whatever_the_switch_interval(python, tmp_path):
    """The thread that asks for the GIL wakes up each millisecond for tens of them."""
    if python.version < (3, 6) or python.kind == "free-threaded":
        pytest.skip("it has no GIL, or no switch interval")
    saved, stats = tmp_path / "waits.json", tmp_path / "stats.json"
    run = pybpf(
        *("--mode=wall", "--threads", "--min-block", "4ms", "--format", "json", "-o", saved, "--json-stats", stats, "--"),
        *python.argv,
        *("-c", SHORT_INTERVAL),
    )
    assert run.code == 0, run.err
    told = json.loads(stats.read_text(encoding="utf-8"))
    assert told["waits"]["short_s"] < 0.25 * told["state_s"]["GIL"], told["waits"]
    assert told["state_s"]["GIL"] > 0.05, told["state_s"]


@pytest.mark.parametrize(
    "python",
    [
        item
        for item in pythons.of_each_version(pythons.interpreters())
        if item.version >= (3, 13) and item.kind != "free-threaded"  # 3.12.1 does not end
    ],
    ids=lambda item: item.name,
)
@pytest.mark.parametrize("mode", ["gil", "wall"])
def test_a_subinterpreter_with_a_gil_of_its_own(python, mode, tmp_path):
    """Who waits for it is the thread that runs the interpreter, and has a state of the main one, too."""
    stats = tmp_path / "stats.json"
    run = pybpf("--mode=" + mode, "-o", "/dev/null", "--json-stats", stats, "--", *python.command("own_gil.py", "1.5"))
    assert run.code == 0, run.err
    told = json.loads(stats.read_text(encoding="utf-8"))
    states = told["state_s"]
    # The main thread waits for the runner, at most for the whole run, and the runner for no lock but the other one's end.
    assert states["lock"] <= told["duration_s"] + json.loads(run.out), (told, run.out)
    assert states["GIL"] > 0.05, states
    if mode == "gil":
        assert told["gil"]["waits"] > 5 and told["gil"]["held_on_cpu_s"] > 0.5 * states["on CPU"], told["gil"]
