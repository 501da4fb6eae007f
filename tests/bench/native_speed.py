# SPDX-License-Identifier: Apache-2.0
"""How fast a target is while its functions of C are sampled as well: beside a bare interrupt's and other profilers'; and
what a run with --native loads, and when it begins to sample."""

import json
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass

import harness
import machine
import native
import samplers
import target_speed
from figures import Figure, Section, Target, each
from kernel_time import NATIVE_FRAMES

RATE = 999
INSTRUCTION = 8  # bytes
FIRST = Target(100, "<= 100 ms")
STARTED = (samplers.Pybpf, samplers.PybpfNative)
START_S = 1
AIMS = {samplers.PybpfNative.name: Target(97, ">= 97 % of a bare interrupt's", at_least=True)}


@dataclass
class Start:
    instructions: float  # of all programs, without what the verifier has found dead
    maps_kib: float
    first_ms: float


def bytes_of(program):
    shown = subprocess.run(["bpftool", "-j", "prog", "show", "id", program], capture_output=True, check=True).stdout
    return json.loads(shown)["bytes_xlated"]


def start(bench, interpreter, sampler):
    with bench.target(interpreter, "frames.py", "recursion", NATIVE_FRAMES) as running, tempfile.TemporaryDirectory() as folder:
        argv = list(map(str, sampler.command(running.pid, RATE, START_S)))
        with machine.watched(argv, folder) as process:
            pid = process.process.pid
            harness.wait_for(lambda: harness.program_runs(pid)[1], step=machine.POLL_S)
            programs = {words["prog_id"] for words in harness.fdinfo(pid) if "prog_id" in words}
            loaded = sum(map(bytes_of, programs)) / INSTRUCTION
            maps = machine.bpf_maps_kib(pid)
            ended = samplers.ended_well(sampler, process.end(samplers.END_S), samplers.END_S)
            return Start(loaded, maps, sampler.sampled(ended.text, folder).stats["time_to_first_sample_ms"])


def measure_starts(bench, interpreter):
    results = defaultdict(list)
    for _ in bench.rounds("start with native frames"):
        for sampler in STARTED:
            what = "start of %s" % sampler.name
            results[sampler].append(bench.attempt(what, start, bench, interpreter, sampler()))
    section = Section(
        "what is loaded with --native, and the first sample",
        ["run", "first sample, ms", "instructions of the kernel's programs", "kernel maps, KiB"],
        notes=["instructions: those that the verifier has left; without --native none that is there for it"],
    )
    for sampler in STARTED:
        found = results[sampler]
        section.add(
            sampler.name,
            Figure(each(found, lambda one: one.first_ms), 0, FIRST),
            Figure(each(found, lambda one: one.instructions), 0, spread=False),
            Figure(each(found, lambda one: one.maps_kib), 0, spread=False),
        )
    return section


def measure(bench):
    interpreter = harness.default_python()
    title = "target's speed while it is sampled, 52 frames of Python and %d of C below ctypes" % NATIVE_FRAMES
    arguments = ("native", NATIVE_FRAMES, native.library(interpreter, "native_calls"))
    speed = target_speed.measure_beside(bench, title, [interpreter], samplers.NATIVE, [RATE], arguments, AIMS)
    return [speed, measure_starts(bench, interpreter)]
