# SPDX-License-Identifier: Apache-2.0
"""Runs programs of tests/truth under other samplers as well, and holds what they say against the same rules.

Each samples a running process, in its own mode and with --nonblocking or --blocking where it has one, the threads of
the program alone. A name may be plain or qualified. Given up is what a sampler says itself was an error, or marks as
invalid; nothing else that it leaves out is held against it.

A reader in another process that takes turns with its target on one CPU finds frames that stand still. As on a machine
with a CPU to spare, a program with one thread has one of its own here, and the other samplers run on the rest.
"""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import harness
import peers
import rules
import stacks
from results import Result

PROGRAMS = ("parents", "depths", "generators", "recursion", "exceptions")
PYTHONS = ("pyenv-3.13*", "sid-python3.15")
SPY_RATE = 1000  # it falls behind at much more
RATE = 5000
CPUS = sorted(os.sched_getaffinity(0))
LIBRARY = re.compile(r".*/lib/python\d[\d.]*t?/")
COLUMNS = "%-12s %-16s %-38s %8s %17s %17s %17s"


class Failed(Exception):
    """What a sampler said instead of sampling."""


def output(argv, seconds):
    """What it said; its status is not asked: Austin's is never 0."""
    others = ",".join(str(cpu) for cpu in CPUS[1:] or CPUS)
    done = subprocess.run(
        harness.tied(["taskset", "-c", others, *map(str, argv)]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds * 4 + 60,
    )
    return re.sub(r"\x1b\[[\d;]*m", "", done.stdout.decode("utf-8", "replace"))


def reason(said):
    """The line of a sampler's message that says why."""
    lines = [re.sub(r"^\W+", "", line).strip() for line in said.split("\n")]
    for line in lines:
        if re.search(r"error|unsupported|cannot|can't|failed|not ", line, re.I):
            return line[:160]
    return " ".join(line for line in lines if line)[:160]


def read(path, said):
    try:
        text = Path(path).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        text = ""
    if not text:
        raise Failed(reason(said))
    return text


def stated(pattern, said):
    """A number that a sampler states of its own run."""
    match = re.search(pattern, said, re.S)
    if not match:
        raise Failed(reason(said))
    return float(match.group(1))


def frame(name, file, line):
    file = LIBRARY.sub("", file)
    file = os.path.basename(file) if str(rules.PROGRAMS) in file else file
    known = int(line) > 0 or name == "<module>"  # which begins at line 0; other instructions may have none
    return harness.Frame(name, file, int(line) if known else None)


def py_spy(pid, program, seconds, out, *options):
    argv = [*peers.py_spy(), "record", "-p", pid, "-d", seconds, "-r", SPY_RATE, "-f", "raw", "-o", out, *options]
    said = output(argv, seconds)
    text = read(out, said)
    found = [([frame(one.name, one.file, one.line or 0) for one in stack], n) for stack, n in harness.parse(text)]
    return found, int(stated(r"Errors: (\d+)", said))


def py_spy_nonblocking(pid, program, seconds, out):
    return py_spy(pid, program, seconds, out, "--nonblocking")


def austin(pid, program, seconds, out):
    argv = [*peers.austin(), "-i", "%dus" % (1e6 / RATE), "-x", seconds, "-p", pid, "-o", out]
    said = output(argv, seconds)
    reader = [str(peers.environment() / "python"), str(Path(__file__).with_name("read_mojo.py")), out]
    done = subprocess.run(reader, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    samples, errors = json.loads(done.stdout) if done.returncode == 0 else ([], 0)
    if not samples:
        raise Failed(reason(said))
    valid = [([frame(*one) for one in frames], count) for count, invalid, frames in samples if not invalid and frames]
    return valid, errors


def profiling_sampling(pid, program, seconds, out, *options):
    argv = [*peers.profiling_sampling(), "attach", "-r", RATE, "-d", seconds, "--no-gc", "--collapsed", "-o", out]
    said = output([*argv, *["-a"] * program.threaded, *options, pid], seconds)
    found = []
    for row in read(out, said).splitlines():
        stack, _, count = row.rpartition(" ")
        parts = [part.rsplit(":", 2) for part in stack.split(";")[1:]]
        found.append(([frame(name, file, line) for file, name, line in parts], int(count)))
    return found, round(stated(r"Captured (\d+) sample", said) * stated(r"Error rate: ([\d.]+)", said) / 100)


def profiling_sampling_blocking(pid, program, seconds, out):
    return profiling_sampling(pid, program, seconds, out, "--blocking")


# (What it samples with, its mode, the beginning of its command line, its rate)
SAMPLERS = (
    (py_spy, "", peers.py_spy, SPY_RATE),
    (py_spy_nonblocking, " --nonblocking", peers.py_spy, SPY_RATE),
    (austin, "", peers.austin, RATE),
    (profiling_sampling, "", peers.profiling_sampling, RATE),
    (profiling_sampling_blocking, " --blocking", peers.profiling_sampling, RATE),
)


def measure(program, interpreter, wanted, sample, mode, argv, rate):
    result = Result(program.name, interpreter.name, sample.__name__)
    try:
        result.sampler = peers.version(argv()) + mode
        with stacks.started(program, interpreter) as process, tempfile.TemporaryDirectory() as folder:
            stacks.read_names(process)
            if not program.threaded:
                os.sched_setaffinity(process.pid, CPUS[:1])
            out = os.path.join(folder, "out")
            found, result.given_up = sample(process.pid, program, max(1, round(wanted / rate)), out)
    except (peers.Missing, Failed, AssertionError, OSError, subprocess.SubprocessError) as why:
        result.failed = str(why)
        return result
    result.hold(program, found, (False, True), lines=False)
    result.samples = harness.total(found)
    result.of = result.samples + result.given_up
    return result


def share(number, of):
    return "%d (%.3g %%)" % (number, 100 * number / of) if number else "0"


def show(result):
    line = (result.program, result.python, result.sampler)
    if result.failed and not result.samples:
        print("%-12s %-16s %-38s n/a: %s" % (*line, result.failed), flush=True)
        return
    counts = (
        result.samples,
        share(result.impossible, result.samples),
        share(result.wrong_names, result.samples),
        share(result.given_up, result.of),
    )
    print(COLUMNS % (*line, *counts) + ("  FAILED: " + result.failed if result.failed else ""), flush=True)


def compare(programs, interpreters, wanted, attempt):
    """Every sampler's results, shown as they come. attempt: calls a function, and makes a result of what it raises."""
    print(COLUMNS % ("program", "Python", "sampler", "samples", "impossible", "wrong names", "given up"))
    results = []
    for interpreter in interpreters:
        for program in programs:
            tasks = [(stacks.measure, program, interpreter, wanted)]
            tasks += [(measure, program, interpreter, wanted, *sampler) for sampler in SAMPLERS]
            for function, *arguments in tasks:
                results.append(attempt(function, program.name, interpreter, *arguments))
                show(results[-1])
    return results
