# SPDX-License-Identifier: Apache-2.0
"""--async: the asyncio task that ran, and the tasks that await it, are in each stack; a name is never wrong."""

import collections
import functools
import json
import re
import subprocess

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 999
SECONDS = 0.6
MANY = 0.9  # seconds, so that some hundred tasks are met
TASKS = [item for item in pythons.interpreters() if item.version >= (3, 8)]
NAMELESS = [item for item in pythons.interpreters() if item.version == (3, 7)]
OLD = [pythons.one(version) for version in ((2, 7), (3, 6))]


def on(pythons):
    return pytest.mark.parametrize("python", pythons, ids=lambda item: item.name)


every_version = on(pythons.of_each_version(TASKS))


def since(*version):
    return on([item for item in pythons.of_each_version(TASKS) if item.version >= version])


def chains_are_told(python):
    """From 3.14 on each task points to what awaits it. Before, a task does that awaits it alone, and gather() does."""
    return python.version >= (3, 14)


@functools.lru_cache(maxsize=None)
def run_tasks(python, kind, *options, seconds=SECONDS):
    """What the program says of its tasks, and its stacks."""
    with harness.priority_of(python.argv):
        done = subprocess.run(
            [harness.PYBPF, "--async", "-o", "/dev/stderr", "-q", "-F", str(RATE), *options, "--"]
            + python.command("tasks.py", kind, str(seconds)),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=harness.PATIENCE,
        )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout), harness.parse(done.stderr)


def is_task(frame):
    return bool(re.match(r"\[(task: |more tasks\]|several tasks\])", frame.text))


def chain(stack):
    return tuple(frame.text for frame in stack if is_task(frame))


def burnt(stacks, function="burn"):
    """Samples in a function, by chain."""
    found = collections.Counter()
    for stack, count in stacks:
        if stack[-1].name == function:
            found[chain(stack)] += count
    return found


def check_shares(says, found, chains):
    """The samples of each chain are as many as the CPU time of its last task, and there are no others."""
    if () not in chains.values():
        # Until the profiler has seen that asyncio was loaded, which takes as long as it takes.
        assert found.pop((), 0) <= 0.1 * sum(found.values()), found
    assert set(found) == set(chains.values())
    rate = sum(found.values()) / sum(says[name] for name in chains)
    for name, expected in chains.items():
        want = says[name] * rate
        assert abs(found[expected] - want) < 0.1 * want + 12, (name, found, says)


def tasks(*names):
    return tuple("[task: %s]" % name for name in names)


def check_gather(python, *options):
    says, stacks = run_tasks(python, "gather", *options)
    names = ("w1", "w2", "w3")
    check_shares(says, burnt(stacks), {"main": tasks("main"), **{name: tasks("main", name) for name in names}})


@every_version
def test_each_task_has_its_share(python):
    """Between a task and the one that awaits it is the future of gather()."""
    check_gather(python)


@on([item for item in (pythons.one((3, 8)), pythons.one((3, 12)), pythons.one((3, 14))) if item])
def test_kernels_without_bpf_loop(python):
    check_gather(python, "--without-kernel-feature=bpf_loop")


@every_version
def test_the_chain_of_groups_is_whole(python):
    """Names beyond ASCII are whole, longer ones than 64 bytes are cut; a class made of Task is one."""
    says, stacks = run_tasks(python, "nested")
    long = "x" * 80
    in_group = not chains_are_told(python) and python.version >= (3, 11)
    expected = {
        "\u20acuro": tasks("\u20acuro") if in_group else tasks("main", "inner", "\u20acuro"),
        "inner": tasks("main", "inner"),
        long: tasks("main", "x" * 64 + "..."),
    }
    check_shares(says, burnt(stacks), expected)


@every_version
def test_tasks_stand_between_the_loop_and_the_coroutine(python):
    _, stacks = run_tasks(python, "nested")
    checked = 0
    for stack, count in stacks:
        names = [frame.name for frame in stack]
        if stack[-1].name != "burn":
            continue
        checked += count
        at = names.index("_run") if "_run" in names else names.index("Handle._run")
        kinds = [is_task(frame) for frame in stack]
        assert kinds[at + 1] and not any(kinds[: at + 1]), names
        assert names[len(kinds) - kinds[::-1].index(True)] in ("work", "inner", "nested.<locals>.inner"), names
    assert checked > 0.8 * SECONDS * RATE


@every_version
def test_names_that_asyncio_gave(python):
    """They are numbers until somebody asks for them."""
    says, stacks = run_tasks(python, "automatic")
    check_shares(says, burnt(stacks), {name: tasks("Task-1", name) for name in says})


@every_version
def test_a_task_that_several_await(python):
    says, stacks = run_tasks(python, "several")
    found = burnt(stacks)
    if not chains_are_told(python):
        assert set(found) == {tasks("shared")}, found
        return
    both = found[("[several tasks]",) + tasks("shared")]
    assert both >= 0.7 * sum(found.values()) > 0, found
    # Its first part runs before the others await it.
    assert set(found) == {("[several tasks]",) + tasks("shared"), tasks("shared")}, found
    assert set(says) == {"shared"}


@every_version
def test_a_task_that_nobody_awaits(python):
    says, stacks = run_tasks(python, "beside")
    check_shares(says, burnt(stacks), {"inside": tasks("main", "inside"), "watch": tasks("watch")})


@since(3, 12)
def test_eager_tasks(python):
    """An eager task begins within the one that makes it, which goes on afterwards."""
    says, stacks = run_tasks(python, "eager")
    # To 3.13 the loop names a task after it made it, and so after its first step.
    names = {"main": "main", "e0": "e0", "e1": "e1"}
    if python.version < (3, 14):
        names.update(e0="Task-2", e1="Task-3")
    check_shares(says, burnt(stacks), {function: tasks(name) for function, name in names.items()})
    for stack, _ in stacks:
        if chain(stack) == tasks(names["e0"]) and stack[-1].name == "burn":
            functions = [frame.name for frame in stack]
            assert functions.index("eager") < [frame.text for frame in stack].index(chain(stack)[0]), functions


def check_names(python, kind, share):
    """Each task runs a function of its name. share: of samples without a task, at most."""
    says, stacks = run_tasks(python, kind, seconds=MANY)
    met = collections.Counter()
    for stack, count in stacks:
        functions = [frame.name for frame in stack if frame.name.startswith("name_")]
        if not functions:
            continue
        assert len(functions) == 1
        # On a loaded machine asyncio may be seen late: then there is no task, but never another one.
        assert chain(stack) in ((), tasks("main", functions[0][5:])), harness.show(stack)
        met[functions[0] if chain(stack) else None] += count
    assert says["tasks"] > 100 and len(met) > 40, (says, len(met))
    assert met[None] < share * sum(met.values()), (len(met), met[None])
    return stacks


@every_version
def test_tasks_that_come_and_go_are_never_confused(python):
    """Addresses of tasks and of names are used over and over."""
    check_names(python, "many", 0.3)


@every_version
def test_loops_of_several_threads_are_never_confused(python):
    stacks = check_names(python, "loops", 0.3)
    alone = [chain(stack) for stack, _ in stacks if any(frame.name == "plain" for frame in stack)]
    assert alone and set(alone) == {()}


@on([item for item in pythons.of_each_version(TASKS) if item.version <= (3, 13)])
def test_a_dict_of_running_tasks_that_the_program_mangles(python):
    """To 3.13 the tasks that run are in a dict that any code can change."""
    check_names(python, "mangled", 0.8)


@on(NAMELESS)
def test_tasks_without_names_have_those_of_their_coroutines(python):
    says, stacks = run_tasks(python, "plain")
    expected = {
        "main": tasks("plain"),
        "first": tasks("plain", "plain.<locals>.first"),
        "second": tasks("plain", "plain.<locals>.second"),
    }
    check_shares(says, burnt(stacks), expected)


@on(NAMELESS)
def test_coroutines_that_come_and_go_are_never_confused(python):
    _, stacks = run_tasks(python, "many", seconds=MANY)
    expected = tasks("many", "many.<locals>.short")
    found = collections.Counter()
    for stack, count in stacks:
        if any(frame.name.startswith("name_") for frame in stack):
            found[chain(stack)] += count
    assert set(found) <= {(), expected} and found[()] < 0.3 * found[expected], found


@on([item for item in TASKS + NAMELESS if item.version <= (3, 13) and item.kind not in ("debug", "stripped")])
def test_asyncio_that_is_imported_late(python):
    done = subprocess.run(
        [harness.PYBPF, "--async", "-o", "/dev/stderr", "-q", "-F", str(RATE), "--"]
        + python.command("late_tasks.py", "0.7", "0.7"),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=harness.PATIENCE,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = burnt(harness.parse(done.stderr), "spin")
    name = tasks("Task-1" if python.version >= (3, 8) else "run.<locals>.main")
    assert set(found) == {(), name}, found
    # On a loaded machine it is found late.
    assert found[name] > 0.5 * found[()] and abs(sum(found.values()) - 1.4 * RATE) < 0.15 * 1.4 * RATE, found


@every_version
def test_no_task_where_there_is_none(python):
    """A thread of the pool is in no task, whatever the loop's thread runs; nor is a task written in Python named."""
    says, stacks = run_tasks(python, "threads")
    check_shares(says, burnt(stacks), {"main": tasks("main"), "pool": ()})
    says, stacks = run_tasks(python, "python_task")
    assert set(burnt(stacks)) <= {(), tasks("unknown")}
    assert set(says) == {"foreign"}


@every_version
def test_a_long_chain_is_cut_where_it_says_so(python):
    _, stacks = run_tasks(python, "deep")
    expected = ("[more tasks]",) + tasks(*("d%d" % i for i in range(8, 0, -1)))
    found = burnt(stacks)
    assert set(found) == {expected}, found


@every_version
def test_waits_of_tasks(python):
    """--mode=wall: what a task waits for on its loop's thread is its own; microseconds."""
    says, stacks = run_tasks(python, "blocks", "--mode=wall")
    found = collections.Counter()
    for stack, us in stacks:
        if stack[-1].text == "[sleep]" and chain(stack):
            found[chain(stack)] += us
    assert set(found) == {tasks("main", name) for name in ("b1", "b2")}, found
    for name in ("b1", "b2"):
        # The time until it has a CPU again, after each of its sleeps, is no sleep.
        assert -0.01 < says[name] - found[tasks("main", name)] / 1e6 < 0.1


@on([item for item in pythons.of_each_version(TASKS) if "musl" not in item.name])  # it has no ctypes
def test_a_process_that_runs_already(python):
    """Its asyncio is found by the first look, also after a fork; names are hashed with --anonymize."""
    with harness.target(python, "tasks.py", "forked", "30") as target:
        run = harness.record(target.pid, "--async", "--children", seconds=1, rate=RATE)
        hidden = harness.record(target.pid, "--async", "--children", "--anonymize", seconds=0.5, rate=RATE)
    found = burnt(run.stacks())
    assert found[tasks("child")] > 10 and found[tasks("parent")] > 10, found
    assert set(found) == {tasks("child"), tasks("parent")}, found
    names = {frame.text for stack, _ in hidden.stacks() for frame in stack if is_task(frame)}
    assert len(names) == 2 and all(re.fullmatch(r"\[task: w[0-9a-f]{12}\]", name) for name in names), names


@on([item for item in OLD if item])
def test_older_pythons_are_refused(python):
    with harness.target(python, "spin.py") as target:
        run = pybpf("--async", "-p", str(target.pid), "-d", "0.2")
    assert run.code == 1 and run.out == ""
    assert re.search(r"runs Python %d\.%d.*from Python 3\.7 on" % python.version, harness.one_sentence(run.err))
