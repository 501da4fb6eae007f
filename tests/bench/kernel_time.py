# SPDX-License-Identifier: Apache-2.0
"""How long the kernel program takes for a sample, by the depth of the stack: the kernel's own BPF statistics."""

from collections import Counter, defaultdict

import harness
import samplers
from figures import Figure, Section, Target, each, ratios
from kernel_program import steady
from target_speed import is_usable, taken_us

RATE = 999
BEFORE_S = 0.1  # for all that is seen for the first time
BARE_RATE = 9999  # often enough that what an interrupt takes stands out
BARE_FRAMES = 50
BOTH_ENDS = 2  # <module> and the leaf
STEADY = 0.9  # share of the stacks that must be as deep as the target's
# Microseconds that a prototype took, by the frames above <module> and the leaf.
PROTOTYPE = {
    5: Target(0.5, "0.5 (a prototype's)"),
    20: Target(1.1, "1.1 (a prototype's)"),
    50: Target(2.5, "1.2-2.5 (a prototype's)"),
    100: Target(2.3, "2.3 (a prototype's)"),
}


def one(bench, interpreter, shape, number):
    with bench.target(interpreter, "frames.py", shape, number) as running:
        result = steady(running, RATE, BEFORE_S, bench.plan.kernel_s)
    depths = Counter()
    for stack, count in result.stacks:
        depths[len(stack)] += count
    share = depths[number + BOTH_ENDS] / max(1, sum(depths.values()))
    assert share >= STEADY, "only %.0f %% of the stacks have %d frames: %s" % (
        100 * share,
        number + BOTH_ENDS,
        depths.most_common(3),
    )
    return result


def bare(bench, interpreter):
    """Microseconds that an interrupt which records no stack takes from the target."""
    plan = bench.plan
    with bench.target(interpreter, "frames.py", "recursion", BARE_FRAMES) as running:
        alone = running.speed(plan.observed_s - plan.settle_s)
        observed = samplers.observe(samplers.Bare(), running, BARE_RATE, plan.observed_s, plan.settle_s)
    return taken_us(observed, alone)


def measure(bench):
    plan = bench.plan
    shapes = [("recursion", number) for number in plan.recursion]
    shapes += [("functions", number) for number in plan.functions]
    interpreters = bench.pythons(plan.versions)
    default = harness.default_python()
    has_bare = is_usable(bench, samplers.Bare(), default)
    results, bares = defaultdict(list), []
    for _ in bench.rounds("kernel program"):
        bares.append(bench.attempt("bare interrupt", bare, bench, default) if has_bare else None)
        for interpreter in interpreters:
            for shape, number in shapes:
                what = "kernel program, %s, %s %d" % (interpreter.name, shape, number)
                results[interpreter, shape, number].append(
                    bench.attempt(what, one, bench, interpreter, shape, number)
                )
    section = Section(
        "kernel program's time per sample, at %d Hz" % RATE,
        ["target", "frames", "Python", "us", "% of a bare interrupt", "us, whole run", "given up, %"],
    )
    for shape, number in shapes:
        for interpreter in interpreters:
            rounds = results[interpreter, shape, number]
            took = each(rounds, lambda one: one.us)
            section.add(
                "one function" if shape == "recursion" else "different functions",
                "%d+%d" % (number, BOTH_ENDS),
                interpreter.name,
                Figure(took, 2, PROTOTYPE.get(number)),
                Figure(ratios(took, bares, 100), 1),
                Figure(each(rounds, lambda one: one.whole_us), 2, spread=False),
                Figure(each(rounds, lambda one: one.given_up), 2, spread=False),
            )
    ends = "%d+%d" % (BARE_FRAMES, BOTH_ENDS)
    section.add("bare interrupt", ends, default.name, Figure(bares, 2), "", "", "")
    section.notes += [
        "frames: of the target, and <module> and the leaf, which spins",
        "whole run: with the samples that met stacks and functions for the first time",
        "bare interrupt (perf record): what it takes from the target's time, at %d Hz" % BARE_RATE,
    ]
    return [section]
