# SPDX-License-Identifier: Apache-2.0
"""Processes that come and go: none is missed, and each has as many samples as it took CPU time."""

import json
from collections import Counter

import pytest

import harness
import processes
import pythons
from processes import LONG_S, burnt, check_named, end, program, sampling

pytestmark = pytest.mark.usefixtures("profiler")
LONG_MS = 1000 * LONG_S


def plain(versions=None):
    """One interpreter of each version that can run any file of this machine, without chroot and env before it."""
    found = {}
    for item in pythons.interpreters():
        if item.runs_here() and len(item.argv) == 1 and item.kind in ("shared", "static"):
            if not versions or item.version in versions:
                found.setdefault(item.version, item)
    return list(found.values())


def check_children(run, children, name):
    """The samples of each child and of all, against what wait4 said. Returns those by process."""
    seen = processes.by_process(run)
    samples = cpu_s = stretches = 0
    for pid, status, spent_s, _, switches in children:
        assert status == 0, "%s %d ended with status %#x" % (name, pid, status)
        root, stacks = seen.get(pid, (None, []))
        if spent_s >= LONG_S:
            assert root, "nothing of %s %d, which took %.3f s" % (name, pid, spent_s)
        samples += burnt(stacks)
        cpu_s += spent_s
        stretches += switches
    return seen, samples, cpu_s, stretches


def storm(interpreter, *args):
    with program(interpreter, "forks.py", *args) as running:
        with sampling("-p", running.pid, "--children") as run:
            said = end(running)
    return run, said["children"]


@pytest.mark.parametrize("count, rate, milliseconds", [(30, 20, LONG_MS), (200, 150, 10)])
@pytest.mark.parametrize("interpreter", plain([(2, 7), (3, 13)]), ids=lambda item: item.name)
def test_fork_storm(interpreter, count, rate, milliseconds):
    """A forked child is known before its first instruction."""
    run, children = storm(interpreter, count, rate, milliseconds)
    assert len(children) == count
    check_named(run)
    _, samples, cpu_s, stretches = check_children(run, children, "child")
    # A child also takes time to be forked and to end.
    processes.at_least(run, samples, count * milliseconds / 1000, stretches)
    processes.at_most(run, samples, cpu_s, stretches)
    assert run.stats["processes"]["started"] >= count
    assert run.stats["processes"]["missed"] <= 0.01 * count


def test_without_children_only_the_process_itself():
    with program(harness.default_python(), "forks.py", 20, 100, 50) as running:
        with sampling("-p", running.pid) as run:
            said = end(running)
    assert len(said["children"]) == 20
    assert harness.total(run.stacks()) <= processes.RATE * (said["own_s"] + 0.1)
    assert not burnt(run.stacks()), "a child's burn is in the parent's profile"


@pytest.mark.parametrize("milliseconds, count, share", [(LONG_MS, 50, 0.99), (30, 100, 0.95)])
def test_scripts_by_the_hundred(milliseconds, count, share):
    """Each begins with exec: the same binary, made ready without a look from user space."""
    python = harness.default_python()
    script = python.command("short.py", str(milliseconds))
    with program(python, "scripts.py", count, 2, *script) as running:
        with sampling("-p", running.pid, "--children") as run:
            said = end(running)
    assert len(said["children"]) == count
    check_named(run, share)
    _, samples, cpu_s, stretches = check_children(run, said["children"], "script")
    processes.at_least(run, samples, share * count * milliseconds / 1000, stretches)
    processes.at_most(run, samples, cpu_s, stretches)


def test_exec_chain():
    """One process: Python, sh, Python, each link another version where the machine has some."""
    found = [item.argv[0] for item in plain()]
    links = 2 * len(found)
    python = harness.default_python()
    with program(python, "execs.py", links, LONG_MS, *found) as running:
        with sampling("-p", running.pid, "--children") as run:
            spent = end(running)["burnt_s"]
    assert len(spent) == links
    # Each link is not known for as long as it takes to look at it; one that stays so is twice this share.
    check_named(run, share=1 - 1 / links / 2)
    seen = processes.by_process(run)
    assert set(seen) == {running.pid}, "one process, but %s" % sorted(seen)
    samples = burnt(seen[running.pid][1])
    processes.agree(run, samples, sum(spent), 20 * links, what="samples of the burns")
    names = {processes.read_root(stack)[0].name for stack, _ in run.stacks()}
    assert "sh" not in names, "the shell runs no Python"


def test_pid_used_again():
    """Scripts of all versions with one PID: names of one must not be those of the one before."""
    found = plain()
    count = 3 * len(found)
    python = pythons.one(name="system-python3.11")
    if not python:
        pytest.skip("/usr/bin/python3.11 is missing, whose ctypes is known to work")
    argv = python.command("reuse.py", str(count), "%g" % LONG_MS, *[item.argv[0] for item in found])
    with program(python, "reuse.py", argv=argv) as running:
        with sampling("-p", running.pid, "--children") as run:
            said = end(running)
    children = said["children"]
    times = Counter(pid for pid, *_ in children).most_common(1)[0][1]
    assert times >= count / 2, "other programs took the PID: it was used %d times" % times
    check_named(run)
    seen = processes.by_process(run)
    samples = sum(burnt(seen[pid][1]) for pid in {child[0] for child in children})
    processes.at_least(run, samples, count * LONG_S, sum(child[4] for child in children))
    for stack, _ in run.stacks():
        if "burn" in [frame.name for frame in stack]:
            own = [frame.name for frame in stack if frame.file.endswith(("short.py", "churn.py"))]
            assert own in (["<module>", "main", "burn"], ["<module>", "main", "burn", "cpu_s"]), harness.show(stack)


METHODS = [("fork", (2, 7)), ("fork", (3, 11)), ("forkserver", (3, 8)), ("forkserver", (3, 13)), ("spawn", (3, 13))]


@pytest.mark.parametrize("method, version", METHODS)
def test_multiprocessing(method, version):
    found = plain([version])
    if not found:
        pytest.skip("there is no Python %d.%d" % version)
    with program(found[0], "pools.py", method, 12, LONG_MS) as running:
        with sampling("-p", running.pid, "--children") as run:
            tasks = end(running)["tasks"]
    check_named(run)
    seen = processes.by_process(run)
    assert len({pid for pid, _ in tasks}) == 12
    for pid, spent_s in tasks:
        assert pid in seen, "nothing of worker %d, which took %.3f s" % (pid, spent_s)
    samples = sum(burnt(stacks) for _, stacks in seen.values())
    processes.agree(run, samples, sum(spent_s for _, spent_s in tasks), 100 * len(tasks))


def test_idle_and_busy():
    """--all with 300 that sleep and 30 that work."""
    with program(harness.default_python(), "many.py", 300, 30, LONG_MS) as running:
        with sampling("--all") as run:
            children = end(running)["children"]
    assert len(children) == 30
    assert run.stats["processes"]["seen"] >= 330
    seen, samples, cpu_s, stretches = check_children(run, children, "process")
    processes.at_least(run, samples, 30 * LONG_S, stretches)
    processes.at_most(run, samples, cpu_s, stretches)
    for pid, _, spent_s, _, switches in children:
        processes.agree(run, burnt(seen[pid][1]), spent_s, switches, what="samples of process %d" % pid)


def test_children_of_a_command(tmp_path):
    """pybpf -- COMMAND follows them, with --no-children it does not."""
    python = harness.default_python()
    argv = python.command("forks.py", "10", "50", "%g" % LONG_MS)
    for option in (), ("--no-children",):
        path = tmp_path / "profile.folded"
        run = harness.pybpf("-q", "-F", processes.RATE, *option, "-o", path, "--", *argv)
        assert run.code == 0, run.err
        children = {pid for pid, *_ in json.loads(run.out.splitlines()[-1])["children"]}
        run.out = path.read_text()
        if option:
            assert not burnt(run.stacks())
        else:
            # Each took as much CPU time as a hundred samples take.
            assert {pid for pid, (_, stacks) in processes.by_process(run).items() if burnt(stacks)} == children
            assert len(children) == 10
