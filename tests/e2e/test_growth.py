# SPDX-License-Identifier: Apache-2.0
"""Saved profiles that somebody made to be slow: eight times the file takes some eight times the CPU time, not 64."""

import os
import resource
import subprocess
from pathlib import Path

import pytest

import harness

GROW = Path(harness.PYBPF).parent / "grown-profiles"
SHAPES = subprocess.run([GROW], stdout=subprocess.PIPE, check=True, timeout=60).stdout.decode().split() if GROW.exists() else []
FORMATS = "folded text html pybpf pprof callgrind pstats json jsonl svg speedscope gecko chrometrace perf-script".split()
WAYS = [
    *(["report", "{file}", "-f", name] for name in FORMATS),
    ["report", "{file}", "-f", "text", "--by", "state", "--limit", "1000000"],
    ["report", "{file}", "{other}", "-f", "text", "--by", "line"],
    ["report", "{file}", "{file}", "--threads", "--by", "container", "-f", "json"],
    ["report", "{file}", "{other}", "--anonymize", "-f", "json"],
    ["report", "{file}", "{other}", "--merge", "--focus", "f7|s7|c7"],
    ["diff", "{file}", "{other}"],
    ["diff", "{file}", "{other}", "--by", "line", "-f", "json"],
    ["diff", "{other}", "{file}", "-f", "html"],
]
SMALL, TIMES = 2500, 8  # no stack has more than 32,768 functions
# In proportion would be 8, with sorting some 10; what compares all with all takes 64 times as long.
MOST_TIMES = 24
# Below this many seconds the time is that of the start.
LEAST_S = 0.03


def cpu_s(argv):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=2 * harness.PATIENCE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_there_are_shapes():
    assert len(SHAPES) >= 10, "make test-programs makes %s" % GROW


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_the_file(tmp_path, shape):
    for count in SMALL, SMALL * TIMES:
        for name in {shape, "names"}:
            subprocess.run([GROW, name, str(count), tmp_path / ("%s-%d.pybpf" % (name, count))], check=True, timeout=60)
    for way in WAYS:
        took = []
        for count in SMALL, SMALL * TIMES:
            # Time is not added to samples.
            other = shape if shape == "waits" else "names"
            files = {word: tmp_path / ("%s-%d.pybpf" % (name, count)) for word, name in {"file": shape, "other": other}.items()}
            words = [word.format(**files) for word in way]
            took.append(cpu_s([harness.PYBPF, *words, "-q", "-o", tmp_path / "out"]))
        assert took[1] < MOST_TIMES * max(took[0], LEAST_S), "%s: %.2f s and %.2f s" % (" ".join(way), *took)
        os.unlink(tmp_path / "out")
