# SPDX-License-Identifier: Apache-2.0
"""--async-block: callbacks that block their event loop, by task and line; none is listed that did not."""

import json
import re
import subprocess

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 499
PYTHONS = pythons.of_each_version([item for item in pythons.interpreters() if item.version >= (3, 8)])
SOME = [item for item in (pythons.one((3, 10)), pythons.one((3, 13)), pythons.one((3, 14))) if item]
NAMELESS = [item for item in pythons.interpreters() if item.version == (3, 7)]
SEVERAL = "several tasks"  # in place of a name
UNSEEN_S = 7 / RATE  # on a CPU, before the first sample of a callback and after its last
every_python = pytest.mark.parametrize("python", PYTHONS, ids=lambda item: item.name)
some_pythons = pytest.mark.parametrize("python", SOME, ids=lambda item: item.name)


def name(place):
    return SEVERAL if place["tasks"] > 1 else place["task"]


def run_blocks(python, kind, tmp_path, *options):
    """What the program says, the list in the JSON by name, and stderr."""
    stats = tmp_path / "stats.json"
    with harness.priority_of(python.argv):
        done = subprocess.run(
            [harness.PYBPF, "--async", "-o", "/dev/null", "-F", str(RATE), "--json-stats", str(stats), *options, "--"]
            + python.command("blocks.py", kind),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=harness.PATIENCE,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    numbers = json.loads(stats.read_text(encoding="utf-8"))
    account = numbers["loop_blocks"]
    assert account["count"] == sum(place["count"] for place in account["longest"])
    assert account["places"] == len(account["longest"])
    # A task may block its loop in several places, also where it only waits for a CPU: that with the most counts stands for all.
    listed = {}
    for place in sorted(account["longest"], key=lambda place: -place["count"]):
        one = listed.setdefault(name(place), {**place, "count": 0, "total_s": 0, "longest_s": 0})
        one["count"] += place["count"]
        one["total_s"] += place["total_s"]
        one["longest_s"] = max(one["longest_s"], place["longest_s"])
    return {**json.loads(done.stdout), "queued_s": numbers["state_s"]["waiting for a CPU"]}, listed, done.stderr


def slack_s(says):
    """By how much a callback may be longer or shorter than the program says, which reads its clock once it has a CPU."""
    return UNSEEN_S + says["queued_s"]


def check(says, listed, name, function):
    """As many callbacks, as long, and at that line; one that lost the CPU two lines before it was there as long."""
    place = listed["[task: %s]" % name if name not in ("", SEVERAL) else name]
    took, line = says["took"][name], says["lines"][name]
    assert place["where"] in ["%s (blocks.py:%d)" % (function, at) for at in (line, line - 2)], place
    # Callbacks of asyncio's own are of no task; one may be long because other processes had the CPU.
    others = place["count"] - len(took)
    assert others == 0 or (name == "" and others > 0), (place, took)
    slack = slack_s(says)
    least = [seconds - slack for seconds in says["ran"].get(name, took)]
    most = [seconds + slack for seconds in says["most"][name]]
    assert sum(least) < place["total_s"] and max(least) < place["longest_s"], (place, says)
    assert others or (place["total_s"] < sum(most) and place["longest_s"] < max(most)), (place, says)


def short(says):
    """The tasks whose callbacks are short; one may be long because other processes had the CPU. The first is main()."""
    return {"[task: Task-1]", *(["[task: short]"] if max(says["most"]["short"]) > 0.04 else [])}


def met_by_chance(says, listed):
    """Callbacks that sleep and were sampled right before and right after: they are told, and as long as they took."""
    met = {task for task in ("[task: sleeps]", "") if task in listed}
    for task in met:
        assert listed[task]["longest_s"] < max(says["most"][task[len("[task: ") : -1]]) + slack_s(says), (listed, says)
    return met


@every_python
def test_what_blocks_is_listed(python, tmp_path):
    says, listed, told = run_blocks(python, "known", tmp_path, "--mode=wall")
    assert set(listed) - short(says) == {"[task: sleeps]", "[task: burns]", ""}, listed
    check(says, listed, "sleeps", "sleep")
    check(says, listed, "burns", "burn")
    check(says, listed, "", "sleep")
    assert re.search(r"callbacks blocked their event loop for 50 ms or longer \d times, \d\.\d{3} s", told), told
    line = r"pybpf:   \[task: sleeps\] in sleep \(blocks\.py:%d\): 2 times, 0\.\d\d\d s, longest \d\d\d\.\d ms$"
    assert re.search(line % says["lines"]["sleeps"], told, re.MULTILINE), told


@every_python
def test_on_cpu_samples_tell(python, tmp_path):
    """In CPU mode a callback that sleeps is not seen, but by chance."""
    says, listed, told = run_blocks(python, "known", tmp_path)
    assert "\npybpf: callbacks that sleep or wait are not seen without --mode=wall\n" in told
    assert set(listed) - short(says) - met_by_chance(says, listed) == {"[task: burns]"}, listed
    check(says, listed, "burns", "burn")


@some_pythons
def test_a_file_to_be_shown_has_no_names(python, tmp_path):
    _, listed, told = run_blocks(python, "known", tmp_path, "--anonymize")
    assert {(place["task"], place["where"]) for place in listed.values()} == {("", "")}, listed
    assert "[task: burns]" in told


@some_pythons
def test_kernels_without_bpf_loop(python, tmp_path):
    says, listed, _ = run_blocks(python, "known", tmp_path, "--without-kernel-feature=bpf_loop")
    assert set(listed) - short(says) - met_by_chance(says, listed) == {"[task: burns]"}, listed
    check(says, listed, "burns", "burn")


def check_steps(says, listed, limit):
    """A step takes its 10 ms, or longer when other processes have the CPU."""
    place = listed.pop("[task: Task-1]", {"longest_s": 0, "count": 0})
    spans, slack = says["spans"], slack_s(says)
    assert place["longest_s"] < max(spans) + slack, (place, says)
    assert place["count"] <= sum(seconds > limit - slack for seconds in spans), (place, spans)


@some_pythons
def test_short_callbacks_do_not_add_up(python, tmp_path):
    """A loop that is busy with short callbacks is not blocked by any of them."""
    says, listed, told = run_blocks(python, "steps", tmp_path, "--mode=wall")
    assert listed or re.search("no callback was seen to block its event loop for 50 ms or longer; one that computes", told)
    check_steps(says, listed, 0.05)
    # Those that sleep for 20 ms are long only where the thread then waits for a CPU.
    waited = [seconds for i in range(5) for seconds in says["took"]["t%d" % i] if seconds > 0.05 - slack_s(says)]
    assert sum(place["count"] for place in listed.values()) <= len(waited), (listed, says)
    says, listed, told = run_blocks(python, "steps", tmp_path, "--mode=wall", "--async-block", "15ms")
    check_steps(says, listed, 0.015)
    # Five tasks at one place, and some callbacks at others, where the thread waited for a CPU.
    listed.pop("", None)
    shown = listed[SEVERAL]["count"]
    for place in [listed.pop(task) for task in list(listed) if task.startswith("[task: t")]:
        listed[SEVERAL]["count"] += place["count"]
        listed[SEVERAL]["total_s"] += place["total_s"]
        listed[SEVERAL]["longest_s"] = max(listed[SEVERAL]["longest_s"], place["longest_s"])
    assert listed.keys() == {SEVERAL} and listed[SEVERAL]["tasks"] == 5, listed
    for clock in ("took", "most"):
        says[clock][SEVERAL] = [seconds for i in range(5) for seconds in says[clock]["t%d" % i]]
    says["lines"][SEVERAL] = says["lines"]["t0"]
    check(says, listed, SEVERAL, "sleep")
    assert "pybpf:   5 tasks in sleep (blocks.py:%d): %d times, " % (says["lines"]["t0"], shown) in told, told


@some_pythons
def test_none_is_lost_before_one_that_computes(python, tmp_path):
    """A virtual machine does not tell the switch to the CPU after some 2 of 1,000 sleeps: a sample does then, nearly always."""
    lost = []
    for _ in range(4):
        says, listed, _ = run_blocks(python, "turns", tmp_path, "--mode=wall", "--async-block=5ms")
        lost.append(len(says["took"]["naps"]) - listed["[task: naps]"]["count"])
        if not lost[-1]:
            break
    assert len(says["took"]["naps"]) == 500 and lost[-1] == 0 <= max(lost) <= 2, lost


@some_pythons
def test_two_loops_in_two_threads(python, tmp_path):
    says, listed, _ = run_blocks(python, "loops", tmp_path, "--mode=wall")
    assert listed.keys() == {SEVERAL} and listed[SEVERAL]["tasks"] == 2, listed
    took, most = ([seconds for name in ("one", "two") for seconds in says[clock][name]] for clock in ("took", "most"))
    assert listed[SEVERAL]["count"] == len(took) == len(most) == 4, (listed, says)
    slack = len(took) * UNSEEN_S + says["queued_s"]
    assert sum(took) - slack < listed[SEVERAL]["total_s"] < sum(most) + slack, (listed, says)


@every_python
def test_a_loop_in_each_of_150_threads(python, tmp_path):
    """To 3.13 one dict has the tasks that all loops run: none is missed in it, but while it gets a new table."""
    says, listed, _ = run_blocks(python, "crowd", tmp_path, "--mode=wall")
    places = json.loads((tmp_path / "stats.json").read_text(encoding="utf-8"))["loop_blocks"]["longest"]
    assert len(says["took"]["all"]) == 450 <= sum(place["count"] for place in places), places
    # A few waited for a CPU elsewhere for longer than they slept: 150 threads on a few CPUs.
    asleep = [place for place in places if place["where"] == "sleep (blocks.py:%d)" % says["lines"]["all"]]
    assert 445 <= sum(place["count"] for place in asleep) <= 450 and {place["task"] for place in asleep} == {"[task: all]"}, places
    assert all(place in asleep or place["count"] < 20 for place in places), places
    assert "[task: all]" in listed, listed


@pytest.mark.parametrize("python", SOME + NAMELESS, ids=lambda item: item.name)
def test_one_that_goes_on(python, tmp_path):
    """It counts until the end of the run."""
    task = "[task: hangs]" if python.version >= (3, 8) else "[task: unfinished]"
    for seconds in (1.5, 6, 24):
        says, listed, _ = run_blocks(python, "unfinished", tmp_path, "--mode=wall", "-d", str(seconds))
        if task in listed:  # it had the time to begin
            break
    place = listed.pop(task)
    assert not listed and place["count"] == 1 and 0 < place["total_s"] < seconds, place
    assert place["where"] == "unfinished (blocks.py:%d)" % says["lines"]["hangs"]


def test_a_program_without_asyncio():
    """Without tasks, nothing is said of callbacks."""
    run = pybpf("--async", "--", *harness.default_python().argv, "-S", "-c", "sum(range(10 ** 7))")
    assert run.code == 0, run.err
    assert "pybpf: no process was found to use asyncio: there are no tasks\n" in run.err
    assert "event loop" not in run.err


def test_bad_input():
    run = pybpf("--async-block", "20ms", "-p", "1")
    assert run.code == 2 and "with --async" in harness.one_sentence(run.err)
    for wrong in ("abc", "0", "-1", "10us"):
        run = pybpf("--async", "--async-block=" + wrong, "-p", "1")
        assert run.code == 2 and "not a length of callbacks" in harness.one_sentence(run.err), run.err
