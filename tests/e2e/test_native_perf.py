# SPDX-License-Identifier: Apache-2.0
"""Native frames beside those of `perf record --call-graph dwarf`, which unwinds copies of stacks, of one program at one time."""

import collections
import math
import os
import re
import shutil
import subprocess
import sys

import pytest

import harness
import pythons

sys.path.insert(0, str(harness.TOP / "tests" / "judge"))
import wheels  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")

PROGRAM = """
import sys, time
sys.path.append(sys.argv[1])
import numpy
rng = numpy.random.default_rng(1)
values, matrix, texts = rng.random(40_000), rng.random((160, 160)), numpy.array([str(n) for n in range(3000)])
print("{}", flush=True)
end = time.process_time() + 12
while time.process_time() < end:
    numpy.sort(values)
    matrix @ matrix
    numpy.linalg.solve(matrix, matrix)
    numpy.sin(values)
    numpy.unique(texts)
"""
FREQ = 199
# Functions with a smaller share of the samples are not compared.
LEAST = 0.01
# Standard deviations: there are some hundred comparisons.
BEYOND_CHANCE = 5


def plain(name):
    """Without what one of both leaves out: versions, clones, arguments; memcpy and memmove are one function."""
    name = re.sub(r"@.*$|\.(constprop|isra|part|cold|lto_priv)\b.*$", "", name)
    name = re.sub(r"\(.*\)( const)?$", "", name).split("<")[0]
    return "memcpy" if re.match("__mem(cpy|move)_", name) else name


def of_perf(text):
    """Stacks, leaf first, without the functions of the kernel."""
    for stack in text.split("\n\n"):
        names = [plain(found) for found in re.findall(r"(?m)^\s+[0-9a-f]+ (.*) \((?!\[kernel).*\)$", stack)]
        if names:
            yield names, "_start" in names


def of_pybpf(run):
    for stack, count in run.stacks():
        names = [plain(frame.name) for frame in stack if not re.search(r"\.py$|^<", frame.file or "")]
        for _ in range(count):
            yield [name for name in reversed(names) if not name.startswith("[")], "[native frames incomplete]" not in names


def shares(stacks, pick):
    counts = collections.Counter()
    for stack, _ in stacks:
        counts.update(pick(stack))
    return counts


def differ(ours, others, pick):
    """Function -> (its share here and there, standard deviations) of those that differ beyond chance."""
    here, there, beyond = shares(ours, pick), shares(others, pick), {}
    for name in {*here, *there}:
        a, b = here[name] / len(ours), there[name] / len(others)
        both = (here[name] + there[name]) / (len(ours) + len(others))
        sigma = math.sqrt(both * (1 - both) * (1 / len(ours) + 1 / len(others)))
        if max(a, b) >= LEAST and abs(a - b) > BEYOND_CHANCE * sigma:
            beyond[name] = (a, b, (a - b) / sigma)
    return beyond


def test_same_functions_as_perf(tmp_path):
    perf = shutil.which("perf") or pytest.skip("perf is not installed; tools/install-deps --bench installs it")
    python = pythons.one((3, 12))
    folder, why = wheels.find(python, "numpy")
    if why:
        pytest.skip("%s has no numpy: %s" % (python.name, why))
    argv = [*python.argv, "-c", PROGRAM, folder]
    data = tmp_path / "perf.data"
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"}) as program:
        try:
            program.stdout.readline()
            record = [perf, "record", "-q", "-e", "cpu-clock", "-F", str(FREQ), "--call-graph", "dwarf,32768", "-p", str(program.pid), "-o", data]
            with subprocess.Popen(record, stderr=subprocess.DEVNULL):
                run = harness.pybpf("-p", program.pid, "--native=all", "-F", FREQ, "-f", "folded")
        finally:
            program.kill()
    assert run.code == 0, run.err
    script = [perf, "script", "-i", data, "--no-inline", "-F", "ip,sym,dso"]
    others = list(of_perf(subprocess.run(script, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout))
    # The first samples come before tables are there, and have no native frame.
    ours = [(stack, whole) for stack, whole in of_pybpf(run) if stack]
    assert min(len(ours), len(others)) > 1000, (len(ours), len(others), run.err)
    beyond = differ(ours, others, lambda stack: stack[:1])
    assert not beyond, beyond
    # Where one of both loses its way, such as in assembly of OpenBLAS, callers are not compared.
    lost = {stack[0] for stacks in (ours, others) for stack, whole in stacks if not whole}
    seen = [[(stack, whole) for stack, whole in stacks if whole and stack[0] not in lost] for stacks in (ours, others)]
    assert min(map(len, seen)) > 1000, (lost, list(map(len, seen)))
    beyond = differ(*seen, set)
    assert not beyond, beyond
