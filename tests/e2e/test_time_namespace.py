# SPDX-License-Identifier: Apache-2.0
"""pybpf in a time namespace, whose clocks are not those that the kernel keeps."""

import json
import subprocess

import pytest

import harness
from harness import total

OFFSETS = [("boottime", 100000), ("boottime", -1), ("monotonic", 5000000)]
SECONDS = 1


def inside(clock, seconds):
    return ["unshare", "--time", "--%s" % clock, str(seconds)]


@pytest.fixture(params=OFFSETS, ids=lambda offset: "%s%+d" % offset)
def namespace(request, profiler):
    argv = inside(*request.param)
    done = subprocess.run([*argv, "true"], capture_output=True, text=True)
    if done.returncode:
        pytest.skip("no time namespace here: " + done.stderr.strip())
    return [*argv, profiler]


@pytest.mark.parametrize("which", ["one", "all"])
def test_processes_are_found(namespace, spinning, which):
    """A process is told from another with its PID by its start, which pybpf and the kernel have by two clocks."""
    wanted = ["--all", "--comm", "python*"] if which == "all" else ["-p", str(spinning.pid)]
    done = subprocess.run(
        [*namespace, *wanted, "-d", str(SECONDS), "-F", "999", "--full-filenames"],
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    mine = [(stack, count) for stack, count in harness.parse(done.stdout) if stack[-1].file.endswith("/spin.py")]
    assert total(mine) >= 10, done.stderr


def test_samples_have_their_time(namespace, spinning, tmp_path):
    out = tmp_path / "out.jsonl"
    done = subprocess.run(
        [*namespace, "-p", str(spinning.pid), "-d", str(SECONDS), "-F", "999", "--timestamps", "-o", out],
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in out.read_text().splitlines()]
    times = [event[0] for record in records for event in record.get("events", ())]
    assert len(times) >= 10, done.stderr
    # Since the run's start; some of them later than the first half of it, none long after its end.
    assert 0.5 * SECONDS * 1e9 <= max(times) <= (SECONDS + harness.PATIENCE) * 1e9, times[:3] + times[-3:]
    assert len(set(times)) > 0.9 * len(times)
