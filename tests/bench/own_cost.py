# SPDX-License-Identifier: Apache-2.0
"""pybpf's own CPU time and memory, and how long it takes to start."""

from collections import defaultdict

import samplers
from figures import Figure, Section, Target

FRAMES = 50
TEN_THOUSAND = 9999
STACKS = 20000
TOGETHER = Target(3, "<= 3 at 1,000 Hz")
PEAK = Target(32, "<= 32 MiB for 20,000 stacks")
FIRST = Target(100, "<= 100 ms")
SETTLE_SHARE = 0.9  # of a run; when it starts makes no difference here


def run(running, rate, seconds):
    return samplers.observe(samplers.Pybpf(), running, rate, seconds, SETTLE_SHARE * seconds)


def costs(bench, interpreter, rate):
    """A short run and a long one of the same: what the long one needs more is the cost of its samples."""
    plan = bench.plan
    with bench.target(interpreter, "frames.py", "recursion", FRAMES) as running:
        short = run(running, rate, plan.short_s)
        long = run(running, rate, plan.long_s[rate])
    samples = long.sampled.got - short.sampled.got
    assert samples > 0, "%d samples in the longer run, %d in the shorter" % (long.sampled.got, short.sampled.got)
    each_us = 1e6 * (long.cpu_s - short.cpu_s) / samples
    kernel_us = long.sampled.stats["kernel_ns_per_sample"] / 1000
    return {
        "each": each_us,
        "kernel": kernel_us,
        "together": each_us + kernel_us,
        "million": each_us,  # microseconds per sample are seconds per million samples
        "ends": 1000 * short.cpu_s - each_us * short.sampled.got / 1000,
        "first": short.sampled.stats["time_to_first_sample_ms"],
        "peak": long.peak_kib / 1024,
        "maps": long.maps_kib / 1024,
        "stacks": long.sampled.stats["stacks"],
    }


def many_stacks(bench, interpreter):
    with bench.target(interpreter, "stacks.py", FRAMES) as running:
        seen = run(running, TEN_THOUSAND, bench.plan.stacks_s)
    return {
        "million": 1e6 * seen.cpu_s / seen.sampled.got,
        "first": seen.sampled.stats["time_to_first_sample_ms"],
        "peak": seen.peak_kib / 1024,
        "maps": seen.maps_kib / 1024,
        "stacks": seen.sampled.stats["stacks"],
    }


def measure(bench):
    plan = bench.plan
    interpreters = bench.pythons(("default",))
    results = defaultdict(list)
    for _ in bench.rounds("pybpf's own cost"):
        for interpreter in interpreters:
            for rate in plan.long_s:
                what = "pybpf's own cost at %d Hz on %s" % (rate, interpreter.name)
                results[interpreter, "rate", rate].append(bench.attempt(what, costs, bench, interpreter, rate) or {})
            what = "pybpf's memory for many stacks on %s" % interpreter.name
            results[interpreter, "stacks"].append(bench.attempt(what, many_stacks, bench, interpreter) or {})

    def figure(key, name, *more, **options):
        return Figure([one.get(name) for one in results[key]], *more, **options)

    samples = Section(
        "CPU time per sample, %d frames" % (FRAMES + 2),
        ["Hz", "Python", "kernel program, us", "pybpf itself, us", "together, us", "start and end, ms"],
    )
    whole = Section(
        "pybpf's CPU time, memory and start",
        ["target", "Hz", "Python", "stacks", "CPU s per million", "peak MiB", "kernel maps, MiB", "first sample, ms"],
    )
    for interpreter in interpreters:
        for rate in plan.long_s:
            key = interpreter, "rate", rate
            samples.add(
                rate,
                interpreter.name,
                figure(key, "kernel"),
                figure(key, "each"),
                figure(key, "together", 2, TOGETHER if rate < TEN_THOUSAND else None),
                figure(key, "ends", 1),
            )
            whole.add(
                "one stack, %d frames" % (FRAMES + 2),
                rate,
                interpreter.name,
                figure(key, "stacks", 0, spread=False),
                figure(key, "million"),
                figure(key, "peak", 1),
                figure(key, "maps", 1, spread=False),
                figure(key, "first", 0, FIRST),
            )
        key = interpreter, "stacks"
        stacks = figure(key, "stacks", 0, spread=False)
        enough = stacks.values and stacks.median >= STACKS
        whole.add(
            "many stacks, %d frames" % FRAMES,
            TEN_THOUSAND,
            interpreter.name,
            stacks,
            figure(key, "million"),
            figure(key, "peak", 1, PEAK if enough else None),
            figure(key, "maps", 1, spread=False),
            figure(key, "first", 0, FIRST),
        )
    samples.notes.append(
        "pybpf itself: what a longer run needs more than one of %d s, per sample; start and end: the rest"
        % plan.short_s
    )
    whole.notes.append("CPU s per million: samples; of one stack: without start and end; of many: with them, and names")
    return [samples, whole]
