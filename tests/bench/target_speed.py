# SPDX-License-Identifier: Apache-2.0
"""How fast a target is while it is sampled: beside its speed alone, a bare interrupt's and other profilers'."""

from collections import defaultdict

import samplers
from figures import Figure, Section, Target, each, ratios
from peers import Missing

FRAMES = 50
VERSIONS = ("default", (3, 15))
TELLING = 500  # Hz from which on the time taken per sample stands out of the noise
AS_BARE = Target(99, ">= 99 % of a bare interrupt's", at_least=True)
NONE_LOST = Target(0, "none lost")


def taken_us(observed, alone):
    """Microseconds of the target's time that each sample took."""
    return 1e6 * (1 - observed.speed / alone) / observed.rate()


def is_usable(bench, sampler, interpreter):
    """Can it be run on that Python? Where not, the reason is named."""
    try:
        why = sampler.lacks(interpreter)
    except Missing as missing:
        bench.lack(sampler.name, str(missing))
        return False
    if why:
        bench.lack("%s on %s" % (sampler.name, interpreter.name), why)
    return not why


def usable(bench, interpreter, kinds):
    return [sampler for sampler in (kind() for kind in kinds) if is_usable(bench, sampler, interpreter)]


def one_round(bench, number, interpreter, rate, found, arguments):
    """The target's speed alone, and what was observed of each sampler, by its name."""
    plan = bench.plan
    results = {}
    with bench.target(interpreter, "frames.py", *arguments) as running:
        alone = running.speed(plan.observed_s - plan.settle_s)
        # Back and forth, so that nothing is always measured after the same.
        for sampler in found[:: -1 if number % 2 else 1]:
            what = "target's speed, %s at %d Hz on %s" % (sampler.name, rate, interpreter.name)
            results[sampler.name] = bench.attempt(
                what, samplers.observe, sampler, running, rate, plan.observed_s, plan.settle_s
            )
    return alone, results


def add_rows(section, interpreter, rate, found, rounds, aims):
    """aims: of the speed beside a bare interrupt's, by the name of a sampler; no sample of these is to be lost."""
    alone = each(rounds, lambda one: one[0])
    usual = Figure(alone)
    beside = Figure([100 * speed / usual.median for speed in usual.values], 1)
    section.add(rate, interpreter.name, "alone", beside, *[""] * 5)

    def of(name, value):
        return each([one and one[1].get(name) for one in rounds], value)

    bare = of(samplers.Bare.name, lambda one: one.speed)
    for sampler in found:
        speeds = of(sampler.name, lambda one: one.speed)
        observed = of(sampler.name, lambda one: one)
        taken = [taken_us(one, speed) if one else None for one, speed in zip(observed, alone)]
        section.add(
            rate,
            interpreter.name,
            sampler.name,
            Figure(ratios(speeds, alone, 100), 1),
            Figure(ratios(speeds, bare, 100), 1, aims.get(sampler.name)),
            Figure(taken if rate >= TELLING else [], 1, spread=False),
            Figure(of(sampler.name, lambda one: 100 * one.rate() / rate), 1, spread=False),
            Figure(of(sampler.name, lambda one: one.sampled.lost), 0, NONE_LOST if sampler.name in aims else None, spread=False),
            Figure(of(sampler.name, lambda one: one.cpu_us()), 1, spread=False),
        )


def measure_beside(bench, title, interpreters, kinds, rates, arguments, aims):
    """A section: the speed of frames.py with these arguments, beside these samplers."""
    section = Section(
        title, ["Hz", "Python", "sampler", "% of alone", "% of bare", "us taken", "got, %", "lost", "own us"]
    )
    plans = [(interpreter, usable(bench, interpreter, kinds)) for interpreter in interpreters]
    results = defaultdict(list)
    for number in bench.rounds("target's speed"):
        for interpreter, found in plans:
            for rate in rates:
                what = "target's speed at %d Hz on %s" % (rate, interpreter.name)
                results[interpreter, rate].append(
                    bench.attempt(what, one_round, bench, number, interpreter, rate, found, arguments)
                )
    for rate in rates:
        for interpreter, found in plans:
            add_rows(section, interpreter, rate, found, results[interpreter, rate], aims)
    section.notes += [
        "% of alone, % of bare: the target's speed over that when alone, and when under a bare interrupt (perf record)",
        "us taken: of the target's time, per sample; own us: CPU time of the sampler, from start to end, per sample",
        "got: samples per second of those asked; lost: samples lost, incomplete or failed, in %d s" % bench.plan.observed_s,
    ]
    return section


def measure(bench):
    title = "target's speed while it is sampled, %d frames" % (FRAMES + 2)
    interpreters = bench.pythons(VERSIONS)
    arguments, aims = ("recursion", FRAMES), {samplers.Pybpf.name: AS_BARE}
    return [measure_beside(bench, title, interpreters, samplers.ALL, bench.plan.rates, arguments, aims)]
