# SPDX-License-Identifier: Apache-2.0
"""What a snapshot of all threads takes, and for how long the target stands still for it, beside py-spy and pystack."""

import subprocess
import time
from collections import defaultdict

import harness
import peers
from figures import Figure, Section, each, ratios
from machine import NUMBER

# Places in the target's memory, as targets/stands.py has them.
DONE, ASKED, SEEN, GAP = 0, 8, 16, 24
VERSIONS = ("default",)
OURS = "pybpf dump"
PATIENCE = 60  # seconds
READINGS = 20
WAYS = {
    OURS: lambda pid: [harness.PYBPF, "dump", "-p", pid],
    "pybpf dump --locals": lambda pid: [harness.PYBPF, "dump", "-p", pid, "--locals"],
    "pybpf dump --freeze": lambda pid: [harness.PYBPF, "dump", "-p", pid, "--freeze"],
    "pybpf dump --freeze --locals": lambda pid: [harness.PYBPF, "dump", "-p", pid, "--freeze", "--locals"],
    "pybpf dump --native": lambda pid: [harness.PYBPF, "dump", "-p", pid, "--native"],
    "py-spy dump": lambda pid: [*peers.py_spy(), "dump", "-p", pid],
    "py-spy dump --nonblocking": lambda pid: [*peers.py_spy(), "dump", "--nonblocking", "-p", pid],
    "py-spy dump --locals": lambda pid: [*peers.py_spy(), "dump", "--locals", "-p", pid],
    "py-spy dump --native": lambda pid: [*peers.py_spy(), "dump", "--native", "-p", pid],
    "pystack remote": lambda pid: [*peers.pystack(), "remote", pid],
    "pystack remote --locals": lambda pid: [*peers.pystack(), "remote", "--locals", pid],
    "pystack remote --native": lambda pid: [*peers.pystack(), "remote", "--native", pid],
}


def number(running, place):
    """What the target has written there, which only grows: struct's pack_into() writes zeros before the number."""
    return max(NUMBER.unpack_from(running.memory, place)[0] for _ in range(READINGS))


def ask(running):
    """Has the target forget its largest gap."""
    asked = number(running, ASKED)
    NUMBER.pack_into(running.memory, ASKED, asked + 1)
    harness.wait_for(lambda: NUMBER.unpack_from(running.memory, SEEN)[0] == asked + 1, step=0.001)


def gap_ms(running):
    """Its largest gap. One that has just ended is known when it has looked at the clock once more."""
    done = number(running, DONE)
    harness.wait_for(lambda: number(running, DONE) > done + 1, step=0.001)
    return number(running, GAP) / 1e6


def one(running, way, count):
    """(seconds that it took, ms that the target stood still at most)"""
    argv = [str(word) for word in WAYS[way](running.pid)]
    ask(running)
    start = time.monotonic()
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=PATIENCE)
    took = time.monotonic() - start
    gap = gap_ms(running)
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    seen = done.stdout.count(b"stand (") + done.stdout.count(b", in stand")
    assert seen >= count, "it has %d functions of %d threads" % (seen, count)
    return took, gap


def quiet(running, seconds):
    """The gap while nobody looks."""
    ask(running)
    time.sleep(seconds)
    return gap_ms(running)


def usable(bench):
    """The ways whose program is there."""
    found = []
    for way in WAYS:
        try:
            WAYS[way](1)
            found.append(way)
        except peers.Missing as why:
            bench.lack(way, str(why))
    return found


def measure(bench):
    ways = usable(bench)
    results, bare = defaultdict(list), defaultdict(list)
    (interpreter,) = bench.pythons(VERSIONS)[:1]
    for _ in bench.rounds("snapshots of threads"):
        for count in bench.plan.stands:
            with bench.target(interpreter, "stands.py", count) as running:
                bare[count].append(quiet(running, bench.plan.quiet_s))
                for way in ways:
                    what = "%s of %d threads" % (way, count)
                    results[way, count].append(bench.attempt(what, one, running, way, count))
    section = Section(
        "a snapshot of all threads, each 21 functions deep, of %s" % interpreter.name,
        ["threads", "way", "s", "of pybpf dump's", "stood still, ms"],
        notes=["stood still: the longest time in which a thread that only looks at the clock did not get to it; "
               "the rows \"nobody\" have it without any of these"],
    )
    for count in bench.plan.stands:
        ours = each(results[OURS, count], lambda one: one[0])
        section.add(count, "nobody", "", "", Figure(bare[count]))
        for way in ways:
            took = each(results[way, count], lambda one: one[0])
            section.add(
                count, way, Figure(took), Figure(ratios(took, ours)), Figure(each(results[way, count], lambda one: one[1]))
            )
    return [section]
