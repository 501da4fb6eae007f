# SPDX-License-Identifier: Apache-2.0
"""Runs pybpf on a program of tests/truth until there are so many samples with Python frames.

Given up is what the account says was lost or is incomplete.
"""

import collections
import json
import os
import subprocess
import tempfile
import time

import edges
import harness
import rules
import wheels
from results import Result

RATE = 5000
MAX_STACKS = 131072  # deep.py has some 10,000 in a second
LINELESS_SHARE = 0.01  # at most: instructions without a line end exceptions, which takes little time
THREAD_SHARE = 0.01  # at least, of each of up to four threads
WARM_S = 0.1
MAX_RUNS = 10
MAX_SECONDS = 90  # of all runs of a program on one Python
INCOMPLETE = "[native frames incomplete]"


def is_marked(stack):
    """Incomplete, which the account counts."""
    known = ("[unnamed]", rules.SWITCH)
    return any(frame.text.startswith("[") and frame.text not in known and not frame.file for frame in stack)


def is_lineless(frame):
    return frame.line is None and frame.text != rules.SWITCH


def add(program, result, run, version):
    """Adds what one run of the profiler says."""
    stacks = [(stack, count) for stack, count in run.stacks() if not is_marked(stack)]
    result.hold(program, stacks, (version >= (3, 11),), lines=version < (3, 10))
    lineless = sum(count for stack, count in stacks if any(map(is_lineless, stack)))
    result.tally("without a line", lineless)
    stats = run.stats
    result.samples += stats["samples"]["python"]
    result.of += stats["samples"]["asked"]
    result.stacks += stats["stacks"]
    for group in ("lost", "incomplete", "without_python"):
        for cause, number in stats[group].items():
            result.tally(group + " " + cause, number)
            if group != "without_python":
                result.given_up += number
    for cause in ("unnamed", "without_lines"):
        result.tally("code objects " + cause, stats["code_objects"][cause])


def started(program, interpreter):
    """The program's process, which ends with us."""
    arguments = [wheels.find(interpreter, program.wheel)[0]] if program.wheel else []
    argv = harness.tied(interpreter.command(program.file, *arguments, folder=rules.PROGRAMS))
    return harness.started(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0)


def cpu_time(pid):
    with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read_names(process):
    """The functions that the program runs at the same time."""
    names = process.stdout.readline().decode().split()
    assert names, "the program did not start"
    begun = cpu_time(process.pid)
    harness.wait_for(lambda: cpu_time(process.pid) - begun >= WARM_S)  # out of start.forever, in all threads
    return names


def record(pid, seconds, native, result):
    """native: Python's functions are those of a run with --native, whose native ones are held against their files."""
    options = ["--max-stacks", MAX_STACKS]
    limits = {"seconds": "%.2f" % seconds, "rate": RATE, "timeout": 120}
    if not native:
        return harness.record(pid, *options, **limits)
    with tempfile.TemporaryDirectory() as folder:
        path, calls = os.path.join(folder, "native.pybpf"), os.path.join(folder, "native.pb.gz")
        run = harness.record(pid, *options, "--native=all", "-o", path, **limits)
        told = harness.pybpf("report", path, "--no-native", "-f", "folded")
        written = harness.pybpf("report", path, "-o", calls)
        whole, without = harness.pybpf("report", path, "-f", "json"), harness.pybpf("report", path, "--no-native", "-f", "json")
        assert told.code == written.code == whole.code == without.code == 0, told.err + written.err + whole.err + without.err
        hold_calls(result, *edges.judge(calls))
        hold_without_native(result, json.loads(whole.out), json.loads(without.out))
    return harness.Run(run.code, told.out, run.err, run.stats)


def hold_calls(result, impossible, held):
    result.calls += held
    for count, caller, callee in impossible:
        result.impossible += count
        result.examples.append("%d x impossible call of native functions: %s" % (count, " -> ".join("%s (%s+%#x)" % (name, path, at) for path, at, name in (caller, callee))))


def is_native(frame):
    return frame["kind"] == "native" or (frame["kind"] == "note" and frame["name"] == INCOMPLETE)


def count_without_native(profile):
    """Samples by process, thread and stack, root first, of a profile in json, without its native frames."""
    stacks, counts = [], collections.Counter()
    for stack in profile["stacks"]:
        frame = profile["frames"][stack["frame"]]
        below = () if stack["parent"] is None else stacks[stack["parent"]]
        stacks.append(below if is_native(frame) else below + (tuple(frame[key] for key in ("kind", "name", "file", "line", "first_line")),))
    for sample in profile["samples"]:
        of = (profile["processes"][sample["process"]]["pid"], profile["threads"][sample["thread"]]["tid"])
        counts[of + (stacks[sample["stack"]],)] += sample["value"]
    return counts


def hold_without_native(result, whole, without):
    """report --no-native has each sample of the profile, with the same Python functions, and nothing else."""
    has, lacks = count_without_native(whole), count_without_native(without)
    assert not any(map(is_native, without["frames"])), without["frames"]
    for what, stacks in (("lost", has - lacks), ("made", lacks - has)):
        for (_, _, stack), count in stacks.items():
            result.impossible += count
            result.examples.append("%d x %s by --no-native: %s" % (count, what, ";".join(frame[1] for frame in stack)))


def measure(program, interpreter, wanted, native=False):
    result = Result(program.name, interpreter.name)
    start = time.monotonic()
    with started(program, interpreter) as process:
        names = read_names(process)
        rate = RATE
        for _ in range(MAX_RUNS):
            seconds = max(0.3, (wanted - result.samples) / rate * 1.05)
            run = record(process.pid, min(seconds, 20), native, result)
            add(program, result, run, interpreter.version)
            rate = max(100, run.stats["samples"]["python"] / run.stats["duration_s"])
            if result.samples >= wanted or time.monotonic() - start > MAX_SECONDS:
                break
    faults = []
    if result.samples < wanted:
        faults.append("%d samples in %d s, not %d" % (result.samples, time.monotonic() - start, wanted))
    lineless = result.causes.get("without a line", 0)
    if lineless > LINELESS_SHARE * result.samples and not program.lineless:
        faults.append("%d of %d samples have a frame without a line" % (lineless, result.samples))
    if program.least:
        result.shares["with Python frames"] = round(result.samples / max(1, result.of), 5)
        # Four standard deviations of chance: of 900 samples, one is more than 0.1 %.
        most = (1 - program.least) * result.of
        if result.of - result.samples > most + 4 * most ** 0.5:
            faults.append("%.2f %% of the samples have Python frames" % (100 * result.samples / result.of))
    for name in names if len(names) > 1 else ():
        share = result.begun.get(name, 0) / max(1, result.samples)
        result.shares[name] = round(share, 4)
        if share < THREAD_SHARE:
            faults.append("%s has %.1f %% of the samples" % (name, 100 * share))
    result.failed = "; ".join(faults)
    return result
