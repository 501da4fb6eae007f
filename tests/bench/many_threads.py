# SPDX-License-Identifier: Apache-2.0
"""What a sample costs in processes of many threads."""

from collections import defaultdict

import harness
from figures import Figure, Section, Target, each, ratios
from kernel_program import steady

RATE = 9999  # every thread is soon seen
VERSIONS = ("default", "newest")
SHAPES = {"turns": "threads take turns", "waiting": "one works, the others wait"}
SECONDS = 0.4
BEFORE_S = 0.6  # every thread has had its turn
FLAT = Target(1.25, "flat: <= 1.25 of one thread's")
WORKERS = 0.9  # share of samples in the threads that take turns


def one(bench, interpreter, shape, count):
    """(what the samples cost, how many threads were seen)"""
    with bench.target(interpreter, "crowds.py", shape, count) as running:
        result = steady(running, RATE, BEFORE_S, SECONDS, "--threads")
    working = sum(count for stack, count in result.stacks if any(frame.name == shape for frame in stack))
    share = working / max(1, harness.total(result.stacks))
    assert share >= WORKERS, "only %.0f %% of the samples are of the threads at work" % (100 * share)
    return result, len({stack[0].text for stack, _ in result.stacks})


def measure(bench):
    interpreters = bench.pythons(VERSIONS)
    results = defaultdict(list)
    for _ in bench.rounds("many threads"):
        for interpreter in interpreters:
            for shape in SHAPES:
                for count in bench.plan.threads:
                    what = "%d threads, %s, %s" % (count, shape, interpreter.name)
                    results[interpreter, shape, count].append(
                        bench.attempt(what, one, bench, interpreter, shape, count)
                    )
    section = Section(
        "kernel program's time per sample in processes of many threads, at %d Hz" % RATE,
        ["threads", "shape", "Python", "threads seen", "us", "of one thread's", "us, whole run", "given up, %"],
    )
    for shape, words in SHAPES.items():
        for interpreter in interpreters:
            single = each(results[interpreter, shape, bench.plan.threads[0]], lambda one: one[0].us)
            for count in bench.plan.threads:
                rounds = results[interpreter, shape, count]
                took = each(rounds, lambda one: one[0].us)
                section.add(
                    count,
                    words,
                    interpreter.name,
                    Figure(each(rounds, lambda one: one[1]), 0, spread=False),
                    Figure(took),
                    Figure(ratios(took, single), 2, FLAT if count > 1 else None),
                    Figure(each(rounds, lambda one: one[0].whole_us), 2, spread=False),
                    Figure(each(rounds, lambda one: one[0].given_up), 2, spread=False),
                )
    return [section]
