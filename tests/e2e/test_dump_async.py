# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --async: the tree of tasks is that of asyncio.capture_call_graph(), and shows nothing that never was."""

import json
import re
import subprocess
import time

import pytest

import harness
import pythons
from harness import pybpf

TASKS = [item for item in pythons.interpreters() if item.version >= (3, 14)]
# Those whose tasks are found in other ways, and those without tasks that can be read.
OLD = [item for item in pythons.interpreters() if (3, 7) <= item.version < (3, 14)]
OLD_VERSIONS = pythons.of_each_version(OLD)
WITHOUT = pythons.of_each_version([item for item in pythons.interpreters() if item.version < (3, 7)])
LOOKS = 60


def on(items):
    return pytest.mark.parametrize("python", items, ids=lambda item: item.name)


every_build = on(TASKS)
every_python = on([item for item in TASKS if item.kind != "debug"])
one_python = on(TASKS[:1])
every_old = on(OLD)
every_version = on(pythons.of_each_version(TASKS) + OLD_VERSIONS)
# Tasks of 3.7 have no names.
with_names = on([item for item in pythons.of_each_version(TASKS) + OLD_VERSIONS if item.version >= (3, 8)])


def dump(pid, *args):
    run = pybpf("dump", "--async", "--json", "-p", pid, *args)
    assert run.code == 0 and not run.err, run
    (line,) = run.out.splitlines()
    return json.loads(line)


def text(pid, *args):
    run = pybpf("dump", "--async", "--no-source", "-p", pid, *args)
    assert run.code == 0 and not run.err, run
    return run.out[run.out.index("\nTasks (") + 1 :] if "\nTasks (" in run.out else run.out


def asleep(target):
    """Waits until the target's loop waits for events."""
    harness.wait_for(lambda: harness.state(target.pid) == "S")


def frames(task):
    return [[frame["function"], frame["file"], frame["line"]] for frame in task["frames"]]


def functions(task):
    return [frame["function"] for frame in task["frames"]]


def by_name(snapshot):
    return {task["name"]: task for task in snapshot["tasks"]}


def left_out(snapshot):
    return sum(snapshot["tasks_left_out"].values())


@every_build
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=str)
def test_the_tree_is_that_of_asyncio_itself(python, options):
    """Names, functions with lines and awaiters of every task are those of asyncio.capture_call_graph()."""
    with harness.target(python, "task_tree.py", "snapshot") as target:
        asleep(target)
        snapshot = dump(target.pid, *options)
    found = {str(task["id"]): task for task in snapshot["tasks"]}
    says = target.says["tasks"]
    # And the main task, which asked.
    assert len(says) > 15 and len(found) == len(says) + 1 and not left_out(snapshot)
    for key, want in says.items():
        task = found[key]
        shown = frames(task)
        assert task["name"] == want["name"]
        assert shown[: len(want["frames"])] == want["frames"], task
        # capture_call_graph() does not go into asynchronous generators.
        beyond = ["agen", "sleep"] if want["name"] == "iterates" else []
        assert functions(task)[len(want["frames"]) :] == beyond, task
        assert sorted(task["awaited_by"]) == want["awaited_by"], (task, want)
        assert task["state"] == "suspended" and not task["moving"] and not task["awaited_by_others"]
        assert task["tid"] == target.pid
    assert snapshot["task_cycles"] == [] and snapshot["tasks_note"] is None


# What awaits them is told to 3.13; it is nothing where it is not known.
AWAITED_BY = {
    "g-1": {"gathers"},
    "g-2": {"gathers"},
    "g-3": {"gathers"},
    "shared": {"joins-1", "joins-2"},
    "deep-1": {"group-gathers"},
    "deep-2": {"group-gathers"},
}


@every_old
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=str)
def test_the_tree_of_older_pythons(python, options):
    """Names and functions with lines of every task are those that its coroutines tell."""
    with harness.target(python, "task_tree.py", "snapshot") as target:
        asleep(target)
        snapshot = dump(target.pid, *options)
    found = {str(task["id"]): task for task in snapshot["tasks"]}
    names = {task["id"]: task["name"] for task in snapshot["tasks"]}
    says = target.says["tasks"]
    assert len(says) > 10 and len(found) == len(says) + 1 and not left_out(snapshot)
    for key, want in says.items():
        task = found[key]
        assert frames(task) == want["frames"] and task["name"] == want["name"]
        assert task["state"] == "suspended" and not task["moving"] and task["tid"] == target.pid
        if python.version >= (3, 8):
            assert {names[one] for one in task["awaited_by"]} == AWAITED_BY.get(task["name"], set()), task
    assert snapshot["task_cycles"] == [] and snapshot["tasks_note"] is None


@every_python
def test_the_tree_as_text(python):
    with harness.target(python, "task_tree.py", "snapshot") as target:
        asleep(target)
        out = text(target.pid)
        sources = pybpf("dump", "--async", "-p", target.pid).out
    heads = [line for line in out.splitlines() if re.match(r" *(Task|Tasks) ", line)]
    assert heads[0] == "Tasks (18, 0 of them running)"
    at = heads.index('Task "grouped": awaits Future')
    assert heads[at + 1 : at + 4] == [
        '  Task "in-group": awaits Future',
        '  Task "group-gathers": awaits _GatheringFuture',
        '    Task "deep-1" and 1 more like it ("deep-2"): awaits Future',
    ]
    at = heads.index('Task "joins-1": awaits task shared')
    assert heads[at + 1] == '  Task "shared": see above'
    assert 'Task "\u20acuro;\\x1b[31m": awaits Future' in heads and "\x1b" not in out
    assert re.search(r"\n    File \".*task_tree.py\", line \d+, in middle\n      await leaf\(\)\n", sources)


@with_names
def test_cycles_are_named(python):
    with harness.target(python, "task_tree.py", "cycle") as target:
        asleep(target)
        snapshot = dump(target.pid)
        out = text(target.pid)
    names = {task["id"]: task["name"] for task in snapshot["tasks"]}
    cycles = [[names[key] for key in cycle] for cycle in snapshot["task_cycles"]]
    assert cycles == [["a", "b", "c"], ["x", "y"]]
    assert '        Cycle: "a" awaits "b" awaits "c" awaits "a"\n' in out and 'Cycle: "x" awaits "y" awaits "x"\n' in out
    assert out.count("Cycle") == 2
    for name in ("a", "b", "c", "d", "x", "y", "outside"):
        assert out.count('Task "%s":' % name) == 1


@every_version
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=str)
def test_a_task_that_blocks_its_loop(python, options):
    with harness.target(python, "task_tree.py", "blocks") as target:
        asleep(target)
        snapshot = dump(target.pid, *options)
        out = text(target.pid)
    (stuck,) = [task for task in snapshot["tasks"] if task["state"] == "running"]
    main, hangs = [task for task in sorted(snapshot["tasks"], key=lambda task: len(task["awaited_by"])) if task != stuck]
    assert stuck["awaits"] is None and not stuck["moving"]
    # Functions have their qualified names from 3.11 on.
    assert [name.split(".")[-1] for name in functions(stuck)] == ["outer", "inner", "stuck"]
    assert stuck["awaited_by"] == hangs["awaited_by"] == [main["id"]]
    assert hangs["awaits"] == "first step" and functions(hangs) == ["middle"] and hangs["state"] == "suspended"
    assert re.search(r'\n  Task ".*": running on thread %d\n' % target.pid, out)
    if python.version >= (3, 8):
        assert (stuck["name"], hangs["name"]) == ("stuck", "hangs")


def awaited(tasks):
    """By the outermost function of a task, what it awaits."""
    return {task["frames"][0]["function"].split(".")[-1]: task["awaits"] for task in tasks if task["frames"]}


@every_version
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=str)
def test_sockets_for_which_tasks_wait(python, options):
    """Streams, also one whose buffer is full, are told by their peers; a future of somebody else is not."""
    with harness.target(python, "task_peers.py") as target:
        line, data, room = target.says["ports"]
        asleep(target)
        tasks = dump(target.pid, *options)["tasks"]
    found = awaited(tasks)
    assert found["wait_for_line"] == f"tcp 127.0.0.1:{line}"
    assert found["wait_for_bytes"] == f"tcp [::1]:{data}"
    assert found["wait_for_room"] == f"tcp 127.0.0.1:{room}"
    assert {found[name] for name in ("wait_for_own", "wait_for_event", "wait_for_time")} == {"Future"}
    served = [task["awaits"] for task in tasks if task["frames"] and task["frames"][0]["function"] == "serve"]
    assert sorted(served) == sorted([f"tcp clients of :{line}"] * 2 + [f"tcp clients of :{data}"])


@every_build
def test_an_eager_task(python):
    with harness.target(python, "task_tree.py", "eager") as target:
        asleep(target)
        tasks = by_name(dump(target.pid))
    assert {task["state"] for task in tasks.values()} == {"running"} and len(tasks) == 2
    # Its name comes after its first step, as docs/asyncio.md says.
    (eager,) = [task for name, task in tasks.items() if name != "Task-1"]
    assert functions(eager) == ["eager.<locals>.outer"] and functions(tasks["Task-1"]) == []
    assert not any(task["moving"] for task in tasks.values())


@every_python
def test_thousands_of_tasks(python):
    with harness.target(python, "task_tree.py", "many") as target:
        asleep(target)
        snapshot = dump(target.pid)
        out = text(target.pid)
    tasks = by_name(snapshot)
    assert len(tasks) == 5001 and not left_out(snapshot)
    main = tasks.pop("Task-1")["id"]
    assert all(task["awaited_by"] == [main] for task in tasks.values())
    assert '  Task "t0" and 1249 more like it ("t4", ' in out and '  Task "t1" and 3749 more like it ("t2", ' in out
    assert out.count("Task ") == 3


@every_version
def test_tasks_that_differ_in_nothing(python):
    """Their addresses, and those of their coroutines, are in rows of equal distances: each is told from the others."""
    with harness.target(python, "task_tree.py", "same") as target:
        asleep(target)
        snapshot = dump(target.pid)
    assert len({task["id"] for task in snapshot["tasks"]}) == len(snapshot["tasks"]) == 3001
    assert not left_out(snapshot)


@with_names
def test_loops_of_several_threads(python):
    with harness.target(python, "task_tree.py", "loops") as target:
        asleep(target)
        snapshot = dump(target.pid)
        out = text(target.pid)
    tasks, tids = by_name(snapshot), {thread["tid"] for thread in snapshot["threads"]}
    assert tasks["in-main"]["tid"] == target.pid and tasks["in-thread"]["tid"] in tids - {target.pid}
    assert tasks["left"]["tid"] is None and len(tasks) == 5
    assert 'Task "left": awaits Future, no thread runs it\n' in out
    assert re.search(r'^Task "Task-\d+": awaits task in-main, of thread %d$' % target.pid, out, re.M)


@with_names
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=str)
def test_tasks_that_another_thread_made(python, options):
    """A task is of the thread that runs its loop, whoever made it."""
    with harness.target(python, "task_tree.py", "made_elsewhere") as target:
        asleep(target)
        snapshot = dump(target.pid, *options)
        out = text(target.pid)
    tasks = by_name(snapshot)
    (second,) = [thread["tid"] for thread in snapshot["threads"] if thread["name"] == "second"]
    assert {name: task["tid"] for name, task in tasks.items()} == {
        "by-ended": target.pid, "by-living": target.pid, "by-first": second, "stuck": second,
    }
    assert [name for name, task in tasks.items() if task["state"] == "running"] == ["stuck"]
    assert [name.split(".")[-1] for name in functions(tasks["stuck"])] == ["stuck"]
    assert not any(task["moving"] for task in snapshot["tasks"]) and "no thread runs it" not in out


def check_churn(snapshot):
    """Each task has its own functions and its own awaiter, whatever moved meanwhile."""
    names = {task["id"]: task["name"] for task in snapshot["tasks"]}
    for task in snapshot["tasks"]:
        match = re.fullmatch(r"p(\d+)(\.c)?", task["name"])
        if not match:
            continue
        number, child = match.groups()
        own = ("child_%s" if child else "parent_%s") % number
        assert functions(task)[:1] in ([], [own], ["[unnamed]"]), task
        assert functions(task) or task["state"] == "running", task
        wanted = [] if not task["awaited_by"] else ["p" + number] if child else ["root"]
        assert [names[key] for key in task["awaited_by"]] == wanted, (task, names)
    assert snapshot["task_cycles"] == []


@with_names
def test_tasks_that_come_and_go(python):
    met, moving, longest = set(), 0, 0
    with harness.target(python, "task_tree.py", "churn") as target:
        for look in range(LOOKS):
            begin = time.monotonic()
            snapshot = dump(target.pid, *(["--freeze"] if look % 4 == 3 else []))
            longest = max(longest, time.monotonic() - begin)
            check_churn(snapshot)
            tasks = by_name(snapshot)
            met |= set(tasks)
            moving += sum(task["moving"] for task in tasks.values())
            if snapshot["tasks_left_out"]["torn_lists"]:
                continue
            # Those that stand are found each time, and are never taken for moving ones.
            assert tasks["stands-1"]["awaited_by"] == [tasks["stands-2"]["id"]]
            assert not tasks["stands-1"]["moving"] and not tasks["stands-2"]["moving"]
            if look % 4 == 3:
                assert not any(task["moving"] for task in tasks.values())
        # A list that changes at each attempt is left out in part.
        found = any('Task "stands-2": awaits task stands-1\n' in text(target.pid) for _ in range(5))
    assert len(met) > 20 and longest < harness.PATIENCE / 2, (len(met), moving, longest)
    assert found


@one_python
def test_two_looks(python):
    with harness.target(python, "task_tree.py", "cycle") as target:
        asleep(target)
        run = pybpf("dump", "--async", "-p", target.pid, "--diff-after", "0.1")
    assert run.code == 0 and run.out.count("\nTasks (") == 1 and "has not run for" in run.out


@every_version
def test_a_process_without_asyncio(python):
    with harness.target(python, "spin.py") as target:
        snapshot, out = dump(target.pid), text(target.pid)
    # Where the interpreter has the module inside, it cannot be told that it was not imported.
    if snapshot["tasks_note"] is None:
        assert snapshot["tasks"] == [] and "\nTasks (0, 0 of them running)\n" in "\n" + out
        return
    assert snapshot["tasks"] is None and snapshot["task_cycles"] is None and snapshot["threads"]
    assert "asyncio" in snapshot["tasks_note"] and out.endswith("\nNo tasks: %s\n" % snapshot["tasks_note"])


@on(WITHOUT)
def test_pythons_whose_tasks_cannot_be_read(python):
    with harness.target(python, "spin.py") as target:
        snapshot = dump(target.pid)
    assert snapshot["tasks"] is None and snapshot["threads"]
    assert re.match(r"asyncio's tasks can be read from Python 3\.7 on, and this is %d\.%d" % python.version, snapshot["tasks_note"])


def test_without_the_option_there_is_nothing_of_tasks():
    with harness.started(["/usr/bin/python3", "-c", "input()"], stdin=subprocess.PIPE) as process:
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        run = pybpf("dump", "-p", process.pid)
        snapshot = json.loads(pybpf("dump", "-p", process.pid, "--json").out)
    assert "asks" not in run.out and snapshot["tasks"] is None and snapshot["tasks_note"] is None
