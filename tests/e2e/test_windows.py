# SPDX-License-Identifier: Apache-2.0
"""Runs, intervals and epochs are as long as asked for, whatever is on the machine.

The lengths are those that pybpf says: what it measured is of that time, so that a window that ends late is a longer one. How
long it takes from its start to its exit is compared with a run that has one process to look at.
"""
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import harness
import processes
from engines import expected
from harness import pybpf
from test_agent import NAME, as_json, end, epochs, span
from test_agent_serve import metrics, served

pytestmark = pytest.mark.usefixtures("profiler")

THREADS = 4000 if os.environ.get("PYBPF_TIER") == "gate" else 12000
RUN_S, INTERVAL_S, EPOCH_S = 5, 1, 5
CLOSE = 0.05
JITTER = 0.2  # of an epoch's length
SLOWER = 10  # times as long may what is before and after the run take beside a crowd, and as long as the run more
EPOCHS = 2 if os.environ.get("PYBPF_TIER") == "gate" else 3
# One epoch ends where the next one begins; both are whole milliseconds of clocks that are corrected meanwhile.
GAP_MS = 5
MODES = {"cpu": [], "wall": ["--mode=wall"], "wall --threads": ["--mode=wall", "--threads"]}


@pytest.fixture(scope="module")
def crowd(profiler):
    """A Python with many threads, of which all but one sleep."""
    with harness.target(harness.default_python(), "sleepers.py", str(THREADS)) as target:
        yield target


@pytest.fixture
def stolen():
    """What the host took away since the test began: no program can keep a time in that."""
    before = processes.stolen_s()
    return lambda: processes.stolen_s() - before


def is_close(length_s, wanted_s, stolen_s):
    return abs(length_s - wanted_s) <= CLOSE * wanted_s + stolen_s


def run(length_s, *words):
    """A run's own duration, and that of its process."""
    begin = time.monotonic()
    with tempfile.NamedTemporaryFile() as stats:
        done = pybpf("-d", length_s, "-q", "-o", "/dev/null", "--json-stats", stats.name, *words, timeout=4 * harness.PATIENCE)
        assert done.code == 0, done
        return json.loads(Path(stats.name).read_text(encoding="utf-8"))["duration_s"], time.monotonic() - begin


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_a_run(crowd, stolen, options):
    with harness.target(harness.default_python(), "sleepers.py", "1") as one:
        _, before_s = run(1, "-p", one.pid, *options)
        begin_stolen = stolen()
        took_s, process_s = run(RUN_S, "--all", *options)
        was_stolen = stolen() - begin_stolen
        _, after_s = run(1, "-p", one.pid, *options)
    assert is_close(took_s, RUN_S, was_stolen), took_s
    rest_s = max(before_s, after_s) - 1
    assert process_s <= 2 * RUN_S + SLOWER * rest_s + was_stolen, (process_s, rest_s)


def test_intervals(crowd, stolen):
    shown = pybpf("top", "--all", "-d", 5 * INTERVAL_S, "--interval", INTERVAL_S, "--output", "jsonl", stdout=subprocess.PIPE)
    assert shown.code == 0, shown
    # The last one has what came after the last whole interval.
    lengths = [json.loads(line)["last"]["duration_s"] for line in shown.out.splitlines()][:-1]
    assert len(lengths) >= 3 and all(is_close(one, INTERVAL_S, stolen()) for one in lengths), lengths


@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "random"])
@pytest.mark.parametrize("modes", [["cpu"], ["wall"], ["cpu", "wall"]], ids=" ".join)
def test_epochs(crowd, stolen, tmp_path, modes, fixed):
    """They follow each other without a gap, and none is late by the agent's own count."""
    folder = tmp_path / "epochs"
    first = folder / modes[0] if len(modes) > 1 else folder
    options = ["--mode=" + mode for mode in modes] + ["--fixed-epochs"] * fixed
    with served(folder, "--epoch", "%ds" % EPOCH_S, *options) as (process, ask):
        harness.wait_for(lambda: len(epochs(first)) >= EPOCHS, timeout=2 * harness.PATIENCE)
        names, late = epochs(first)[:EPOCHS], metrics(ask)["pybpf_epochs_late_total"]
        end(process)
    lengths = [int(NAME.fullmatch(name).group(1)) / 1000 for name in names]
    if fixed:
        assert all(is_close(one, EPOCH_S, stolen()) for one in lengths), lengths
    else:
        assert all((1 - JITTER) * EPOCH_S * (1 - CLOSE) <= one <= (1 + JITTER) * EPOCH_S * (1 + CLOSE) + stolen() for one in lengths), lengths
    assert late == 0 or stolen() > CLOSE * EPOCH_S, (late, lengths)
    for one, following in zip(names, names[1:]):
        assert abs(span(following)[0] - span(one)[1]) <= GAP_MS, names


def test_what_there_was_no_time_for(crowd, tmp_path):
    """The stacks of so many threads take some seconds where the machine is slow: the metrics have the time without them, as the files do."""
    folder = tmp_path / "epochs"
    with served(folder, "-p", crowd.pid, "--mode=wall", "--threads", "--epoch", "1s", "--max-cpu", "100%") as (process, ask):
        now = harness.wait_for(lambda: metrics(ask) if metrics(ask)["pybpf_epochs_total"] >= EPOCHS else None)
        end(process)
    unread_us = 0
    for name in epochs(folder)[:int(now["pybpf_epochs_total"])]:
        for stack, us in expected(as_json(folder / name)).items():
            unread_us += us if "[asleep since before the run]" in (function for function, _, _ in stack) else 0
    assert abs(now['pybpf_wait_seconds_without_stack_total{mode="wall",cause="not_read"}'] - unread_us / 1e6) <= 0.01, now
    assert now['pybpf_threads_unread{mode="wall"}'] + now['pybpf_threads_woke_unread_total{mode="wall"}'] <= THREADS + 1, now
