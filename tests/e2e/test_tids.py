# SPDX-License-Identifier: Apache-2.0
"""A thread is not its TID: the kernel gives that to the next one."""

import json
import re
import shutil

import pytest

import harness
import processes

pytestmark = pytest.mark.usefixtures("profiler")
SECONDS = 0.4
# What its thread is called -> what it runs.
FUNCTIONS = {"red-1": "red_1", "red-2": "red_2", "blue": "blue"}


def run_in_pid_namespace(folder, form):
    """pybpf sees the TIDs of its own PID namespace: it runs in that of the program."""
    if not shutil.which("unshare"):
        pytest.skip("unshare is missing")
    private = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    said, out, stats = (folder / name for name in ("said", "profile", "stats"))
    command = harness.default_python().command("tids.py", "%g" % (1000 * SECONDS))
    with open(said, "wb") as file:
        argv = [*private, harness.PYBPF, "-F", "999", "--threads", "-f", form, "-o", out, "--json-stats", stats]
        with harness.started([str(word) for word in [*argv, "--", *command]], stdout=file) as process:
            assert process.wait(harness.PATIENCE) == 0
    tids = json.loads(said.read_text())["tids"]
    assert len(tids) == 3 and len(set(tids)) == 1, "the TIDs were not used again: %s" % tids
    return out.read_text(), json.loads(stats.read_text()), tids[0]


def test_tid_used_again(tmp_path):
    out, stats, tid = run_in_pid_namespace(tmp_path, "folded")
    seen = dict.fromkeys(FUNCTIONS, 0)
    for stack, count in harness.parse(out):
        _, (thread, *frames) = processes.read_root(stack)
        names = {frame.name for frame in frames}
        # Before its burn a thread has not named itself yet.
        if "burn" not in names:
            continue
        assert thread.file == str(tid), harness.show(stack)
        assert names & set(FUNCTIONS.values()) == {FUNCTIONS.get(thread.name)}, harness.show(stack)
        seen[thread.name] += count
    for name, count in seen.items():
        assert count >= 0.5 * SECONDS * processes.RATE, (seen, stats)


def test_times_of_a_tid_used_again(tmp_path):
    """Each thread's samples have its name, and lie before those of the next one."""
    out, _, tid = run_in_pid_namespace(tmp_path, "perf-script")
    spans = {}
    for head, frames in re.findall(r"^(\S.*)\n((?:[ \t].*\n)+)", out, re.M):
        names = [name for name, function in FUNCTIONS.items() if " %s (" % function in frames]
        if not names or " burn (" not in frames:
            continue
        comm, owner, at = re.match(r"(\S+) +\d+/(\d+) +([\d.]+):", head).groups()
        assert ([comm], owner) == (names, str(tid)), head + frames
        first, last = spans.get(comm, (1e18, 0))
        spans[comm] = (min(first, float(at)), max(last, float(at)))
    assert sorted(spans) == sorted(FUNCTIONS), spans
    assert spans["red-1"][1] <= spans["blue"][0] <= spans["blue"][1] <= spans["red-2"][0], spans
