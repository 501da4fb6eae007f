# SPDX-License-Identifier: Apache-2.0
"""What each wait of a target costs while its waits are recorded: beside its speed alone and other tools'."""

import os
import re
import shutil
from collections import defaultdict

import samplers
from figures import Figure, Section, Target, each, ratios
from peers import Missing
from target_speed import is_usable

FRAMES = 10
RATES = (10000, 100000)  # waits a second
VERSIONS = ((3, 8), (3, 12), "newest")
KEPT = {
    10000: Target(98, ">= 98 % of its speed", at_least=True),
    100000: Target(85, ">= 85 % of its speed", at_least=True),
}
SAMPLE_RATE = 99
OBSERVED_S, SETTLE_S = 5, 2.5  # perf writes a hundred megabytes at its end


class Wall(samplers.Pybpf):
    name = "pybpf --mode=wall"
    mode = "wall"

    def command(self, pid, rate, seconds):
        return [*super().command(pid, rate, seconds), "--mode", self.mode]


class OffCpu(Wall):
    name = "pybpf --mode=offcpu"
    mode = "offcpu"


class PerfTool(samplers.Sampler):
    def lacks(self, interpreter):
        if not shutil.which("perf"):
            raise Missing("perf is not installed; `tools/install-deps --bench` installs it")
        return ""


class PerfSched(PerfTool):
    """Records the switches of all CPUs, without stacks."""

    name = "perf sched record"

    def command(self, pid, rate, seconds):
        return ["perf", "sched", "record", "-o", "perf.data", "--no-bpf-event", "--no-buildid-cache", "--", "sleep", seconds]

    def sampled(self, text, folder):
        lost = re.search(r"[Ll]ost (\d+)", text)
        return samplers.Sampled(0, int(lost.group(1)) if lost else 0)


class PerfTrace(PerfTool):
    """Sums up the system calls of one process, without stacks."""

    name = "perf trace -s"

    def command(self, pid, rate, seconds):
        return ["timeout", "-s", "INT", seconds, "perf", "trace", "-s", "-p", pid]

    good = (0, 124)

    def sampled(self, text, folder):
        return samplers.Sampled(0, 0)


class Offcputime(samplers.Sampler):
    """Native stacks, which of a Python have no function of a program."""

    name = "offcputime -p"
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])

    def lacks(self, interpreter):
        if not shutil.which("offcputime", path=self.path):
            raise Missing("it is not installed; `tools/install-deps --bench` installs it (libbpf-tools)")
        return ""

    def command(self, pid, rate, seconds):
        return [shutil.which("offcputime", path=self.path), "-p", pid, seconds]

    def sampled(self, text, folder):
        return samplers.Sampled(0, 0)


ALL = (Wall, OffCpu, PerfSched, Offcputime, PerfTrace)


def one_round(bench, number, interpreter, rate, tools):
    """The target's waits a second alone, and with each tool, by its name."""
    results = {}
    with bench.target(interpreter, "switches.py", rate, FRAMES) as running:
        alone = running.speed(OBSERVED_S - SETTLE_S)
        for tool in tools[:: -1 if number % 2 else 1]:
            what = "waits, %s at %d a second on %s" % (tool.name, rate, interpreter.name)
            results[tool.name] = bench.attempt(
                what, samplers.observe, tool, running, SAMPLE_RATE, OBSERVED_S, SETTLE_S
            )
    return alone, results


def add_rows(section, interpreter, rate, tools, rounds):
    alone = each(rounds, lambda one: one[0])
    section.add(rate, interpreter.name, "alone", Figure(alone, 0), "", "")
    for tool in tools:
        speeds = each([one and one[1].get(tool.name) for one in rounds], lambda one: one.speed)
        lost = each([one and one[1].get(tool.name) for one in rounds], lambda one: one.sampled.lost)
        more = [1e6 / ours - 1e6 / bare if ours and bare else None for ours, bare in zip(speeds, alone)]
        target = KEPT[rate] if tool.name == Wall.name else None
        section.add(
            rate,
            interpreter.name,
            tool.name,
            Figure(ratios(speeds, alone, 100), 1, target),
            Figure(more, 2),
            Figure(lost, 0, spread=False),
        )


def measure(bench):
    section = Section(
        "a target's speed while its waits are recorded, %d functions deep" % FRAMES,
        ["waits/s", "Python", "tool", "% of alone", "us a wait", "lost"],
    )
    plans = []
    for interpreter in bench.pythons(VERSIONS):
        plans.append((interpreter, [tool for tool in (kind() for kind in ALL) if is_usable(bench, tool, interpreter)]))
    results = defaultdict(list)
    for number in bench.rounds("waits"):
        for interpreter, tools in plans:
            for rate in RATES:
                what = "waits at %d a second on %s" % (rate, interpreter.name)
                results[interpreter, rate].append(
                    bench.attempt(what, one_round, bench, number, interpreter, rate, tools)
                )
    for rate in RATES:
        for interpreter, tools in plans:
            add_rows(section, interpreter, rate, tools, results[interpreter, rate])
    section.notes += [
        "alone: waits a second; one wait is a switch to another process and one back, on the same CPU",
        "us a wait: of the target's time, more than alone",
        "lost: what the tool says that it lost",
    ]
    return [section]
