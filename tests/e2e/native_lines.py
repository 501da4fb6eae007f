# SPDX-License-Identifier: Apache-2.0
"""The library of tests/targets/native_lines.c, whose lines are known, recorded and read back."""

import collections
import re
import shutil
import subprocess

import pytest

import harness
from harness import pybpf

SOURCE = harness.TOP / "tests" / "targets" / "native_lines.c"
GOES = "import ctypes, sys\ngos = [ctypes.CDLL(path).nl_go for path in sys.argv[1:]]\nfor _ in range(12 // len(gos)):\n    for go in gos: go(50)\n"
LIBRARY = "lines.so"


def run(*argv, **options):
    return subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True, **options).stdout


def make(path, *options, source=SOURCE):
    """Compiles the library with its symbols and its information for debuggers."""
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc")
    run(compiler, "-O2", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--build-id", *options, "-o", path, source)
    return path


def stripped(whole, folder, *options):
    path = folder / whole.name
    run("objcopy", "--strip-all", *options, whole, path)
    return path


def record(libraries, saved, *options, env=None):
    """What is said at the end of a run, whose profile is saved."""
    libraries = libraries if isinstance(libraries, list) else [libraries]
    done = pybpf(*options, "-F", 499, "-o", saved, "--", harness.default_python().argv[0], "-c", GOES, *libraries, env=env)
    assert done.code == 0, done.err
    return done.err


def build_id(library):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", library)).group(1)


def marks():
    """Mark -> line of the source."""
    lines = SOURCE.read_text(encoding="utf-8").split("\n")
    return {mark: number for number, line in enumerate(lines, 1) for mark in re.findall(r"/\* LINE (\w+) \*/", line)}


def shown(saved, *options):
    """Chains of functions of the library, with their lines -> samples."""
    found = collections.Counter()
    for stack, count in pybpf("report", saved, "-f", "folded", *options).stacks():
        chain = tuple("%s:%s" % (frame.name, frame.line) for frame in stack if frame.file == SOURCE.name)
        if chain:
            found[chain] += count
    return found


def check_chains(saved):
    """Nearly all samples are in the two loops, each on the line of its call or on those of the loop itself."""
    line, found = marks(), shown(saved)
    outer = ["nl_go:%d" % line["go"], "outer:%d" % line["outer"], "call_twice:%d" % line["inlined_caller"]]
    calls = [["twice:%d" % line["first"], "middle:%d" % line["middle"]], ["twice:%d" % line["second"]]]
    loop = ["innermost:%d" % (line["innermost"] - part) for part in (0, 1)]
    inner = {tuple([*outer, *call, leaf]): number for number, call in enumerate(calls) for leaf in loop}
    counts = collections.Counter()
    for chain, count in found.items():
        if not chain[-1].startswith("cpu_ns:"):  # what it takes to ask the kernel for the time differs by machine
            counts[inner.get(chain, "other")] += count
    assert min(counts[0], counts[1]) > 0.2 * counts.total() and counts["other"] < 0.1 * counts.total(), found
