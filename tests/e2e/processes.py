# SPDX-License-Identifier: Apache-2.0
"""Runs of pybpf on many processes at once, and CPU time to hold their samples against.

The timer's beat meets a stretch of CPU time of n + f of its periods n or n + 1 times. Over all stretches (there are no
more than a process's switches) that is an error of a half times the root of their number at most, as a standard
deviation; the clock itself, which goes a little up and down and is late where a virtual machine's host is, has CLOCK.
While the host does not run a CPU at all there are no interrupts, and the program that it was at is charged for the time:
tests/targets/beat.c tells how long that was, Run.stalled_s. Where the host takes a CPU away for less than a period, the
interrupt comes all the same, and the program is not charged: Run.stolen_s.
"""

import contextlib
import json
import math
import os
import re
import subprocess
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import harness

RATE = 999
Z = 3.2905  # 99.9 % of a normal distribution lie so many standard deviations around the mean
CLOCK = 0.04
NAMED = 0.99  # share of samples, for processes that live LONG_S or longer
LONG_S = 0.15
ENABLED_S = 0.1  # from the first CPU's event to the last's
BEAT = Path(harness.PYBPF).parent / "beat"
ROOT = re.compile(r"(?P<name>.*) \((?P<pid>\d+)(?:, (?P<inner>\d+) inside)?\)", re.S)


@dataclass(frozen=True)
class Root:
    """What stands at the root of a stack of one process among several."""

    name: str
    pid: int
    inner: Optional[int] = None
    container: str = ""


def read_root(stack, container=False):
    """(Root, the frames above it)"""
    above = stack[1:] if container else stack
    match = ROOT.fullmatch(above[0].text)
    assert match, "no process at the root: %s" % harness.show(stack)
    inner = match.group("inner")
    name = stack[0].text if container else ""
    return Root(match.group("name"), int(match.group("pid")), inner and int(inner), name), above[1:]


def by_process(run, container=False):
    """PID -> (Root, its stacks without it)."""
    found = {}
    for stack, count in run.stacks():
        root, frames = read_root(stack, container)
        known, stacks = found.setdefault(root.pid, (root, []))
        # A program that executes another one has a new name.
        assert (known.inner, known.container) == (root.inner, root.container), (known, root)
        stacks.append((frames, count))
    return found


def by_name(run):
    """What stands at the root -> stacks without it."""
    found = defaultdict(list)
    for stack, count in run.stacks():
        found[stack[0].text].append((stack[1:], count))
    return found


def burnt(stacks):
    """Samples in the burn of tests/targets/churn.py, below the program's own main."""
    number = 0
    for stack, count in stacks:
        names = [frame.name for frame in stack]
        if "burn" in names:
            at = names.index("burn")
            assert names[at - 1] == "main", harness.show(stack)
            assert {"churn.py"} == {os.path.basename(frame.file) for frame in stack[at:]}, harness.show(stack)
            number += count
    return number


@contextlib.contextmanager
def sampling(*args, rate=RATE, ends=False):
    """pybpf, sampling until the end of the block, or with ends until it ends by itself; the Run is then whole."""
    run = harness.Run(-1, "", "")
    stolen_before_s = stolen_s()
    with tempfile.TemporaryDirectory() as folder:
        out, stats = os.path.join(folder, "profile.folded"), os.path.join(folder, "stats.json")
        words = [harness.PYBPF, *args, "-F", rate, "-o", out, "--json-stats", stats]
        process = subprocess.Popen(
            harness.tied([str(word) for word in words], "TERM"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        run.pid = process.pid
        beat = subprocess.Popen([BEAT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        try:
            harness.wait_for(lambda: process.poll() is not None or is_sampling(process.pid))
            if process.poll() is not None:
                raise AssertionError("pybpf ended with %d: %s" % (process.returncode, process.stderr.read()))
            time.sleep(ENABLED_S)
            yield run
            run.stalled_s = float(beat.communicate()[0])
            run.stolen_s = stolen_s() - stolen_before_s
            if not ends:
                harness.interrupt(process)
            err = process.communicate(timeout=harness.PATIENCE)[1]
        finally:
            harness.stop(beat)
            harness.stop(process)
        run.code, run.err = process.returncode, err.decode("utf-8", "replace")
        assert run.code == 0 and os.path.exists(out), "pybpf ended with %d: %s" % (run.code, run.err)
        run.out = Path(out).read_text(encoding="utf-8", errors="surrogateescape")
        run.stats = json.loads(Path(stats).read_text(encoding="utf-8"))


def sampled_for(seconds, *args, rate=RATE):
    """The Run, and for how long each thread that was there before was surely in it, by a clock of ours."""
    with sampling(*args, rate=rate) as run:
        harness.wait_for(lambda: harness.samples_now(run.pid))
        begin = time.monotonic()
        time.sleep(seconds)
        least_s = time.monotonic() - begin
    return run, least_s


def stolen_s():
    """CPU time that the host has given to others, of all CPUs since the boot."""
    with open("/proc/stat", encoding="ascii") as lines:
        return int(next(lines).split()[8]) / os.sysconf("SC_CLK_TCK")


def is_sampling(pid):
    """Has the first of its events been there? Needs --json-stats, which has the kernel count; the rest come in a moment."""
    return harness.program_runs(pid)[1] > 0


@contextlib.contextmanager
def program(interpreter, name, *args, argv=None):
    """A program of churn.py that waits for the word; see end()."""
    words = argv or interpreter.command(name, *map(str, args))
    with harness.started(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        yield harness.Target(process, harness.read_ready_line(process))


def end(running):
    """Gives the word, and returns what the program says when it is through."""
    running.process.stdin.close()
    said = harness.read_ready_line(running.process)
    assert running.process.wait(harness.PATIENCE) == 0
    return said


def interval(cpu_s, stretches):
    """Half of the 99.9 % interval around the samples of so much CPU time."""
    return Z * 0.5 * math.sqrt(stretches + 1) + CLOCK * cpu_s * RATE


def agree(run, samples, cpu_s, stretches, what="samples"):
    at_least(run, samples, cpu_s, stretches, what)
    at_most(run, samples, cpu_s, stretches, what)


def at_least(run, samples, cpu_s, stretches, what="samples"):
    """The samples of CPU time in which there may be some more of the same kind."""
    half = interval(cpu_s, stretches)
    assert samples >= (cpu_s - run.stalled_s) * RATE - half, "%d %s for %.3f s of CPU: %.0f - %.0f were to come; %s, %s" % (
        samples,
        what,
        cpu_s,
        cpu_s * RATE,
        half,
        "the machine stood still for %.3f s" % run.stalled_s,
        run.stats,
    )


def at_most(run, samples, cpu_s, stretches, what="samples"):
    half = interval(cpu_s, stretches)
    assert samples <= (cpu_s + run.stolen_s) * RATE + half, "%d %s for %.3f s of CPU: %.0f + %.0f at most; %s" % (
        samples,
        what,
        cpu_s,
        cpu_s * RATE,
        half,
        "the host took away %.3f s" % run.stolen_s,
    )


def unnamed(stats):
    """Samples of wanted processes that no stack was printed for although Python ran, or may have run."""
    return sum(stats["lost"].values())


def check_named(run, share=NAMED, fewest=200, of_all=False):
    """
    The share of samples with a name, which is returned too. A machine that stands still delays the names, too. of_all:
    processes of others end before it is known whether they are wanted.
    """
    samples = run.stats["samples"]
    others = run.stats["lost"]["missed"] if of_all else 0
    everything = samples["asked"] - others
    assert everything >= fewest, "too few samples to tell anything: %s" % run.stats
    named = 1 - (unnamed(run.stats) - others) / everything
    excused = run.stalled_s * RATE / everything
    assert named >= share - excused, "%.2f %% of %d samples were named; the machine stood still for %.3f s; %s" % (
        100 * named,
        everything,
        run.stalled_s,
        run.stats,
    )
    assert harness.total(run.stacks()) == samples["python"], run.stats
    return named
