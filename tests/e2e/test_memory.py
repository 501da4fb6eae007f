# SPDX-License-Identifier: Apache-2.0
"""--mode=memory: resident bytes by the function that touched them, less what was given back; --touched: all of them."""

import collections
import json
import mmap
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


def expect(text, lost=0):
    """lost: pages that are counted as lost, as of a program that touches its memory before it is known."""
    found = by_function(text)
    for name, size in TOUCHED.items():
        assert -0.05 * size - lost * mmap.PAGESIZE <= found[name] - size <= 0.05 * size, (name, found, lost)


def start(python, target):
    musl = ["musl"] if "musl" in python.name else []
    return subprocess.Popen(
        python.command(target, *musl), stdin=subprocess.PIPE, stdout=subprocess.PIPE, universal_newlines=True
    )


def run_target(process):
    """Returns by how much it grew, and what it says."""
    before = resident(process.pid)
    process.stdin.write("go\n")
    process.stdin.flush()
    told = process.stdout.readline()
    return resident(process.pid) - before, told


class Run:
    """What pybpf has written of a target that it was attached to, and by how much the target grew."""

    def __init__(self, python, tmp_path, *options, target="memory.py", everything=False):
        out, stats = tmp_path / "out", tmp_path / "stats"
        with start(python, target) as process:
            assert process.stdout.readline() == "ready\n"
            which = ["--all"] if everything else ["-p", str(process.pid)]
            with subprocess.Popen(
                [harness.PYBPF, "--mode=memory", *options, *which, "-o", str(out), "-f", "folded"]
                + ["--json-stats", str(stats)],
                stderr=subprocess.PIPE,
                text=True,
            ) as profiler:
                harness.wait_for(lambda: harness.is_attached(profiler.pid))
                time.sleep(0.5)  # until --all has looked at the process
                self.grown, self.said = run_target(process)
                harness.interrupt(profiler)
                self.told = profiler.communicate(timeout=harness.PATIENCE)[1]
            process.stdin.close()
        assert profiler.returncode == 0, self.told
        self.text = out.read_text(encoding="utf-8")
        self.account = json.loads(stats.read_text(encoding="utf-8"))
        self.memory = self.account["memory"]
        self.total = sum(value for _, value in harness.parse_all(self.text))


def by_leaf(text):
    found = collections.Counter()
    for stack, value in harness.parse(text):
        found[stack[-1].name] += value
    return found


@every_python
def test_growth_is_that_of_the_process(python, tmp_path):
    """What became resident less what was given back is the growth that the kernel tells."""
    run = Run(python, tmp_path, "--touched")
    expect(run.text)
    given_back = run.memory["given_back_bytes"]
    # The allocator of free-threaded builds gives memory back later (mimalloc's purge delay).
    assert given_back >= 0.95 * TOUCHED["freed"] or "13t" in python.name
    assert abs(run.total - given_back - run.grown) <= 0.05 * run.grown
    assert run.account["source"] == "touched-bytes" and run.account["freq_hz"] is None
    assert "MiB were given back, which are not subtracted" in run.told


@every_python
def test_stacks_hold_what_they_have_not_given_back(python, tmp_path):
    """Whatever way memory is touched, moved and given back in, and by however many threads at the same addresses."""
    run = Run(python, tmp_path, target="held.py")
    found = by_leaf(run.text)
    held = json.loads(run.said)
    # The function that calls mmap() makes the memory resident with MAP_POPULATE.
    held["mapped"] = held.pop("populated")
    # The allocator of free-threaded builds keeps what it has copied for a while (mimalloc's purge delay).
    if "13t" in python.name:
        assert found["objects"] >= held.pop("objects")
    assert len(held) >= 16
    for name, size in held.items():
        assert abs(found[name] - size) <= max(0.05 * size, MIB / 4), (name, found, run.told)
    assert abs(run.total - run.grown) <= 0.05 * run.grown, run.told
    assert run.memory["held_bytes"] == run.total and run.memory["held_at_most_bytes"] == 0
    assert abs(run.memory["touched_bytes"] - run.memory["given_back_bytes"] - run.grown) <= 0.05 * run.grown
    assert run.memory["lost_records"] == 0 and run.memory["refused_bytes"] == 0
    assert run.account["source"] == "memory-bytes"
    assert "stacks hold" in run.told and "are shown with" not in run.told
    assert run.memory["unknown_touched_bytes"] < MIB and run.memory["unknown_given_back_bytes"] < MIB


def test_functions_of_c_that_touch_memory(tmp_path):
    """They are the innermost ones, and each function of Python's has as many bytes as without them."""
    run = Run(pythons.one((3, 12)), tmp_path, "--native", "--touched")
    expect(run.text)
    whole = collections.Counter()
    for stack, value in harness.parse(run.text):
        names = [frame.name or frame.text for frame in stack]
        if "buffer" in names and "[native frames incomplete]" not in names:
            whole["memset" in names[-1] or "libc" in stack[-1].file] += value
    assert whole[True] > 0.9 * TOUCHED["buffer"], (whole, run.told)
    assert run.account["native"]["whole"] > run.account["native"]["no_table"], run.account["native"]


def test_all_processes_are_measured(tmp_path):
    found = by_function(Run(pythons.one((3, 12)), tmp_path, everything=True).text)
    assert found.pop("freed", 0) < MIB
    for name in found.keys() & TOUCHED:
        assert abs(found[name] - TOUCHED[name]) <= 0.05 * TOUCHED[name], (name, found)
    assert len(found.keys() & TOUCHED) == len(TOUCHED) - 1


def test_a_process_that_has_ended_has_what_it_held_at_most(tmp_path):
    """It gives everything back at its end, which tells nothing."""
    out, stats = tmp_path / "out", tmp_path / "stats"
    run = pybpf(
        "--mode=memory", "-o", out, "-f", "folded", "--json-stats", stats, "--", *pythons.one((3, 12)).command("memory.py")
    )
    assert run.code == 0, run.err
    text = out.read_text(encoding="utf-8")
    account = json.loads(stats.read_text(encoding="utf-8"))
    expect(text, account["samples"]["lost"])
    memory = account["memory"]
    assert memory["held_at_most_bytes"] == sum(value for _, value in harness.parse_all(text))
    assert memory["held_bytes"] < memory["held_at_most_bytes"] / 2
    assert "are shown with what they held" in run.err


def test_a_kernel_that_does_not_tell_what_moves(tmp_path):
    """Then stacks have what they touched, and a sentence says so."""
    command = pythons.one((3, 12)).command("memory.py")
    hide = "mount -t tmpfs none /sys/kernel/tracing/events/syscalls && exec \"$@\""
    stats = tmp_path / "stats"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hide, "sh", harness.PYBPF, "--mode=memory", "--json-stats", str(stats), "-o"]
        + [str(tmp_path / "out"), "-f", "folded", "--", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "no tracepoint syscalls:sys_exit_mmap" in done.stderr and "as with --touched" in done.stderr
    account = json.loads(stats.read_text(encoding="utf-8"))
    assert account["source"] == "touched-bytes"
    expect((tmp_path / "out").read_text(encoding="utf-8"), account["samples"]["lost"])


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
        (["--touched", "--mode=cpu"], "with --mode=memory"),
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
