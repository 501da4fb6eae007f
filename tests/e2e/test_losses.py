# SPDX-License-Identifier: Apache-2.0
"""Events of processes that the kernel has no room for: none at usual rates, and when there are, what follows is mended."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

import cgroups
import harness
import processes
import pythons
from processes import burnt, end, program, sampling

sys.path.append(str(pythons.TARGETS))
import crowds as crowd  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")

LOSSES = ("lost_events", "lost_mappings", "lost_other_events")
# More than the kernel has room for: 4,000 mappings of one CPU; 8,700 events, of which a child is two.
MAPS, FORKS = 12000, 4700
CPU = max(os.sched_getaffinity(0))


def crowds(what, count, *reader):
    command = harness.default_python().command("crowds.py", what, str(count), *map(str, reader))
    with program(None, None, argv=[*(["taskset", "-c", str(CPU)] if what == "maps" else []), *command]) as running:
        end(running)


def pid_max():
    return int(Path("/proc/sys/kernel/pid_max").read_text(encoding="ascii"))


def losses(run):
    return {name: run.stats["processes"][name] for name in LOSSES}


class stopped:
    """pybpf stands still meanwhile, and what the kernel tells it waits. Afterwards it reads that, twice and more."""

    def __init__(self, run):
        self.pid = run.pid

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.state(self.pid) == "T")

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)
        turns = crowd.sleeps(self.pid) + 5
        harness.wait_for(lambda: crowd.sleeps(self.pid) >= turns)


@pytest.mark.parametrize("what, count", [("maps", MAPS), ("forks", 1000)])
@pytest.mark.parametrize("choice", ["-p", "--all", "--cgroup"])
def test_nothing_is_lost(choice, what, count):
    """Programs that start, and mappings, more than there is room for, of which pybpf reads each part before the next comes."""
    with harness.target(harness.default_python(), "spin.py") as target, cgroups.directory("pybpf-losses") as group:
        words = {"-p": ["-p", target.pid], "--all": ["--all"], "--cgroup": ["--cgroup", group.path]}[choice]
        if choice == "--cgroup":
            group.add(target.pid)
        with sampling(*words) as run:
            crowds(what, count, run.pid)
    assert losses(run) == dict.fromkeys(LOSSES, 0)
    assert harness.total(run.stacks()) > 0


@pytest.mark.parametrize("what, count", [("maps", MAPS), ("forks", FORKS)])
def test_losses_that_concern_nobody(what, count):
    """A process that was given by its PID loses nothing, and nothing is said."""
    with harness.target(harness.default_python(), "spin.py") as target:
        with sampling("-p", target.pid) as run:
            with stopped(run):
                crowds(what, count)
    assert losses(run) == dict.fromkeys(LOSSES, 0)
    assert " lost" not in run.err


def test_losses_of_others():
    """What is lost of processes outside of the control group is counted apart."""
    with harness.target(harness.default_python(), "spin.py") as target, cgroups.directory("pybpf-losses") as group:
        group.add(target.pid)
        with sampling("--cgroup", group.path) as run:
            with stopped(run):
                crowds("forks", FORKS)
    found = losses(run)
    assert found["lost_events"] == 0 and found["lost_other_events"] > 0, found
    assert "to be profiled were lost" not in run.err


@pytest.mark.parametrize("what, count", [("maps", MAPS), ("forks", FORKS)])
def test_what_was_lost_is_found(what, count):
    """
    A Python that starts while nothing can be told of it is found afterwards, and the account says what was lost. Its
    children take CPU time one after the other, until the last of them has all its samples.
    """
    with sampling("--all") as run, contextlib.ExitStack() as stack:
        with stopped(run):
            crowds(what, count)
            running = stack.enter_context(program(harness.default_python(), "forks.py", 12, 12, 100))
        children = end(running)["children"]
    found = losses(run)
    assert found["lost_events" if what == "forks" else "lost_mappings"] > 0, found
    assert ("to be profiled were lost" if what == "forks" else "of files that processes map were lost") in run.err
    last, _, spent_s, _, switches = max(children, key=lambda child: (child[0] - running.pid) % pid_max())
    processes.at_least(run, burnt(processes.by_process(run).get(last, (None, []))[1]), 0.1, switches)
    assert spent_s >= 0.1


def test_a_loss_is_noticed_without_a_further_mapping():
    """The kernel's record of a loss comes with the next mapping on that CPU, which may never come."""
    with sampling("--all") as run:
        with stopped(run):
            crowds("maps", MAPS)
    assert run.stats["processes"]["lost_mappings"] > 0
