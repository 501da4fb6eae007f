# SPDX-License-Identifier: Apache-2.0
"""Holds the shares of samples against the CPU time that the functions of tests/truth/shares.py measure themselves.

They have to agree within the 99.9 % interval of a binomial distribution; one that does not is measured once more.
"in step" is a program that begins its work at multiples of the timer's own period.
"""

import ast
import json
import math
import os
import tempfile
from collections import Counter
from pathlib import Path

import harness
import rules
from results import Result

PERIOD_MS = 10
PERIODIC_RATE = 100
Z = 3.2905  # 99.9 % of a normal distribution lie so many standard deviations around the mean
TRIES = 2


def measured_lines():
    """The lines of shares.lines that are measured."""
    found = ast.parse((rules.PROGRAMS / "shares.py").read_text(encoding="utf-8"))
    body = next(node for node in found.body if getattr(node, "name", "") == "lines").body
    return {node.lineno: "lines:%d" % (i + 1) for i, node in enumerate(n for n in body if isinstance(n, ast.For))}


def within(share, hits, number):
    """(Own share, share of the samples, half the interval, whether the one is within it)."""
    half = (Z * math.sqrt(number * share * (1 - share)) + 0.5) / max(1, number)
    there = hits / max(1, number)
    return round(share, 4), round(there, 4), round(half, 4), number > 0 and abs(there - share) <= half


def agree(spent, stacks):
    lines, taken = measured_lines(), Counter()
    for stack, count in stacks:
        leaf = stack[-1]
        key = lines.get(leaf.line) if leaf.name == "lines" else leaf.name
        if key in spent and os.path.basename(leaf.file) == "shares.py":
            taken[key] += count
    number, time_spent, found = sum(taken.values()), sum(spent.values()), {}
    for key, own in spent.items():
        found[key] = within(own / time_spent, taken[key], number)
    return number, found


def profile(interpreter, seconds, rate, period):
    """(What the program says, its stacks, the account)."""
    with tempfile.TemporaryDirectory() as folder:
        out, stats = os.path.join(folder, "out.folded"), os.path.join(folder, "stats.json")
        argv = interpreter.command("shares.py", "%g" % seconds, "%g" % period, folder=rules.PROGRAMS)
        run = harness.pybpf("-F", rate, "-o", out, "--json-stats", stats, "--", *argv, timeout=seconds * 30 + 60)
        assert run.code == 0, "pybpf ended with %d: %s" % (run.code, run.err)
        spent = json.loads(run.out.splitlines()[-1])
        stacks = harness.parse(Path(out).read_text(encoding="utf-8"))
        return spent, stacks, json.loads(Path(stats).read_text(encoding="utf-8"))


def stolen_s():
    """The time that a hypervisor has given to other machines: the clocks of threads go on in it, the timer does not."""
    return int(Path("/proc/stat").read_text(encoding="ascii").split()[8]) / os.sysconf("SC_CLK_TCK")


def measure_once(result, interpreter, seconds, rate, period):
    before = stolen_s()
    spent, stacks, stats = profile(interpreter, seconds, rate, period)
    stolen = (stolen_s() - before) / seconds
    result.samples, result.shares = agree(spent, stacks)
    if period:
        # The timer may meet always the same part of a cycle, or always its rest.
        on_cpu = sum(spent.values()) / 1e9 / seconds
        own, there, half, agrees = within(on_cpu, result.samples, int(seconds * rate))
        result.shares["on CPU"] = own, there, half, agrees or 0 < own - there <= half + stolen
    result.of = stats["samples"]["asked"]
    result.given_up = sum(n for cause, n in stats["lost"].items() if cause != "not_ready")
    result.failed = "; ".join(
        "%s: own %.2f %%, sampled %.2f %%, interval +-%.2f %%" % (key, 100 * own, 100 * there, 100 * half)
        for key, (own, there, half, agrees) in result.shares.items()
        if not agrees
    )


def measure(interpreter, seconds, rate, period=0):
    result = Result("shares, in step" if period else "shares", interpreter.name)
    for _ in range(TRIES):
        measure_once(result, interpreter, seconds, rate, period)
        if not result.failed:
            break
    return result


def measure_in_step(interpreter, seconds):
    return measure(interpreter, seconds, PERIODIC_RATE, PERIOD_MS)
