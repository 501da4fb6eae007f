# SPDX-License-Identifier: Apache-2.0
"""make test-all: every test, in parts that are done once. What passed is kept until a file of the tree changes."""
import argparse
import contextlib
import glob
import hashlib
import json
import math
import os
import re
import subprocess
from dataclasses import dataclass
from typing import Callable

import core
from runner import programs, pytests, stages
from runner.commands import TOP, headline, run, say
from runner.count import Count

KERNELS = ["5.10", "6.1", "6.12", "sid"]
ARM64_KERNELS = ["6.1", "6.12", "sid"]
ROUNDS_BESIDE_LOOPS = 10
LIMIT_S = 5400
SECONDS_OF_MUTANT = 12  # about: of one that a unit test kills, which is all that is built
SECONDS_OF_SLOW_MUTANT = 75  # of one that others kill, or of bpf, which the kernel loads before any test of it runs
SECONDS_OF_MUTANTS = 600  # in one part, which is kept or lost as a whole
# The full sweeps of tests/e2e/test_lines.py and test_hostile.py.
THOROUGH = {"PYBPF_LINES_EVERY": "1", "PYBPF_HOSTILE_SECONDS": "60"}


@dataclass
class Part:
    name: str
    seconds: float  # about, on two CPUs, to cut all parts in even shares
    do: Callable = None  # takes the count; None: a file of tests, the core with sanitizers, or a mutant


def part(text):
    """I/N as (I, N)."""
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError('"%s" is no part: 2/4 is the second of four' % text)
    return int(match[1]), int(match[2])


def tree():
    """A digest of all files that git knows or would add."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=TOP, capture_output=True, check=True)
    found = hashlib.sha256()
    for name in sorted(names.stdout.split(b"\0")):
        with contextlib.suppress(OSError), open(os.path.join(os.fsencode(TOP), name), "rb") as file:
            found.update(name + b"\0" + hashlib.sha256(file.read()).digest())
    return found.hexdigest()


class Kept:
    """The folder of what passed: FOLDER/tree has the digest of the tree that it is of."""

    def __init__(self, build, fresh):
        self.folder = os.path.join(TOP, build, "test-all")
        os.makedirs(self.folder, exist_ok=True)
        now, path = tree(), self.path("tree")
        before = open(path, encoding="ascii").read() if os.path.exists(path) else now
        if fresh or before != now:
            say("everything is run: %s" % ("FRESH=1" if fresh else "files changed since the last run"))
            for name in os.listdir(self.folder):
                os.unlink(self.path(name))
        with open(path, "w", encoding="ascii") as out:
            out.write(now)

    def path(self, name):
        return os.path.join(self.folder, name)

    def path_of_part(self, name, kind):
        return self.path(kind + "-" + name.replace("/", "-").replace(" ", "-"))

    def part(self, name):
        path = self.path_of_part(name, "part")
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as row:
            return json.load(row)

    def failures(self, name):
        """What failed in it in earlier runs."""
        path = self.path_of_part(name, "failed")
        return open(path, encoding="utf-8").read().splitlines() if os.path.exists(path) else []

    def keep(self, name, count):
        if count.failed:
            with open(self.path_of_part(name, "failed"), "a", encoding="utf-8") as out:
                out.writelines(failure + "\n" for failure in count.failures)
            return
        with open(self.path_of_part(name, "part"), "w", encoding="utf-8") as out:
            json.dump({"passed": count.passed, "skipped": count.skipped, "times": count.times}, out)


def command(name, *arguments):
    """A part that is one test: a program that says by its exit status whether it passed."""

    def do(count):
        if run([os.path.join(TOP, arguments[0]), *arguments[1:]], LIMIT_S) == 0:
            count.passed += 1
        else:
            count.fail(name)

    return do


def arm64_kernel(build, name, count):
    if stages.build_arm64(build, count):
        stages.tell_kernels(stages.arm64_kernels(build, name), count)


def seconds_of_mutant(name):
    with open(os.path.join(TOP, "tests/mutants", name + ".patch"), encoding="utf-8") as patch:
        by_unit_test = re.search("^tests: unit/", patch.read(), re.M) and not name.startswith("bpf/")
    return SECONDS_OF_MUTANT if by_unit_test else SECONDS_OF_SLOW_MUTANT


def mutants():
    """Parts of one room each, of about the same length."""
    rooms = {}
    for path in sorted(glob.glob("*/*.patch", root_dir=os.path.join(TOP, "tests/mutants"))):
        name = path[: -len(".patch")]
        rooms.setdefault(os.path.dirname(path), []).append(Part(name, seconds_of_mutant(name)))
    found = []
    for room, ones in rooms.items():
        of = math.ceil(sum(one.seconds for one in ones) / SECONDS_OF_MUTANTS)
        for number in range(1, of + 1):
            mine = share(ones, number, of)
            name = "mutants %s %d/%d" % (room, number, of)
            do = command(name, "tests/mutants/run-mutants", *[one.name for one in mine])
            found.append(Part(name, sum(one.seconds for one in mine), do))
    return found


def parts(build):
    pybpf = ["--pybpf", os.path.join(build, "pybpf")]
    found = [
        Part("lint", 250, stages.lint),
        Part("unit", 40, lambda count: programs.unit(build, count)),
        Part("fuzz", 10, lambda count: programs.fuzz(build, count)),
        Part("truth", 900, command("truth", "tests/truth/run-truth", *pybpf, "--short")),
        Part("truth native", 200, command("truth native", "tests/truth/run-truth", *pybpf, "--short", "--native", "--python", "pyenv-3.12*")),
        Part("soak", 150, command("soak", "tests/soak/run-soak", *pybpf, "--seconds", "60")),
        Part("starts", 120, command("starts", "tests/soak/run-starts", *pybpf, "--count", "100")),
    ]
    found += mutants()
    found += [Part("kernel " + name, 400, lambda count, name=name: stages.tell_kernels(stages.kernels(build, name), count))
              for name in KERNELS]
    found += [Part("arm64 kernel " + name, 500, lambda count, name=name: arm64_kernel(build, name, count))
              for name in ARM64_KERNELS]
    found += [Part("beside two loops, %d" % number, 200, lambda count: beside_loops(build, count))
              for number in range(1, ROUNDS_BESIDE_LOOPS + 1)]
    seconds = pytests.seconds_of_files()
    # Several of these run at a time.
    found += [Part(path, seconds.get(path, 30) / pytests.LANES) for path in pytests.files("tests/kernel", "tests/e2e")]
    found.append(Part("sanitizers", 200))
    return found


def share(found, number, of):
    """The parts of one share, in their order: the longest first, each to the share that has least."""
    loads, shares = [0.0] * of, [[] for _ in range(of)]
    for one in sorted(found, key=lambda one: -one.seconds):
        least = loads.index(min(loads))
        loads[least] += one.seconds
        shares[least].append(one)
    return [one for one in found if one in shares[number - 1]]


def beside_loops(build, count):
    suite = pytests.Suite(build, os.path.join(TOP, build, "tests-loops.jsonl"), "all")
    with stages.busy_loops():
        for row in suite.alone(["tests/kernel", "tests/e2e"], count):
            count.fail("beside two busy loops: " + suite.name(row))


def run_suite(build, kept, count, binary, tests):
    path = kept.path("tests-%s.jsonl" % binary)
    wanted = {test.partition("::")[0] for test in tests}
    suite = pytests.Suite(build, path, "all", binary=binary, passed=path)
    before = [row for row in pytests.rows_of(path) if row["test"].partition("::")[0] in wanted]
    for row in before:
        count.times.append((row["seconds"], row["test"]))
        if row["outcome"] == "passed":
            suite.count_passed(row, count)
        else:
            count.skipped += 1
    if before:
        say("%d ended well in an earlier run" % len(before))
    bad = suite.beside_others(tests, count)
    if binary == "pybpf":
        bad += suite.alone(tests, count)
    suite.second_try(bad, count)


def run_part(one, kept, count):
    failures = kept.failures(one.name)
    result = kept.part(one.name)
    if result:
        say("== %s: passed in an earlier run" % one.name)
        count.passed += result["passed"]
        count.skipped += result["skipped"]
    else:
        headline(one.name)
        alone = Count()
        one.do(alone)
        kept.keep(one.name, alone)
        for name in ("passed", "failed", "skipped", "failures", "times"):
            setattr(count, name, getattr(count, name) + getattr(alone, name))
        if alone.failed:
            return
    if failures:
        count.second_tries.append((one.name + pytests.EARLIER, "\n".join(failures)))


def test(build, count, which, fresh):
    if not stages.build_all(count) or not stages.may_be_root(count):
        return
    os.environ.update(THOROUGH)
    kept = Kept(build, fresh)
    stages.pythons(count)
    mine = share(parts(build), *which)
    for one in (one for one in mine if one.do):
        run_part(one, kept, count)
    files = [one.name for one in mine if one.name.endswith(".py")]
    if files:
        headline("tests of the kernel side and from end to end")
        run_suite(build, kept, count, "pybpf", files)
    if any(one.name == "sanitizers" for one in mine):
        headline("the core of the end-to-end tests, under ASan and UBSan")
        run_suite(build, kept, count, "pybpf-san", core.names())
    write_seconds(kept.path("seconds"), count)


def write_seconds(path, count):
    """As tests/seconds has them."""
    files = {}
    for seconds, name in count.times:
        if name.startswith("tests/") and not name.endswith(")"):
            file = name.partition("::")[0]
            files[file] = files.get(file, 0) + seconds
    with open(path, "w", encoding="ascii") as out:
        out.write("# What a file of tests takes, all its tests together, in seconds; make test-all writes it anew.\n")
        for file, seconds in sorted(files.items(), key=lambda item: (-item[1], item[0])):
            out.write("%6.1f %s\n" % (seconds, file))
