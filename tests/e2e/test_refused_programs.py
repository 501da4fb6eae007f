# SPDX-License-Identifier: Apache-2.0
"""What is said, and done, when the kernel takes some of pybpf's programs and refuses others.

strace answers chosen bpf() calls with the error of a verifier that refuses a program, as kernels do whose verifier
counts differently.
"""

import json
import platform
import re
import shutil
import subprocess

import pytest

import harness
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

LOAD = re.compile(r"bpf\(BPF_PROG_LOAD, .*prog_name=\"(\w+)\"")
LOADS = 2  # libbpf's of a program that is refused: the second one is for the log
FEWEST = 1  # sample of a second: other programs may have the CPUs


@pytest.fixture(autouse=True)
def needs_strace():
    if not shutil.which("strace"):
        pytest.skip("strace is not installed; tools/install-deps --test installs it")


def run_traced(expression, argv, log="/dev/null"):
    trace = ["strace", "-s", "64", "-e", "trace=bpf", *expression, "-o", str(log)]
    return subprocess.run(
        [*trace, harness.PYBPF, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=harness.PATIENCE
    )


def find_loads(program, log):
    """The numbers of the bpf() calls of pybpf's main process that load this program, and whether each succeeded."""
    with open(log, encoding="utf-8", errors="replace") as calls:
        lines = [(number, line, LOAD.match(line)) for number, line in enumerate(calls, 1)]
    return [(number, " = -1 " not in line) for number, line, match in lines if match and match.group(1) == program]


def refuse(program, argv, folder, times=LOADS):
    """Runs pybpf with the first loads of the program refused. Returns the run, and the program's further loads."""
    run_traced([], argv, folder / "free")
    first = find_loads(program, folder / "free")[0][0]
    inject = "inject=bpf:error=EACCES:when=%d..%d" % (first, first + times - 1)
    done = run_traced(["-e", inject], argv, folder / "refused")
    loads = find_loads(program, folder / "refused")
    assert loads[:times] == [(first + n, False) for n in range(times)], loads
    return done, loads[times:]


def check_true(text):
    """No sentence asks for a kernel that this one is."""
    kernel = tuple(map(int, platform.release().split(".")[:2]))
    for major, minor in re.findall(r"Linux (\d+)\.(\d+) (?:or|and) newer", text):
        assert kernel < (int(major), int(minor)), text


@pytest.mark.parametrize(
    "program, options",
    [
        ("wait_switch", ["--mode=wall"]),
        ("sample_uprobe", ["-e", "uprobe:{libc}:getppid"]),
        ("sample_loop", ["--native"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_refused_program_is_no_old_kernel(spinning, tmp_path, program, options):
    """What has one program only is not tried in another way, and the kernel is not called older than it is."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        libc = next(line.split()[-1] for line in maps if "/libc.so.6" in line)
    argv = ["-p", str(spinning.pid), "-d", "0.2", *(option.format(libc=libc) for option in options)]
    done, further = refuse(program, argv, tmp_path)
    assert done.returncode == 1 and not done.stdout, done.stderr
    assert not further, further
    check_true(done.stderr)
    assert "cannot load the BPF programs into this kernel (%s)" % platform.release() in harness.one_sentence(done.stderr)


def test_top_does_without_states_whose_program_is_refused(spinning, tmp_path):
    argv = ["top", "-p", str(spinning.pid), "-d", "1", "--output", "jsonl"]
    done, further = refuse("wait_switch", argv, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not further, further
    assert json.loads(done.stdout.splitlines()[-1])["all"]["samples"] >= FEWEST, done.stdout


def test_the_timer_does_with_a_chain(spinning, tmp_path):
    argv = ["-p", str(spinning.pid), "-d", "1"]
    done, further = refuse("sample_loop", argv, tmp_path)
    assert done.returncode == 0, done.stderr
    assert not further, further
    assert harness.total(harness.parse(done.stdout)) >= FEWEST, done.stdout


@pytest.mark.parametrize(
    "options", [["--mode=wall"], ["--mode=gil"], ["--mode=memory"], ["-e", "tracepoint:sched:sched_switch"]], ids="".join
)
def test_what_was_left_out_is_not_asked_for(spinning, options, tracefs):
    """Without a feature that the user has left out, no newer kernel helps."""
    run = pybpf("-p", spinning.pid, "-d", "0.2", *options, "--without-kernel-feature", "bpf_loop")
    assert run.code == 1, run.err
    check_true(run.err)
    assert "leave them out of --without-kernel-feature bpf_loop" in run.err, run.err
