# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --short: many threads on one screen, with nothing lost that tells one from another."""

import json
import re
import subprocess
import sys

import pytest

import harness
import pythons
from harness import pybpf
from terminal import Terminal
from test_dump_core import gcore

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)
HEADING = re.compile(r'(?:Thread (?P<tid>\d+)(?: \(\d+ inside\))? "(?P<name>.+?)"|(?P<count>\d+) threads): (?P<doing>\[.+)')


def short(*args):
    run = pybpf("dump", "--short", *args)
    assert run.code == 0 and not run.err, run
    return run.out


def groups(text):
    """The threads of each group, by name of the first: (how many, what they do, the lines of the stack, their names)."""
    found = {}
    lines = text.split("\n\n", 1)[1].splitlines()
    starts = [i for i, line in enumerate(lines) if HEADING.fullmatch(line)]
    for i, end in zip(starts, starts[1:] + [len(lines)]):
        heading = HEADING.fullmatch(lines[i])
        names = lines[i + 1] if heading.group("count") else ""
        name = heading.group("name") or re.match(r'  \d+ "(.+?)"', names).group(1)
        stack = [line.strip() for line in lines[i + 1 + bool(names) : end]]
        found[name] = (int(heading.group("count") or 1), heading.group("doing"), stack, names)
    return found


@every_python
def test_equal_stacks_are_shown_once(python):
    with harness.target(python, "alike.py") as target:
        text = short("-p", target.pid)
        snapshot = json.loads(pybpf("dump", "-p", target.pid, "--json").out)
    tids = {thread["name"]: thread["tid"] for thread in snapshot["threads"]}
    found = groups(text)
    count, doing, stack, names = found["worker-0"]
    assert count == target.says["takers"] and doing == "[lock], which thread %d has, daemon" % tids["holder"]
    assert re.fullmatch(r"(take) \(alike\.py:\d+\)", stack[0]) and stack[1:] == ["[3 frames of threading]"]
    shown = re.findall(r'(\d+) "(worker-\d+)"', names)
    assert all(tids[name] == int(tid) for tid, name in shown) and len(names) <= 80
    assert names.endswith(" and %d more" % (count - len(shown))) and len(shown) >= 2
    assert sum(count for count, _, _, _ in found.values()) == len(snapshot["threads"])
    # The groups with the most threads come first.
    counts = [count for count, _, _, _ in found.values()]
    assert counts == sorted(counts, reverse=True)


@every_python
def test_a_line_for_each_function(python):
    """The same functions at the same lines as in the JSON, the innermost first, but for what the library began with."""
    with harness.target(python, "alike.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        found = groups(short("-p", target.pid))
        snapshot = json.loads(pybpf("dump", "-p", target.pid, "--json").out)
    threads = {thread["name"]: thread["frames"][::-1] for thread in snapshot["threads"]}
    for name, (_, _, stack, _) in found.items():
        shown = [line for line in stack if not line.startswith("[")]
        folded = [re.fullmatch(r"\[(\d+) frames? of ([\w., ]+)\]", line) for line in stack]
        repeated = [re.fullmatch(r"\[Previous line repeated (\d+) more times?\]", line) for line in stack]
        frames = threads[name]
        assert len(shown) + sum(int(m.group(1)) for m in folded + repeated if m) == len(frames), stack
        wanted = ["%s (%s:%d)" % (f["function"], "alike.py", f["line"]) for f in frames if f["file"].endswith("/alike.py")]
        assert [line for line in shown if "(alike.py:" in line] == list(dict.fromkeys(wanted)) or name == "deep"
        assert shown[0].startswith(frames[0]["function"] + " (")
    idle = [thread["name"] for thread in snapshot["threads"] if thread["idle"]]
    assert sorted(idle) == (["idle_0", "idle_1"] if python.version >= (3, 7) else [])
    assert sum(", waits for work" in doing for _, doing, _, _ in found.values()) == len(idle) // 2
    assert "[Previous line repeated 47 more times]" in found["deep"][2]
    if python.version >= (3, 7):
        # A thread of a pool without work is in nothing else.
        assert re.fullmatch(r"_worker \(concurrent/futures/thread\.py:\d+\)", found["idle_0"][2][0])
        assert found["idle_0"][2][1:] == ["[3 frames of threading]"]
        assert found["idle_0"][1].startswith("[lock], waits for work")
        below = 6 if python.version >= (3, 14) else 5
        assert found["pooled_0"][2][-1] == "[%d frames of concurrent.futures, threading]" % below
        assert "[3 frames of asyncio]" in found["loop"][2] and "called (" in found["loop"][2][0]


# A module of one's own with the name of one that is folded, and functions with the same names.
OWN = """
import os, sys, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
def _worker():
    run()
def run():
    time.sleep(1000)
print("[]"); sys.stdout.flush()
_worker()
"""


def test_functions_of_ones_own_are_not_folded(tmp_path):
    path = tmp_path / "threading.py"
    path.write_text(OWN, encoding="utf-8")
    with harness.started([sys.executable, str(path)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        text = short("-p", process.pid)
    assert re.findall(r"^  (.+?) \(", text, re.M) == ["run", "_worker", "<module>"]


def test_runpy_is_folded(tmp_path):
    (tmp_path / "mine.py").write_text(OWN, encoding="utf-8")
    argv = [sys.executable, "-m", "mine"]
    with harness.started(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=tmp_path) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        text = short("-p", process.pid)
    assert text.endswith("  [2 frames of runpy]\n")


def test_a_core_and_several_processes(tmp_path):
    with harness.target(harness.default_python(), "alike.py") as target:
        with harness.target(harness.default_python(), "spin.py") as other:
            both = short("-p", target.pid, "-p", other.pid)
            path, _ = gcore(target.pid, str(tmp_path))
        core = short("--core", path)
    assert re.findall(r"^Process (\d+): ", both, re.M) == [str(pid) for pid in sorted((target.pid, other.pid))]
    count, _, stack, _ = groups(core)["worker-0"]
    assert count == target.says["takers"] and stack[1:] == ["[3 frames of threading]"]


def test_a_terminal_is_told_of_it():
    """At the end of a long text, and only where it would be shorter."""
    with harness.target(harness.default_python(), "alike.py", "30") as target:
        (hint,) = [line for line in Terminal("dump", "-p", target.pid).lines()[-1:]]
        others = [Terminal("dump", "-p", target.pid, option).shown.decode() for option in ("--short", "--json", "--locals")]
        piped = pybpf("dump", "-p", target.pid).out
        stacks = len(groups(short("-p", target.pid)))
    with harness.target(harness.default_python(), "spin.py") as target:
        others.append(Terminal("dump", "-p", target.pid).shown.decode())
    threads, different = map(int, re.fullmatch(r"\[--short prints equal stacks once: these (\d+) threads have (\d+)\]", hint).groups())
    assert different == stacks and threads == piped.count("\nThread ") >= 30
    assert not any("--short prints" in text for text in [piped, *others])


def test_tasks_have_short_stacks():
    with harness.target(harness.default_python(), "task_tree.py", "blocks") as target:
        text = short("-p", target.pid, "--async")
    tasks = text[text.index("\nTasks (") :]
    assert "File " not in tasks and re.search(r"^    \w+ \(task_tree\.py:\d+\)$", tasks, re.M)


@pytest.mark.parametrize("option", ["--json", "--locals", "--native"])
def test_what_does_not_go_with_it(option):
    run = pybpf("dump", "--short", "-p", "1", option)
    assert run.code == 2 and run.err.startswith("pybpf: --short and %s exclude each other: " % option), run
