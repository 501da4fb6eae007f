# SPDX-License-Identifier: Apache-2.0
"""--mode=wall of processes that become another program, or another user's, and of those that are not asked for."""

import json
import pwd

import pytest

import harness
import processes
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

US = 1e6
SOME = [item for item in map(pythons.one, ((3, 8), (3, 12), pythons.NEWEST)) if item]
some_pythons = pytest.mark.parametrize("python", SOME, ids=lambda item: item.name)


def run_program(python, tmp_path, kind, *arguments):
    """What the run tells, its states, and what the program says last."""
    stats = tmp_path / "stats.json"
    command = python.command("programs.py", kind, *arguments)
    run = pybpf("--mode=wall", "--json-stats", stats, "-o", tmp_path / "out.folded", "--", *command)
    assert run.code == 0, run.err
    run.folded = harness.parse((tmp_path / "out.folded").read_text(encoding="utf-8"))
    return run, json.loads(stats.read_text())["state_s"], json.loads(run.out.splitlines()[-1])


def seconds_in(run, name):
    """On a CPU."""
    running = ((stack, us) for stack, us in run.folded if not stack[-1].text.startswith("["))
    return sum(us for stack, us in running if any(frame.name == name for frame in stack)) / US


@some_pythons
def test_children_without_python_are_asleep(python, tmp_path):
    """After some of them their program is known at once."""
    _, states, cpu_s = run_program(python, tmp_path, "children")
    assert states["on CPU"] < cpu_s + 0.5, (states, cpu_s)
    assert states["child"] > 1, states


@some_pythons
@pytest.mark.parametrize("kind", ["executes", "executes_in_thread"])
def test_time_belongs_to_the_program_that_took_it(python, kind, tmp_path):
    run, states, cpu_s = run_program(python, tmp_path, kind)
    assert 0.4 < seconds_in(run, "burn_before") < 0.75
    assert 0.2 < seconds_in(run, "burn_after") < 0.5
    assert abs(states["on CPU"] - cpu_s) < 0.25, (states, cpu_s)


def test_other_users_are_not_in_it():
    nobody = pwd.getpwnam("nobody").pw_uid
    python = pythons.one(name="system-python3.11") or harness.default_python()
    code = "import os, sys, time; os.setuid(%d); print('{}', flush=True)\nwhile True: time.sleep(0.05)"
    with harness.started([*python.argv, "-c", code % nobody], stdout=-1) as asked:
        with harness.started([*python.argv, "-c", code % 0], stdout=-1) as other:
            assert harness.read_ready_line(asked) == harness.read_ready_line(other) == {}
            run = pybpf("-p", "%d,%d" % (asked.pid, other.pid), "--by=process", "--user", "nobody", "--mode=wall", "-d", 1)
    assert run.code == 0, run.err
    found = processes.by_process(run)
    assert set(found) == {asked.pid}, found
    asleep = sum(us for stack, us in found[asked.pid][1] if stack[-1].text == "[sleep]") / US
    assert asleep > 0.8, found


def test_who_changes_its_user_is_not_in_it_from_then_on():
    with harness.started(harness.default_python().command("programs.py", "changes_user"), stdout=-1) as process:
        pid = harness.read_ready_line(process)["pid"]
        run = pybpf("--all", "--by=process", "--user", "root", "--mode=wall", "-d", 2)
    assert run.code == 0, run.err
    us = sum(us for stack, us in processes.by_process(run).get(pid, (None, []))[1])
    assert us / US < 1, run.out


def test_a_child_that_has_not_executed_yet_is_waited_for(tmp_path):
    """The kernel marks who waits for a vfork() as it marks a thread in a frozen control group."""
    python = pythons.one((3, 12))
    run, states, _ = run_program(python, tmp_path, "spawns", str(tmp_path / "fifo"))
    assert states.get("stopped", 0) == 0 and states["child"] > 0.8, states
    assert any(stack[-1].text == "[child]" and us / US > 0.8 for stack, us in run.folded), run.folded
