# SPDX-License-Identifier: Apache-2.0
"""How much is measured, and what is kept of a run while it goes on."""

import contextlib
import fnmatch
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Dict, List, Tuple

import harness
import machine
import pythons

FEWEST_ROUNDS = 5  # of which a median may be quoted
ATTEMPTS = 2  # on a busy machine something may start too late
KINDS_OF_BUILD = ("shared", "static")
ERRORS = (AssertionError, OSError, ValueError, KeyError, IndexError, ZeroDivisionError, subprocess.SubprocessError)


@dataclass(frozen=True)
class Plan:
    rounds: int = FEWEST_ROUNDS
    versions: Tuple = ((3, 8), (3, 11), (3, 12), "newest")
    # the kernel program's time
    recursion: Tuple = (5, 20, 50, 100, 500, 5000)
    functions: Tuple = (5, 20, 50, 100, 500)
    kernel_s: float = 0.3
    # the target's speed
    rates: Tuple = (99, 999, 9999)
    observed_s: int = 3
    settle_s: float = 1.5  # of those: until a sampler has surely started
    # pybpf's own cost: two runs, whose difference leaves out start and end
    short_s: int = 1
    long_s: Dict = field(default_factory=lambda: {999: 9, 9999: 5})  # by rate
    stacks_s: int = 8
    # many threads
    threads: Tuple = (1, 100, 1000)
    # every Python of the machine
    crowd: int = 1000
    idle_s: int = 10
    starts: int = 300
    copies: int = 30
    # a run without end
    agent_crowd: int = 500
    agent_epoch_s: int = 15
    agent_epochs: int = 30
    agent_few: int = 50
    agent_minute_s: int = 60
    # processes that map the same files
    alike: Tuple = (1, 50, 500)
    # snapshots of threads
    stands: Tuple = (1, 50, 500)
    quiet_s: float = 1.0


SHORT = Plan(
    rounds=1,
    versions=("default", "newest"),
    recursion=(5, 50, 500),
    functions=(50,),
    rates=(999,),
    observed_s=2,
    long_s={999: 3, 9999: 3},
    stacks_s=3,
    threads=(1, 100),
    crowd=100,
    idle_s=2,
    starts=30,
    copies=5,
    agent_crowd=50,
    agent_epoch_s=3,
    agent_epochs=5,
    agent_few=5,
    agent_minute_s=3,
    alike=(1, 10),
    stands=(1, 50),
    quiet_s=0.3,
)


@dataclass
class Bench:
    plan: Plan
    patterns: List[str]  # of Pythons; none: the plan's
    cpu: int = 0  # the target's
    missing: List[Tuple[str, str]] = field(default_factory=list)
    failed: List[Tuple[str, str]] = field(default_factory=list)
    waits: List[float] = field(default_factory=list)  # of targets whose speed was measured, for their CPU
    start: float = field(default_factory=time.monotonic)

    def lack(self, what, why):
        if (what, why) not in self.missing:
            self.missing.append((what, why))

    def say(self, text):
        print("%4d s  %s" % (time.monotonic() - self.start, text), file=sys.stderr, flush=True)

    def rounds(self, kind):
        for number in range(self.plan.rounds):
            self.say("%s, round %d of %d" % (kind, number + 1, self.plan.rounds))
            yield number

    def attempt(self, what, measure, *arguments):
        """What was measured, at the second attempt if need be, or None; why not is then kept."""
        for _ in range(ATTEMPTS):
            try:
                return measure(*arguments)
            except ERRORS as error:
                why = " ".join(str(error).split())[:400]
                self.say("%s: %s" % (what, why))
        self.failed.append((what, why))
        return None

    @contextlib.contextmanager
    def target(self, interpreter, name, *arguments):
        with machine.target(self.cpu, interpreter, name, *arguments) as running:
            yield running
            self.waits += running.waits

    def pythons(self, versions):
        """Those of the patterns; without patterns one for each version."""
        found = []
        if self.patterns:
            return matching(self.patterns)
        for version in versions:
            one = by_version(version)
            if one is None:
                self.lack("Python %s" % ".".join(map(str, version)), "not on this machine; tools/setup-pythons makes 3.13 to 3.15")
            elif one not in found:
                found.append(one)
        return found


def matching(patterns):
    return [
        item
        for item in pythons.interpreters()
        if any(fnmatch.fnmatchcase(item.name, pattern) for pattern in patterns)
    ]


def by_version(version):
    """The plainest build of it, or None."""
    default = harness.default_python()
    if version in ("default", default.version):
        return default
    plain = [item for item in pythons.interpreters() if item.kind in KINDS_OF_BUILD]
    if version == "newest":
        return max(plain, key=lambda item: item.version, default=None)
    return next((item for item in plain if item.version == version), None)
