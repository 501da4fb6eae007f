# SPDX-License-Identifier: Apache-2.0
"""What tables, names and lines of each file cost: with -v, and in --json-stats."""

import json
import re

import pytest

import harness
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

SPINS = "import json, time, zlib\nend = time.time() + 1\nwhile time.time() < end: zlib.compress(json.dumps(list(range(10000))).encode())"
FILE = re.compile(r"native files: (\S+): a table of (\d+) rows, ([\d.]+) KiB, in ([\d.]+) ms of CPU time; (\d+) names in ([\d.]+) ms")
LINES = re.compile(r"native lines: \S+: \d+ of \d+ places, in ([\d.]+) ms of CPU time")
ROUNDED_S = 0.00005  # of a number with one digit behind the point
LARGE = 5000  # rows: 20 ns each are 0.1 ms


def test_costs_of_files(tmp_path):
    stats = tmp_path / "stats.json"
    run = pybpf("--native-lines", "-v", "-F", 499, "--json-stats", stats, "-o", tmp_path / "p.pybpf", "--", harness.default_python().argv[0], "-c", SPINS)
    assert run.code == 0, run.err
    told = json.loads(stats.read_text(encoding="utf-8"))
    native, files, lines = told["native"], FILE.findall(run.err), LINES.findall(run.err)
    assert len(files) == native["files"] and sum(int(rows) for _, rows, *_ in files) == native["rows"], run.err
    for name, rows, size, ms, _, _ in files:
        # 8 bytes a row, in pages.
        assert 8 * int(rows) <= 1024 * float(size) <= 9 * int(rows) + 8192, name
        assert int(rows) < LARGE or float(ms) > 0, name
    sums = [
        (native["tables_cpu_s"], [float(ms) / 1e3 for *_, ms, _, _ in files]),
        (native["names_cpu_s"], [float(ms) / 1e3 for *_, ms in files]),
        (native["lines_cpu_s"], [float(ms) / 1e3 for ms in lines]),
    ]
    for told_s, each in sums:
        assert abs(told_s - sum(each)) <= ROUNDED_S * len(each) + 1e-6, (told_s, each)
    assert sum(int(names) for *_, names, _ in files) >= 10 and native["names_cpu_s"] > 0, run.err
    assert sum(told_s for told_s, _ in sums) < told["user_cpu_s"], told
