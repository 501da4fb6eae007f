# SPDX-License-Identifier: Apache-2.0
"""Events of processes that the kernel has no room for: none at usual rates, and when there are, what follows is mended."""

import contextlib
import os
import signal
import time

import pytest

import cgroups
import harness
import processes
from processes import burnt, end, program, sampling

# A machine that is shared may give pybpf no CPU for long: wrong is what is so twice.
pytestmark = [pytest.mark.usefixtures("profiler"), pytest.mark.flaky(reruns=1)]

LOSSES = ("lost_events", "lost_mappings", "lost_other_events")
MAPS, FORKS = 40000, 4700  # more than the kernel's buffers hold: 4,000 mappings by CPU, 8,700 events
USUAL_MAPS = 20000  # a second, at most


def crowds(what, count, rate=0, cpu=None):
    command = harness.default_python().command("crowds.py", what, str(count), str(rate))
    with program(None, None, argv=[*(["taskset", "-c", str(cpu)] if cpu is not None else []), *command]) as running:
        end(running)


def losses(run):
    return {name: run.stats["processes"][name] for name in LOSSES}


class stopped:
    """pybpf stands still meanwhile, and what the kernel tells it waits."""

    def __init__(self, run):
        self.pid = run.pid

    def __enter__(self):
        os.kill(self.pid, signal.SIGSTOP)
        harness.wait_for(lambda: state(self.pid) == "T")

    def __exit__(self, *_):
        os.kill(self.pid, signal.SIGCONT)


def state(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("what, count, rate", [("maps", MAPS, USUAL_MAPS), ("forks", 1000, 0)])
@pytest.mark.parametrize("choice", ["-p", "--all", "--cgroup"])
def test_nothing_is_lost(choice, what, count, rate):
    """Programs that start as fast as one CPU lets them, or map as one does that makes code all the time."""
    with harness.target(harness.default_python(), "spin.py") as target, cgroups.directory("pybpf-losses") as group:
        words = {"-p": ["-p", target.pid], "--all": ["--all"], "--cgroup": ["--cgroup", group.path]}[choice]
        if choice == "--cgroup":
            group.add(target.pid)
        with sampling(*words) as run:
            crowds(what, count, rate)
    assert losses(run) == dict.fromkeys(LOSSES, 0)
    assert harness.total(run.stacks()) > 0


@pytest.mark.parametrize("what, count", [("maps", MAPS), ("forks", FORKS)])
def test_losses_that_concern_nobody(what, count):
    """Of a process that was given by its PID nothing is lost, and nothing is said."""
    with harness.target(harness.default_python(), "spin.py") as target:
        with sampling("-p", target.pid) as run:
            with stopped(run):
                crowds(what, count)
            time.sleep(0.5)
    assert losses(run) == dict.fromkeys(LOSSES, 0)
    assert " lost" not in run.err


def test_losses_of_others():
    """What is lost of processes outside of the control group is counted apart."""
    with harness.target(harness.default_python(), "spin.py") as target, cgroups.directory("pybpf-losses") as group:
        group.add(target.pid)
        with sampling("--cgroup", group.path) as run:
            with stopped(run):
                crowds("forks", FORKS)
            time.sleep(0.5)
    found = losses(run)
    assert found["lost_events"] == 0 and found["lost_other_events"] > 0, found
    assert "to be profiled were lost" not in run.err


@pytest.mark.parametrize("what, count", [("maps", MAPS), ("forks", FORKS)])
def test_what_was_lost_is_found(what, count):
    """A Python that starts while nothing can be told of it is found afterwards, and the account says what was lost."""
    with sampling("--all") as run, contextlib.ExitStack() as stack:
        with stopped(run):
            crowds(what, count)
            running = stack.enter_context(program(harness.default_python(), "forks.py", 1, 1, 3000))
        child = end(running)["children"][0]
    found = losses(run)
    assert found["lost_events" if what == "forks" else "lost_mappings"] > 0, found
    assert ("to be profiled were lost" if what == "forks" else "of files that processes map were lost") in run.err
    seen = processes.by_process(run)
    samples = burnt(seen[child[0]][1])
    # Of its 3 s, some pass until the losses are noticed.
    assert samples > 0.5 * 3 * processes.RATE, (samples, run.err)


def test_a_loss_is_noticed_without_a_further_mapping():
    """The kernel's record of a loss comes with the next mapping on that CPU, which may never come."""
    cpu = max(os.sched_getaffinity(0))
    with sampling("--all") as run:
        with stopped(run):
            crowds("maps", MAPS, cpu=cpu)
        time.sleep(0.5)
    assert run.stats["processes"]["lost_mappings"] > 0
