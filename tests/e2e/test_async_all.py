# SPDX-License-Identifier: Apache-2.0
"""--async=all: suspended tasks have their time, with true stacks; their time is no time of threads."""

import json
import math
import re
import subprocess

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

ROOT = "[suspended tasks]"
TASKS = [item for item in pythons.interpreters() if item.version >= (3, 14)]
# Their tasks are found in other ways. Those of 3.7 have no names.
OLD = pythons.of_each_version([item for item in pythons.interpreters() if (3, 8) <= item.version < (3, 14)])
SECONDS = 2.0
FORMATS = ("json", "jsonl", "html", "gecko", "pprof", "chrometrace", "speedscope", "text", "svg", "perf-script", "pstats",
           "callgrind")


def on(pythons):
    return pytest.mark.parametrize("python", pythons, ids=lambda item: item.name)


every_build = on(TASKS)
every_python = on([item for item in TASKS if item.kind != "debug"] + OLD)
one_python = on(TASKS[:1])


class Suspended:
    """A run: what the program says, the stacks of suspended tasks in seconds, the account."""

    def __init__(self, says, folded, account, told):
        self.says, self.account, self.told = says, account, told
        # Where the command took long to begin, such as chroot, its process has two names, and stacks begin with them.
        self.all = [(stack[stack[0].file.isdigit() :], us) for stack, us in harness.parse(folded)]
        self.stacks = [
            (tuple(frame.text for frame in stack[1:]), us / 1e6) for stack, us in self.all if stack[0].text == ROOT
        ]
        self.numbers = account["suspended_tasks"]

    def by(self, *patterns):
        """Seconds of the stacks in which all patterns are."""
        return sum(
            seconds
            for stack, seconds in self.stacks
            if all(any(re.search(pattern, text) for text in stack) for pattern in patterns)
        )

    def slack(self, want):
        """10 %, and an interval at each end."""
        return 0.1 * want + 0.03 + self.numbers["longest_interval_s"]

    def check(self, want, *patterns):
        found = self.by(*patterns)
        assert abs(found - want) < self.slack(want), (patterns, found, want, self.numbers, self.stacks)


def run_all(python, tmp_path, kind, *options, seconds=SECONDS, words=()):
    stats, saved = tmp_path / "stats.json", tmp_path / "all.pybpf"
    with harness.priority_of(python.argv):
        done = subprocess.run(
            [harness.PYBPF, "--async=all", "--mode=wall", "-o", str(saved), "--json-stats", str(stats), *options, "--"]
            + python.command("suspended.py", kind, str(seconds), *words),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=harness.PATIENCE,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    account = json.loads(stats.read_text(encoding="utf-8"))
    folded = pybpf("report", saved, "-f", "folded")
    assert folded.code == 0, folded.err
    return Suspended(json.loads(done.stdout), folded.out, account, done.stderr)


def task(name):
    return r"^\[task: %s\]$" % re.escape(name)


def called(python, function):
    """Names have their class from 3.11 on."""
    return function if python.version >= (3, 11) else function.split(".")[-1]


@every_build
def test_each_function_has_its_time(python, tmp_path):
    run = run_all(python, tmp_path, "sleeps")
    run.check(run.says["a:first"], task("a"), r"first \(")
    run.check(run.says["a:second"], task("a"), r"second \(")
    run.check(run.says["b"], task("b"), r"^naps \(")
    for stack, _ in run.stacks:
        if task("a")[2:-2] in stack:
            assert re.match(r"sleep \(asyncio/tasks\.py:\d+\)$", stack[-2]) and stack[-1] == "[awaits: Future]", stack
    # What awaits them has its time, too.
    run.check(run.says["a:first"] + run.says["a:second"], "^.awaits: _GatheringFuture.$")


@every_python
def test_locks_queues_and_groups(python, tmp_path):
    run = run_all(python, tmp_path, "shared")
    for name, function in (("locker", "Lock.acquire"), ("taker", "Queue.get"), ("waiter", "Event.wait")):
        run.check(run.says[name], task(name), "^%s " % re.escape(called(python, function)))
    run.check(run.says["holder"], task("holder"))
    # Before, nothing leads from the tasks of a group to the one that owns it.
    if python.version >= (3, 14):
        assert all(re.fullmatch(r"\[task: Task-\d+\]", stack[0]) for stack, _ in run.stacks), run.stacks


@every_python
def test_answers_of_a_peer_through_an_asynchronous_generator(python, tmp_path):
    run = run_all(python, tmp_path, "peer")
    run.check(run.says["client"], task("client"), r"client \(", r"answers \(", r"\breadexactly \(")
    run.check(run.says["client"], "^.awaits: task client.$")


@every_python
def test_peers_of_streams(python, tmp_path):
    with harness.target(python, "task_peers.py") as target:
        line, data, room = target.says["ports"]
        run = pybpf("-p", target.pid, "-d", "2", "--mode=wall", "--async=all", "-f", "folded")
        assert run.code == 0, run
    leaves = {
        next(name for name in stack if name.startswith("wait_for")).split()[0]: stack[-1]
        for stack in ([frame.text for frame in frames] for frames, _ in harness.parse(run.out))
        if any(name.startswith("wait_for") for name in stack) and stack[0] == ROOT
    }
    assert leaves["wait_for_line"] == f"[awaits: tcp 127.0.0.1:{line}]"
    assert leaves["wait_for_bytes"] == f"[awaits: tcp [::1]:{data}]"
    assert leaves["wait_for_room"] == f"[awaits: tcp 127.0.0.1:{room}]"
    assert leaves["wait_for_own"] == leaves["wait_for_time"] == "[awaits: Future]"


@every_python
def test_time_of_threads_stays_what_it_was(python, tmp_path):
    """States add up to the time of threads; suspended tasks are a sum of their own, in reports as well."""
    run = run_all(python, tmp_path, "sleeps")
    threads = sum(run.account["state_s"].values())
    assert abs(threads - run.account["duration_s"]) < 0.1 * run.account["duration_s"], run.account
    assert abs(run.numbers["time_s"] - sum(seconds for _, seconds in run.stacks)) < 0.001
    assert re.search(r"suspended tasks: \d+\.\d\d task-seconds, from \d+ snapshots", run.told), run.told


@every_python
def test_thousands_of_tasks(python, tmp_path):
    run = run_all(python, tmp_path, "many", "--max-stacks=40000", seconds=8.0)
    # One may be in its step; beside a load, none of the few snapshots may be of all.
    assert 1000 < run.numbers["most"] <= 5001, run.numbers
    # 2 % of a CPU, and the last two snapshots.
    assert run.numbers["cost_s"] < 0.05 * run.account["duration_s"] + 1, run.numbers
    one, other = run.by(r"\bone \("), run.by(r"\bother \(")
    assert abs(other / (one + other) - 0.25) < 0.01, (one, other)
    mean = (one + other) / 5000
    assert abs(mean - run.says["all"]) < 2 * run.numbers["longest_interval_s"] + 0.5 + 0.2 * run.says["all"], (mean, run.says, run.numbers)


@one_python
def test_stacks_without_room_are_counted(python, tmp_path):
    run = run_all(python, tmp_path, "many", "--max-stacks=100")
    assert run.numbers["unkept_s"] > 0.5 * run.numbers["time_s"] > 0
    assert abs(run.by("^.awaits: not kept.$") - run.numbers["unkept_s"]) < 0.01
    assert "found no room (see --max-stacks)" in run.told


@every_build
def test_no_stack_is_untrue(python, tmp_path):
    """Tasks that come and go as fast as they can: functions have the name of their task, in every stack."""
    run = run_all(python, tmp_path, "churn", seconds=4.0)
    names, unnamed = set(), 0
    for stack, seconds in run.stacks:
        tasks = [text[7:-1] for text in stack if text.startswith("[task: ")]
        if "[unnamed]" in stack:
            # The code object was gone before its name was read.
            unnamed += seconds
            continue
        functions = [re.match(r"(outer|inner)_(n\d+) ", text) for text in stack]
        found = [match.groups() for match in functions if match]
        own = tasks.pop()
        # Until the main task calls gather(), nothing awaits the others.
        assert not tasks or len(tasks) == 1 and tasks[0].startswith("Task-"), stack
        if own.startswith("Task-"):
            assert not found, stack
            continue
        if stack[-1] == "[awaits: first step]":
            assert found == [("outer", own)], stack
            continue
        assert found == [("outer", own), ("inner", own)], stack
        rest = [text.split(" ")[0] for text in stack[len(tasks) + 3 :]]
        assert rest in (
            ["churn.<locals>.pauses", "sleep", "__sleep0", "[awaits:"],
            ["churn.<locals>.pauses", "sleep", "[awaits:"],
        ), stack
        names.add(own)
    assert run.says["tasks"] > 300 and len(names) > 20, (run.says, len(names), run.numbers)
    assert unnamed < 0.1 * run.numbers["time_s"], (unnamed, run.numbers)
    assert run.numbers["moving"] < 0.2 * run.numbers["suspended"], run.numbers


@every_python
def test_a_task_beside_one_that_runs_all_the_time(python, tmp_path):
    """A loop that never rests does not hide the others."""
    run = run_all(python, tmp_path, "busy")
    run.check(run.says["still"], task("still"))
    assert run.by(task("runs")) < 1.1 * SECONDS


@every_python
def test_loops_of_several_threads(python, tmp_path):
    run = run_all(python, tmp_path, "loops")
    for name in ("main", "thread"):
        run.check(run.says[name], task(name), "^naps ")
    assert run.by(task("left"), "^sleep ") > 0.7 * SECONDS


# capture_call_graph() does not go into asynchronous generators, nor into a generator that is an __await__ method.
BEYOND = {
    "iterates": ["snapshot.<locals>.agen", "sleep"],
    "default": ["snapshot.<locals>.agen", "sleep"],
    "custom": ["Awaitable.__await__", "sleep"],
}


def expected_frames(frames):
    return ["%s (%s:%d)" % tuple(frame) for frame in frames]


@every_build
def test_the_snapshot_is_that_of_asyncio_itself(python, tmp_path):
    """Functions, lines and awaiters of tasks that stand still are those of asyncio.capture_call_graph()."""
    run = run_all(python, tmp_path, "snapshot", seconds=1.0)
    stacks = {}
    for stack, seconds in run.stacks:
        tasks = [text[7:-1] for text in stack if text.startswith("[task: ")]
        if tasks and seconds > 0.5:
            stacks[tasks[-1]] = stack
    for name, (frames, awaiters) in run.says.items():
        stack = stacks[name]
        shown = [re.sub(r"\((?:\S*/)?([^/]+:\d+)\)$", r"(\1)", text) for text in stack if not text.startswith("[")]
        want = expected_frames(frames)
        if name == "deeper":
            assert shown == want[:128] and stack[-1] == "[awaits: more functions]"
        else:
            assert shown[: len(want)] == want, (name, shown, want)
            assert [text.split(" ")[0] for text in shown[len(want) :]] == BEYOND.get(name, []), (name, shown, want)
        named = [text for text in stack if text.startswith("[task: ") or text == "[several tasks]"]
        if len(awaiters) == 1:
            assert named[-2] == "[task: %s]" % awaiters[0], (name, stack, awaiters)
        elif awaiters:
            assert named[-2] == "[several tasks]", (name, stack, awaiters)
        else:
            assert len(named) == 1, (name, stack, awaiters)
    assert stacks["joins"][-1] == "[awaits: task joined]"
    assert stacks["shields"][-1] == "[awaits: Future]"


@one_python
def test_a_process_that_runs_already(python, tmp_path):
    """Names are hashed with --anonymize; offcpu has suspended tasks, too."""
    with harness.target(python, "tasks.py", "forked", "30") as target:
        run = harness.record(target.pid, "--async=all", "--mode=offcpu", "--anonymize", seconds=0.5)
    assert run.code == 0, run.err
    assert "suspended tasks: 0.00 task-seconds" in run.err, run.err


@one_python
def test_filters_and_formats(python, tmp_path):
    run = run_all(python, tmp_path, "sleeps")
    for form in FORMATS:
        done = pybpf("report", tmp_path / "all.pybpf", "-f", form, "-o", tmp_path / ("out." + form))
        assert done.code == 0 and (tmp_path / ("out." + form)).stat().st_size > 100, (form, done.err)
    alone = pybpf("report", tmp_path / "all.pybpf", "-f", "text", "--under", re.escape(ROOT))
    assert "thread-seconds" not in alone.out + alone.err and "[awaits: Future] in " in alone.out, alone
    assert re.match(r"wall: [\d.,]+ s of suspended tasks, which overlap: ", alone.out), alone.out
    whole = pybpf("report", tmp_path / "all.pybpf", "-f", "text")
    assert re.match(r"wall: [\d.,]+ m?s of threads, and [\d.,]+ s of suspended tasks, which overlap: ", whole.out), whole.out
    assert re.search(r"% +- +- +(\S+ m?s +)?\[awaits: Future\] in ", whole.out), whole.out
    assert re.search(r" s of wall time here, and [\d.]+ s of suspended tasks$", whole.err, re.M), whole.err
    table = pybpf("report", tmp_path / "all.pybpf", "--by=state")
    assert re.search(r"^ +self .*awaits", table.out, re.M), table.out
    rest = pybpf("report", tmp_path / "all.pybpf", "-f", "json", "--ignore", re.escape(ROOT))
    seconds, states = sum(sample["value"] for sample in json.loads(rest.out)["samples"]) / 1e6, run.account["state_s"]
    chance = 3 * math.sqrt(states["on CPU"] / run.account["freq_hz"])  # that time is sampled
    assert seconds == pytest.approx(sum(states.values()), rel=0.02, abs=0.01 + chance)
    hidden = pybpf("report", tmp_path / "all.pybpf", "-f", "folded", "--anonymize")
    assert not re.search(r"naps|task: [ab]\]|Future", hidden.out) and ROOT in hidden.out, hidden.out


@on(pythons.of_each_version([item for item in pythons.interpreters() if item.version < (3, 7)]))
def test_pythons_whose_tasks_cannot_be_read(python):
    with harness.target(python, "spin.py") as target:
        run = pybpf("--async=all", "--mode=wall", "-p", str(target.pid), "-d", "0.2")
    assert run.code == 1 and run.out == ""
    assert re.search(r"runs Python %d\.%d.*from Python 3\.7 on" % python.version, harness.one_sentence(run.err))


@pytest.mark.parametrize("mode", [[], ["--mode=cpu"], ["--mode=gil"], ["--mode=memory"]], ids=str)
def test_it_needs_a_mode_of_waits(mode):
    run = pybpf("--async=all", *mode, "-p", "1", "-d", "0.1")
    assert run.code == 2 and "--mode=wall or --mode=offcpu" in harness.one_sentence(run.err)


def test_other_values_are_refused():
    run = pybpf("--async=some", "-p", "1")
    assert run.code == 2 and "it takes all, or no value" in harness.one_sentence(run.err)
