# SPDX-License-Identifier: Apache-2.0
"""--mode=memory: bytes that became resident, by the function that touched them, and how many were given back."""

import json
import re
import subprocess
import time

import pytest

import harness
import pythons
from harness import pybpf
from test_events import by_function, every_python

pytestmark = pytest.mark.usefixtures("profiler", "tracefs")

MIB = 1 << 20
TOUCHED = {"array": 40 * MIB, "mapping": 30 * MIB, "huge": 32 * MIB, "buffer": 50 * MIB, "freed": 20 * MIB}


def resident(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="utf-8") as file:
        return int(re.search(r"^Rss:\s+(\d+) kB", file.read(), re.M).group(1)) * 1024


def is_attached(pid):
    return any(words.get("link_type") == "perf" for words in harness.fdinfo(pid))


def expect(text):
    found = by_function(text)
    for name, size in TOUCHED.items():
        assert abs(found[name] - size) <= 0.05 * size, (name, found)


def start(python):
    return subprocess.Popen(
        python.command("memory.py"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
    )


def run_target(process):
    """Returns by how much it grew."""
    before = resident(process.pid)
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
    return resident(process.pid) - before


def measure(python, tmp_path, everything=False):
    """Returns folded stacks, the account as JSON and as text, and by how much the target grew."""
    out, stats = tmp_path / "out", tmp_path / "stats"
    with start(python) as process:
        assert process.stdout.readline() == "ready\n"
        which = ["--all"] if everything else ["-p", str(process.pid)]
        with subprocess.Popen(
            [harness.PYBPF, "--mode=memory", *which, "-o", str(out), "-f", "folded", "--json-stats", str(stats)],
            stderr=subprocess.PIPE,
            text=True,
        ) as profiler:
            harness.wait_for(lambda: is_attached(profiler.pid))
            time.sleep(0.5)  # until --all has looked at the process
            grown = run_target(process)
            harness.interrupt(profiler)
            told = profiler.communicate(timeout=harness.PATIENCE)[1]
        process.stdin.close()
    assert profiler.returncode == 0, told
    return out.read_text(encoding="utf-8"), json.loads(stats.read_text(encoding="utf-8")), told, grown


@every_python
def test_growth_is_that_of_the_process(python, tmp_path):
    """What became resident less what was given back is the growth that the kernel tells."""
    text, account, told, grown = measure(python, tmp_path)
    expect(text)
    given_back = account["memory"]["given_back_bytes"]
    # The allocator of free-threaded builds gives memory back later (mimalloc's purge delay).
    assert given_back >= 0.95 * TOUCHED["freed"] or "13t" in python.name
    assert abs(sum(value for _, value in harness.parse_all(text)) - given_back - grown) <= 0.05 * grown
    assert account["source"] == "memory-bytes" and account["freq_hz"] is None
    assert "MiB were given back" in told


def test_all_processes_are_measured(tmp_path):
    expect(measure(pythons.one((3, 12)), tmp_path, everything=True)[0])


@pytest.mark.parametrize("form", ["text", "json", "callgrind", "svg", "perf-script", "speedscope"])
def test_formats_say_bytes(form, tmp_path):
    out = tmp_path / "out"
    run = pybpf("--mode=memory", "-o", out, "-f", form, "--", *pythons.one((3, 12)).command("memory.py"))
    assert run.code == 0, run.err
    assert "bytes" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "options, told",
    [
        (["-e", "page-faults"], "-e page-faults and --mode=memory"),
        (["-F", "99"], "no rate"),
        (["--period", "9"], "no rate"),
        (["--gil"], "--mode=memory is about memory"),
        (["--gc"], "--mode=memory is about memory"),
        (["--timestamps"], "--timestamps"),
        (["--by=state"], "--mode=wall"),
        (["--min-block", "1ms"], "--mode=wall"),
    ],
)
def test_what_contradicts_it_is_refused(options, told):
    run = pybpf("--mode=memory", *options, "--", "/bin/true")
    assert run.code != 0 and not run.out
    assert told in harness.one_sentence(run.err)
