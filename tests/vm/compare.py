#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what a virtual machine wrote onto its console against what the known program says of itself.

    tests/vm/compare.py CONSOLE FOLDER [--only-modes]

FOLDER is where the results are unpacked to, for whoever wants to look. Prints the kernel, the account and the
verifier's counts, and what came of each mode (modes.py); exits with 1 and a sentence when anything is not as it must be. Runs in the Python that the machine
ran, since lines differ between versions.
"""

import base64
import binascii
import hashlib
import io
import json
import os
import re
import sys
import tarfile
from collections import Counter

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[1:1] = [HERE, os.path.join(HERE, "..", "e2e"), os.path.join(HERE, "..", "targets")]

import expect  # noqa: E402
import harness  # noqa: E402
import known  # noqa: E402
import modes  # noqa: E402
import outcomes  # noqa: E402

FEWEST = 300  # samples with Python frames, of some 990 that the timer takes while the program has a CPU to itself
SHARE = 0.8  # of the samples in the lines that the program calls hot
# The leaf's callers take turns. Far wider than chance allows, as emulation is uneven; a quarter each is expected.
TURN = (0.1, 0.5)
CALLERS = ["even", "odd", "inner", "by_key.<locals>.<lambda>"]
LAST_LINES = 40  # of what is long
SHOWN = 4  # frames from either end of a stack that is long


def unpack(console, folder):
    """The results from between the markers. Nothing may have got in between, which the checksum tells."""
    with open(console, encoding="utf-8", errors="replace", newline="\n") as log:
        text = log.read().replace("\r", "")
    found = re.search(r"=====BEGIN pybpf-vm (\w+)\n(.*?)=====END pybpf-vm", text, re.S)
    if not found:
        lines = "\n".join(text.split("\n")[-LAST_LINES:])
        raise AssertionError("the machine brought no results; its last words:\n%s" % lines)
    try:
        data = base64.b64decode("".join(found.group(2).split()))
    except binascii.Error as error:
        raise AssertionError("the results are damaged: %s" % error) from None
    assert hashlib.sha256(data).hexdigest() == found.group(1), "the results are damaged: wrong checksum"
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.12 and 3.13 warn without
        archive.extractall(folder)


class Results:
    def __init__(self, folder):
        self.folder = folder

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8", errors="surrogateescape") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def stats(self, name="stats.json"):
        try:
            return json.loads(self.read(name))
        except ValueError as error:
            raise AssertionError("pybpf's account is no JSON: %s" % error) from None

    def status(self, name):
        return self.read(name + ".status").strip() or "nothing"


def check_ended(results):
    err = results.read("known.err")
    assert not err, "the known program wrote: %s" % err
    if results.status("pybpf") != "0":
        words = results.read("pybpf.err").split("\n")[-LAST_LINES:]
        raise AssertionError("pybpf ended with %s; its last words:\n%s" % (results.status("pybpf"), "\n".join(words)))


def check_account(stats, stacks):
    samples = stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], "asked is not taken + lost: %s" % samples
    assert samples["lost"] == sum(stats["lost"].values()), "the losses do not add up: %s" % stats
    without = sum(stats["without_python"].values())
    assert samples["taken"] == samples["python"] + without, "taken is not with + without Python frames: %s" % stats
    printed = harness.total(stacks)
    assert printed == samples["python"], "%d samples printed: %s" % (printed, samples)
    assert printed >= FEWEST, "only %d samples with Python frames, not %d" % (printed, FEWEST)
    assert printed >= 0.99 * samples["asked"], "too many without Python frames: %s" % stats


def check_reads(results):
    """On the way for kernels that take a lock for memory of vmalloc's, nothing is read into any; the stacks stay true."""
    if "failed to auto-attach: -524" in results.read("default.err"):
        print("  reads were not watched: this kernel has no trampolines for BPF programs (arm64 before 6.4)")
        return
    for way in ("default", "careful"):
        words = results.read(way + ".err").split("\n")[-LAST_LINES:]
        assert results.status(way) == "0", "pybpf (%s) ended with %s: %s" % (way, results.status(way), "\n".join(words))
        samples = results.stats(way + ".json")["samples"]
        stacks = harness.parse(results.read(way + ".folded"))
        rules = Rules()
        bad = [stack for stack, _ in stacks if rules.why_not(stack)]
        assert not bad, "%s: %d of %d stacks are impossible: %s" % (way, len(bad), len(stacks), show(bad[0]))
        assert samples["lost"] == 0 and samples["python"] >= 0.99 * samples["asked"], "%s: %s" % (way, samples)
        direct_map, elsewhere = map(int, results.read(way + ".reads").split())
        # Reads of each sample: the interpreter's, the thread's, and some of its 400 frames.
        assert direct_map + elsewhere >= 10 * samples["asked"] > 100, "%s: %s" % (way, samples)
        if way == "careful":
            assert not elsewhere, "%d of %d reads went outside of the direct map" % (elsewhere, direct_map + elsewhere)
        else:
            # Else nothing is shown by there being none.
            assert elsewhere > direct_map, "%d reads went outside of the direct map, %d there" % (elsewhere, direct_map)


STARTED = re.compile(r"(parent|child) (\d+) ([\d.]+)")
ROOT = re.compile(r"python\S* \((\d+)\)")
STARTS = 4  # parent and child, twice
RATE = 99


def check_started(results):
    """Processes that started while everything was sampled: each under its PID, with the functions that it ran."""
    words = results.read("all.err").split("\n")[-LAST_LINES:]
    assert results.status("all") == "0", "pybpf --all ended with %s: %s" % (results.status("all"), "\n".join(words))
    assert not results.read("starts.err"), results.read("starts.err")
    started = {pid: (role, float(cpu_s)) for role, pid, cpu_s in STARTED.findall(results.read("starts.out"))}
    assert len(started) == STARTS, "the programs said %r" % results.read("starts.out")
    named = Counter()
    for stack, count in harness.parse(results.read("all.folded")):
        pid = ROOT.fullmatch(stack[0].text)
        assert pid, "%s is no process of ours" % stack[0].text
        names = [frame.name for frame in stack[1:]]
        role, _ = started.get(pid.group(1), ("", 0))
        assert role and not {"parent", "child"} - {role} & set(names), "%s of %s: %s" % (role, started, show(stack))
        named[pid.group(1)] += count if "burn" in names else 0
    for pid, (role, cpu_s) in started.items():
        # The clocks go on while the emulator waits for a CPU, and its timer does not.
        assert named[pid] >= 0.1 * cpu_s * RATE, "%s %s: %d samples of %.2f s" % (role, pid, named[pid], cpu_s)
    stats = results.stats("all.json")
    assert stats["processes"]["started"] == STARTS, stats["processes"]
    assert stats["samples"]["lost"] <= 0.05 * stats["samples"]["asked"], stats
    return stats


def show(stack):
    """Root and leaf, without the middle of the recursion."""
    if len(stack) <= 2 * SHOWN:
        return harness.show(stack)
    return "%s;... %d frames ...;%s" % (
        harness.show(stack[:SHOWN]),
        len(stack) - 2 * SHOWN,
        harness.show(stack[-SHOWN:]),
    )


class Rules:
    """Which stacks the program can have: frame by frame and line by line."""

    def __init__(self):
        wanted = expect.describe(known.__file__, SHARE)
        self.calls = harness.Expectation(json.loads(wanted.to_json()))
        line = sorted(wanted.calls["dive", "dive"])
        self.dives = [line[depth % 3] for depth in range(known.DEPTH, 1, -1)]
        self.dives += wanted.calls["dive", "bottom"]

    def why_not(self, stack):
        """What makes a stack impossible; None where nothing does."""
        dives = [frame.line for frame in stack if frame.name == "dive"]
        if dives != self.dives:
            return "%d frames of dive, not %d, or in another order" % (len(dives), known.DEPTH)
        if [frame.name for frame in stack[known.DEPTH + 1 :][:1]] != ["bottom"]:
            return "no bottom above the recursion"
        try:
            self.calls.check_stack(stack)
        except AssertionError as error:
            return str(error).split(": ", maxsplit=1)[0]
        return None


def check_stacks(stacks):
    rules = Rules()
    bad = [(rules.why_not(stack), stack, count) for stack, count in stacks]
    bad = [found for found in bad if found[0]]
    if bad:
        why, stack, _ = bad[0]
        raise AssertionError(
            "%d of %d samples have an impossible stack, %d different ones; the first: %s: %s"
            % (sum(count for _, _, count in bad), harness.total(stacks), len(bad), why, show(stack))
        )
    rules.calls.check(stacks)  # that each call was seen, and the hot lines their share
    turns = Counter()
    for stack, count in stacks:
        if stack[-1].name == "leaf":
            turns[stack[-2].name] += count
    for caller in map(expect.short, CALLERS):
        share = turns[caller] / sum(turns.values())
        assert TURN[0] <= share <= TURN[1], "%s has %.0f %% of leaf's samples: %s" % (caller, 100 * share, turns)


def programs(results):
    """(name, instructions that the verifier went through, bytes or None) of each program that pybpf loaded."""
    log = r"prog '(\w+)': -- BEGIN PROG LOAD LOG --(?:(?!-- END PROG LOAD LOG --).)*?processed (\d+) insns"
    try:
        sizes = {program["name"]: program["bytes_xlated"] for program in json.loads(results.read("programs.json"))}
    except (ValueError, TypeError, KeyError):
        sizes = {}
    for name, count in re.findall(log, results.read("pybpf.err"), re.S):
        yield name, count, sizes.get(name)


def show_programs(results):
    rows = list(programs(results))
    if not rows:
        print("  what the verifier counted was not to be seen")
        return
    print("  %-16s %14s %14s" % ("program", "verified insns", "xlated bytes"))
    for name, count, size in rows:
        print("  %-16s %14s %14s" % (name, count, size or "not told"))


def check_known(results):
    """The known program, and those that start while everything is sampled."""
    show_programs(results)
    check_ended(results)
    stacks = harness.parse(results.read("stacks.folded"))
    stats = results.stats()
    check_account(stats, stacks)
    check_stacks(stacks)
    check_reads(results)
    everything = check_started(results)
    samples = stats["samples"]
    print(
        "  %d samples asked, %d taken, %d lost, %d with Python frames; %d distinct stacks; none impossible"
        % (samples["asked"], samples["taken"], samples["lost"], samples["python"], stats["stacks"])
    )
    samples = everything["samples"]
    print(
        "  of processes that started during the run: %d samples asked, %d lost, %d with Python frames"
        % (samples["asked"], samples["lost"], samples["python"])
    )


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[3:] not in ([], ["--only-modes"]):
        sys.exit("usage: tests/vm/compare.py CONSOLE FOLDER [--only-modes]")
    results = Results(sys.argv[2])
    failed = False
    try:
        unpack(sys.argv[1], sys.argv[2])
        print("  Linux %s" % results.read("release").strip())
        if len(sys.argv) == 3:
            check_known(results)
    except AssertionError as error:
        print("  %s" % error)
        failed = True
    if results.read("release"):
        failed |= outcomes.judge(modes.ALL, sys.argv[2]) > 0
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
