# SPDX-License-Identifier: Apache-2.0
"""What the kernel says about the time that pybpf's program takes, while pybpf samples a target."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import List

import harness
import machine
import samplers

SPARE_S = 0.25  # that pybpf goes on after what is measured


@dataclass
class Reading:
    run_ns: int  # of all runs of the program
    runs: int
    target_ns: int  # that the target was on a CPU


@dataclass
class Steady:
    us: float  # per sample, when all that is seen was seen before
    whole_us: float  # the same for the whole run
    given_up: float  # percent
    stacks: List


def read(process, running):
    assert process.end(0) is None, "pybpf ended too early: %s" % process.text().strip()[-300:]
    return Reading(*harness.program_runs(process.process.pid), machine.cpu_ns(running.pid))


def steady(running, rate, before_s, seconds, *options):
    """pybpf's samples between two moments, the first of them `before_s` after its first sample."""
    sampler = samplers.Pybpf()
    argv = sampler.command(running.pid, rate, before_s + seconds + SPARE_S) + list(options)
    with tempfile.TemporaryDirectory() as folder, machine.watched(list(map(str, argv)), folder) as process:
        harness.wait_for(lambda: read(process, running).runs, step=machine.POLL_S)
        time.sleep(before_s)
        first = read(process, running)
        time.sleep(seconds)
        last = read(process, running)
        ended = samplers.ended_well(sampler, process.end(samplers.END_S), samplers.END_S)
        stats = sampler.sampled(ended.text, folder).stats
        text = Path(folder, "profile.folded").read_text(encoding="utf-8", errors="surrogateescape")
    samples = rate * (last.target_ns - first.target_ns) / 1e9
    assert last.runs > first.runs, "pybpf had stopped sampling when the kernel was asked again"
    assert last.run_ns > first.run_ns, "the kernel does not measure its programs"
    return Steady(
        (last.run_ns - first.run_ns) / samples / 1000,
        stats["kernel_ns_per_sample"] / 1000,
        100 * samplers.given_up(stats) / stats["samples"]["asked"],
        harness.parse(text),
    )
