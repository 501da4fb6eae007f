# SPDX-License-Identifier: Apache-2.0
"""Pythons that are started, by the hundred, on a machine that has more to do than it can: which does pybpf lose?

A program is lost that ran its burn() to the end without one sample there.
"""

import contextlib
import itertools
import json
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import List

import cgroups
import containers
import harness
import processes

BURN_MS = 50  # as many samples, at processes.RATE
BATCH = 5  # programs of one targets/turns.py, whose time is limited
BUSY, STARTERS = "while :; do :; done", "while :; do /bin/true; done"
# In the words of a refusal (validate.c, discovery.c).
REFUSED = ("does not look like", "cannot be read", "are not usable")
PROGRAM = "short.py"


@dataclass
class Tally:
    started: int = 0
    lost: List[str] = field(default_factory=list)  # the interpreters' names
    refused: List[str] = field(default_factory=list)  # sentences
    late: int = 0  # samples taken before the interpreter was found
    asked: int = 0

    def add(self, names, burnt, run):
        """names: of the interpreters, burnt: samples in each program's burn()."""
        samples = run.stats["samples"]
        self.started += len(names)
        self.lost += [name for name, count in zip(names, burnt) if not count]
        self.refused += [row for row in run.err.splitlines() if any(words in row for words in REFUSED)]
        self.late += run.stats["lost"].get("not_ready", 0)
        self.asked += samples["asked"]

    def text(self):
        late = 100 * self.late / max(1, self.asked)
        return "%d started, %d lost, %d refused; %.2f %% of %d samples came before the interpreter was found" % (
            self.started,
            len(self.lost),
            len(self.refused),
            late,
            self.asked,
        )


@contextlib.contextmanager
def load(busy=2, starters=3):
    """A machine of few CPUs has no time left: loops that compute, and loops that start programs."""
    with contextlib.ExitStack() as stack:
        for script in [BUSY] * busy + [STARTERS] * starters:
            stack.enter_context(harness.started(harness.tied(["/bin/sh", "-c", script])))
        yield


def turns(interpreters, count):
    """`count` interpreters, each as often as the next."""
    return list(itertools.islice(itertools.cycle(interpreters), count))


def batches(items):
    return [items[at : at + BATCH] for at in range(0, len(items), BATCH)]


def as_command(interpreters, count, tally):
    """pybpf -- python ...: a run for each."""
    for interpreter in turns(interpreters, count):
        with tempfile.TemporaryDirectory() as folder:
            out, stats = os.path.join(folder, "profile.folded"), os.path.join(folder, "stats.json")
            argv = interpreter.command(PROGRAM, str(BURN_MS))
            run = harness.pybpf("-F", processes.RATE, "-o", out, "--json-stats", stats, "--", *argv)
            assert run.code == 0, "%s: pybpf ended with %d: %s" % (interpreter.name, run.code, run.err)
            run.out = Path(out).read_text(encoding="utf-8", errors="surrogateescape")
            run.stats = json.loads(Path(stats).read_text(encoding="utf-8"))
        tally.add([interpreter.name], [processes.burnt(run.stacks())], run)


def add_children(tally, items, children, run, number):
    """number: what of a process's root tells it from others."""
    ours, burnt = {child[0] for child in children}, {}
    for root, stacks in processes.by_process(run).values():
        if number(root) in ours:
            burnt[number(root)] = burnt.get(number(root), 0) + processes.burnt(stacks)
    for item, (pid, status, *_) in zip(items, children):
        assert status == 0, "%s, process %d, ended with status %#x" % (item.name, pid, status)
    tally.add([item.name for item in items], [burnt.get(child[0], 0) for child in children], run)


def commands(items):
    return json.dumps([item.command(PROGRAM, str(BURN_MS)) for item in items])


def among_all(interpreters, count, tally):
    """pybpf --all, on the machine where they start."""
    for items in batches(turns(interpreters, count)):
        with processes.sampling("--all") as run:
            with processes.program(harness.default_python(), "turns.py", commands(items)) as running:
                said = processes.end(running)
        add_children(tally, items, said["children"], run, lambda root: root.pid)


def in_cgroup(interpreters, count, tally):
    """pybpf --cgroup PATH: they are in the group from their first instruction on."""
    python = harness.default_python()
    for items in batches(turns(interpreters, count)):
        with cgroups.directory("pybpf-starts-%d" % os.getpid()) as place:
            with processes.program(python, "turns.py", commands(items)) as running:
                place.add(running.pid)
                with processes.sampling("--cgroup", place.path) as run:
                    said = processes.end(running)
        add_children(tally, items, said["children"], run, lambda root: root.pid)


def in_container(interpreters, count, tally):
    """pybpf --container NAME: the image's Pythons, in PID and user namespaces of their own."""
    inside = [item for item in interpreters if item.root == str(containers.image())]
    for items in batches(turns(inside, count)):
        argvs = [[item.argv[2], *item.command(PROGRAM, str(BURN_MS))[len(item.argv) :]] for item in items]
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            command = containers.command("turns.py", json.dumps(argvs), "/tmp/word/go")
            with containers.container("starts", command, binds={folder: "/tmp/word"}) as running:
                with processes.sampling("--container", running.id) as run:
                    Path(folder, "go").touch()
                    said = harness.read_ready_line(running.process)
        add_children(tally, items, said["children"], run, lambda root: root.inner)


WAYS = {"command": as_command, "all": among_all, "cgroup": in_cgroup, "container": in_container}
