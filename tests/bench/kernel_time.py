# SPDX-License-Identifier: Apache-2.0
"""How long the kernel program takes for a sample, by the depth of the stack: the kernel's own BPF statistics."""

from collections import Counter, defaultdict

import harness
import native
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
NATIVE_FRAMES = 64  # of C, besides those of ctypes and of the interpreter
# Microseconds of such a sample, and nanoseconds of a native frame in it.
NATIVE_TARGET = Target(5, "5")
NATIVE_FRAME_TARGET = Target(80, "80")
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


def mean_depth(stacks):
    samples = sum(count for _, count in stacks)
    return sum(len(stack) * count for stack, count in stacks) / max(1, samples)


def with_native(bench, interpreter):
    """(Steady without native frames, with all of them)."""
    found = []
    for options in [], ["--native=all"]:
        library = native.library(interpreter, "native_calls")
        with bench.target(interpreter, "frames.py", "native", NATIVE_FRAMES, library) as running:
            found.append(steady(running, RATE, BEFORE_S, bench.plan.kernel_s, *options))
    more = mean_depth(found[1].stacks) - mean_depth(found[0].stacks)
    assert more > NATIVE_FRAMES, "only %.0f native frames were found" % more
    return found[0], found[1], more


def measure_native(bench):
    section = Section(
        "kernel program's time per sample with --native, at %d Hz" % RATE,
        ["Python", "Python frames", "native frames", "us without", "us with", "ns a native frame"],
    )
    interpreters = bench.pythons(bench.plan.versions)
    results = defaultdict(list)
    for _ in bench.rounds("native frames"):
        for interpreter in interpreters:
            what = "native frames, %s" % interpreter.name
            results[interpreter].append(bench.attempt(what, with_native, bench, interpreter))
    for interpreter in interpreters:
        rounds = results[interpreter]
        section.add(
            interpreter.name,
            Figure(each(rounds, lambda one: mean_depth(one[0].stacks)), 0, spread=False),
            Figure(each(rounds, lambda one: one[2]), 0, spread=False),
            Figure(each(rounds, lambda one: one[0].us), 2),
            Figure(each(rounds, lambda one: one[1].us), 2, NATIVE_TARGET),
            Figure(each(rounds, lambda one: 1000 * (one[1].us - one[0].us) / one[2]), 0, NATIVE_FRAME_TARGET),
        )
    return section


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
    return [section, measure_native(bench)]
