# SPDX-License-Identifier: Apache-2.0
"""The profilers that are run on a target: how to call each, and how it says what it got."""

import json
import os
import re
import shutil
import signal
import tempfile
import time
from dataclasses import dataclass
from typing import Optional

import harness
import machine
import peers

EVENT = "cpu-clock"  # pybpf's and the bare interrupt's, so that the two differ in nothing but the program
END_S = 60  # for what a sampler does after it was told to end


@dataclass
class Sampled:
    got: int
    lost: int  # and what could not be read whole
    seconds: Optional[float] = None  # that it sampled, where it says so
    stats: Optional[dict] = None  # pybpf's


def numbers(pattern, text, sampler):
    match = re.search(pattern, text)
    assert match, "%s did not say what it got: %s" % (sampler, text.strip()[-300:])
    return [float(number) for number in match.groups()]


def given_up(stats):
    """pybpf's samples that were lost or are incomplete."""
    return sum(stats["lost"].values()) + sum(stats["incomplete"].values())


class Sampler:
    name = ""
    good = (0,)  # exit statuses
    started = ""  # what it prints when it begins to sample; empty where it says how long it did
    knows = ()  # the first and the last version of Python

    def lacks(self, interpreter):
        """Why it cannot be run on that Python, or nothing; Missing where it can be run on none."""
        return ""

    def unknown(self, interpreter):
        first, last = self.knows
        return "" if first <= interpreter.version <= last else "it knows Python %d.%d to %d.%d" % (*first, *last)

    def command(self, pid, rate, seconds):
        """seconds: whole ones; some know no others."""
        raise NotImplementedError

    def sampled(self, text, folder):
        """text: what it printed; folder: where it ran."""
        raise NotImplementedError


class Pybpf(Sampler):
    name = "pybpf"
    options = ()

    def command(self, pid, rate, seconds):
        argv = [harness.PYBPF, *self.options, "-p", pid, "-F", rate, "-d", seconds, "-e", EVENT]
        return argv + ["-o", "profile.folded", "--json-stats", "stats.json"]

    def sampled(self, text, folder):
        with open(os.path.join(folder, "stats.json"), encoding="utf-8") as file:
            stats = json.load(file)
        return Sampled(stats["samples"]["python"], given_up(stats), stats["duration_s"], stats)


class PybpfNative(Pybpf):
    name = "pybpf --native"
    options = ("--native",)


class Bare(Sampler):
    """An interrupt that records no stack."""

    name = "bare interrupt"
    options = ()

    def lacks(self, interpreter):
        if not shutil.which("perf"):
            raise peers.Missing("perf is not installed; `tools/install-deps --bench` installs it")
        return ""

    def command(self, pid, rate, seconds):
        argv = ["perf", "record", *self.options, "-e", EVENT, "-F", rate, "-p", pid, "-o", "perf.data"]
        # Without the thread that waits a second for news of BPF programs before perf ends.
        return argv + ["--no-bpf-event", "--no-buildid-cache", "--", "sleep", seconds]

    def sampled(self, text, folder):
        lost = re.search(r"[Ll]ost (\d+)", text)
        return Sampled(int(numbers(r"\((\d+) samples\)", text, "perf")[0]), int(lost.group(1)) if lost else 0)


class PerfFramePointers(Bare):
    name = "perf, frame pointers"
    options = ("--call-graph", "fp")


class PerfDwarf(Bare):
    """It copies 8 KiB of the stack in each sample."""

    name = "perf, DWARF"
    options = ("--call-graph", "dwarf")


class PySpy(Sampler):
    name = "py-spy"
    knows = ((2, 7), (3, 15))
    started = "Sampling process"
    options = ()

    def lacks(self, interpreter):
        self.argv = peers.py_spy()
        return self.unknown(interpreter)

    def command(self, pid, rate, seconds):
        argv = [*self.argv, "record", *self.options, "-r", rate, "-d", seconds, "-p", pid]
        return argv + ["-f", "raw", "-o", "profile"]

    def sampled(self, text, folder):
        got, errors = numbers(r"Samples: (\d+) Errors: (\d+)", text, self.name)
        return Sampled(int(got), int(errors))


class PySpyNonblocking(PySpy):
    name = "py-spy --nonblocking"
    options = ("--nonblocking",)


class PySpyNative(PySpy):
    name = "py-spy --native"
    options = ("--native",)


class Austin(Sampler):
    name = "austin"
    knows = ((3, 9), (3, 14))
    good = (0, 254)  # the latter when its time is up before the target's

    def lacks(self, interpreter):
        self.argv = peers.austin()
        return self.unknown(interpreter)

    def command(self, pid, rate, seconds):
        argv = [*self.argv, "-i", round(1e6 / rate), "-x", seconds, "-p", pid]
        return argv + ["-o", "profile"]

    def sampled(self, text, folder):
        errors, tries = numbers(r"Error rate[ .]*(\d+)/(\d+)", text, self.name)
        (seconds,) = numbers(r"Total duration[ .]*([\d.]+)s", text, self.name)
        return Sampled(int(tries - errors), int(errors), seconds)


class Profiling(Sampler):
    """CPython 3.15's own, which profiles its own version only."""

    name = "profiling.sampling"
    knows = ((3, 15), (3, 15))

    def lacks(self, interpreter):
        self.argv = peers.profiling_sampling()
        return self.unknown(interpreter)

    def command(self, pid, rate, seconds):
        argv = [*self.argv, "attach", "-r", rate, "-d", seconds]
        return argv + ["--collapsed", "-o", "profile", pid]

    def sampled(self, text, folder):
        got, seconds = numbers(r"Captured (\d+) samples in ([\d.]+) seconds", text, self.name)
        (errors,) = numbers(r"Error rate: ([\d.]+)", text, self.name)
        failed = round(got * errors / 100)
        return Sampled(int(got) - failed, failed, seconds)


ALL = (Bare, Pybpf, PySpy, PySpyNonblocking, Austin, Profiling)
NATIVE = (Bare, Pybpf, PybpfNative, PerfFramePointers, PerfDwarf, PySpyNative)


@dataclass
class Observed:
    sampled: Sampled
    seconds: float  # for which it sampled
    cpu_s: float  # the sampler's own, start and end included
    peak_kib: int
    maps_kib: float  # of BPF maps in the kernel
    speed: float  # the target's meanwhile

    def rate(self):
        return self.sampled.got / self.seconds

    def cpu_us(self):
        """Per sample."""
        return 1e6 * self.cpu_s / max(1, self.sampled.got)


def ended_well(sampler, ended, timeout):
    assert ended, "%s did not end in %d s" % (sampler.name, timeout)
    said = ended.text.strip()[-300:]
    assert ended.status in sampler.good, "%s ended with %d: %s" % (sampler.name, ended.status, said)
    return ended


def observe(sampler, running, rate, seconds, settle):
    """Runs a sampler on a target and measures the target's speed meanwhile, after `settle` seconds for its start."""
    argv = [str(word) for word in sampler.command(running.pid, rate, seconds)]
    with tempfile.TemporaryDirectory() as folder, machine.watched(argv, folder) as process:
        start = began = time.monotonic()
        while sampler.started and sampler.started not in process.text() and time.monotonic() < start + settle:
            time.sleep(machine.POLL_S)
            began = time.monotonic()
        time.sleep(max(0, start + settle - time.monotonic()))
        speed = running.speed(seconds - settle)
        maps_kib = machine.bpf_maps_kib(process.process.pid)
        ended = process.end(settle if sampler.started else END_S)
        if ended is None and sampler.started:  # it falls behind, and goes on until it has the number of samples
            process.process.send_signal(signal.SIGINT)
            ended = process.end(END_S)
        end = time.monotonic()
        ended_well(sampler, ended, END_S)
        sampled = sampler.sampled(ended.text, folder)
        took = end - began if sampler.started else sampled.seconds or seconds
        late = end - start - took
        assert late <= settle, "%s took %.1f s to start and to end, more than was waited for" % (sampler.name, late)
        return Observed(sampled, took, ended.cpu_s, ended.peak_kib, maps_kib, speed)
