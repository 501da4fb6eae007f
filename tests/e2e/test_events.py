# SPDX-License-Identifier: Apache-2.0
"""-e EVENT counts what happened in each function, to the last one where nothing else causes it."""

import collections
import json
import os
import subprocess
import tempfile

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

VERSIONS = ((2, 7), (3, 8), (3, 11), (3, 12), (3, 13), pythons.NEWEST)
GETPPID = "tracepoint:syscalls:sys_enter_getppid"


def some_pythons():
    """One of each way in which frames are kept."""
    chosen = [pythons.one(version) for version in VERSIONS] + [pythons.one((3, 13), "free-threaded")]
    return [python for python in chosen if python]


def count(python, *options, form="folded"):
    """What the target says, what pybpf has written, and its account."""
    with tempfile.TemporaryDirectory() as folder:
        out, stats = os.path.join(folder, "out"), os.path.join(folder, "stats")
        done = subprocess.run(
            [harness.PYBPF, *options, "-o", out, "-f", form, "--json-stats", stats, "--", *python.command("events.py")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=harness.PATIENCE,
        )
        assert done.returncode == 0, done.stderr
        with open(out, encoding="utf-8") as file, open(stats, encoding="utf-8") as account:
            return json.loads(done.stdout), file.read(), json.load(account), done.stderr


def by_function(text):
    found = collections.Counter()
    for stack, value in harness.parse(text):
        for name in {frame.name for frame in stack}:
            found[name] += value
    return found


def check_account(stats, text):
    samples = stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], stats
    assert samples["taken"] == samples["python"] + sum(stats["without_python"].values()), stats
    assert sum(value for _, value in harness.parse(text)) == samples["python"] * stats["events_per_sample"], stats


every_python = pytest.mark.parametrize("python", some_pythons(), ids=lambda item: item.name)


@every_python
@pytest.mark.parametrize("event, function, what", [("page-faults", "touch", "pages"), ("context-switches", "nap", "naps")])
def test_events_are_counted_where_they_happen(python, event, function, what):
    """Others' work may push the target off its CPU, and memory of the interpreter is new, too: a few more."""
    says, text, stats, told = count(python, "-e", event)
    found = by_function(text)
    # On a busy machine some come before it is known what it is.
    assert says[what] - stats["samples"]["lost"] <= found[function] <= 1.03 * says[what] + 20, (found, stats)
    assert stats["source"] == event and stats["freq_hz"] is None
    assert "s of %s: " % event in told
    check_account(stats, text)


def test_switches_are_counted_where_the_run_queue_tells_whose_memory_it_is():
    """At a switch it has the next thread already, as kernels before 6.4 are asked (not for events that they count)."""
    options = ["-e", "context-switches", "--without-kernel-feature", "checked_reads"]
    says, text, stats, _ = count(pythons.one((3, 12)), *options)
    assert says["naps"] <= by_function(text)["nap"] <= 1.03 * says["naps"] + 20, stats
    check_account(stats, text)


@every_python
def test_a_tracepoint_is_counted_at_each_hit(python, tracefs):
    says, text, stats, _ = count(python, "-e", GETPPID)
    assert by_function(text)["ask"] == says["calls"] == stats["samples"]["python"]
    check_account(stats, text)


@pytest.mark.parametrize("event, function, what", [("page-faults", "touch", "pages"), (GETPPID, "ask", "calls")])
def test_a_sample_of_a_period_stands_for_all_of_it(event, function, what, tracefs):
    says, text, stats, told = count(pythons.one((3, 12)), "-e", event, "--period", "10")
    found = by_function(text)[function]
    # Each CPU has a period of its own, in which the events of others count.
    assert abs(found - says[what]) <= 0.02 * says[what], found
    assert found % 10 == 0 and stats["events_per_sample"] == 10
    assert "one sample for 10 of them" in told
    check_account(stats, text)


def test_major_faults_are_those_that_read_a_file(tmp_path):
    """A file of which little is in memory, without read-ahead: as many as the kernel has counted for the process."""
    path, counted = tmp_path / "file", tmp_path / "counted"
    path.write_bytes(b"x" * (256 << 12))
    code = (
        "import mmap, os, resource, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR); os.fsync(fd)\n"
        "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\n"
        "pages = mmap.mmap(fd, 0); pages.madvise(mmap.MADV_RANDOM)\n"
        "def touch():\n    for at in range(0, len(pages), 4096): pages[at]\n"
        "faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_majflt\n"
        "before = faults(); touch(); after = faults()\n"
        "open(sys.argv[2], 'w').write(str(after - before))\n"
    )
    run = pybpf("-e", "major-faults", "--", *pythons.one((3, 12)).argv, "-c", code, path, counted)
    assert run.code == 0, run.err
    found = by_function(run.out)["touch"]
    if not found:
        pytest.skip("the file system has its files in memory only")
    assert found == int(counted.read_text())


@pytest.mark.parametrize("form", ["text", "json", "callgrind", "svg", "perf-script"])
def test_formats_name_what_is_counted(form):
    _, text, _, _ = count(pythons.one((3, 12)), "-e", "page-faults", form=form)
    assert "page-faults" in text


def test_only_profiles_of_the_same_event_are_compared(tmp_path):
    paths = [str(tmp_path / name) for name in ("faults.pybpf", "switches.pybpf")]
    for path, event in zip(paths, ("page-faults", "context-switches")):
        run = pybpf("-e", event, "-o", path, "--", *pythons.one((3, 12)).command("events.py"), stdout=subprocess.DEVNULL)
        assert run.code == 0, run.err
    run = pybpf("diff", *paths)
    assert run.code != 0 and "page-faults" in harness.one_sentence(run.err)


@pytest.mark.parametrize(
    "options, told",
    [
        (["-e", "page-fault"], "page-faults"),
        (["-e", "tracepoint:"], "tracepoint:CATEGORY:NAME"),
        (["-e", "tracepoint:syscalls"], "tracepoint:CATEGORY:NAME"),
        (["-e", "tracepoint:../syscalls:x"], "tracepoint:CATEGORY:NAME"),
        (["-e", "tracepoint:%s:x" % ("c" * 99)], "tracepoint:CATEGORY:NAME"),
        (["-e", "tracepoint:no:such"], "no tracepoint no:such"),
        (["-e", "page-faults", "--mode=wall"], "--mode=cpu"),
        (["-e", "page-faults", "-F", "99"], "--period"),
        (["-e", "cpu-clock", "--period", "9"], "-F"),
        (["--period", "9"], "-F"),
        (["-e", "page-faults", "--period", "0"], "whole number"),
        (["-e", "page-faults", "--period", "-1"], "whole number"),
        (["-e", "page-faults", "--period", "1e99"], "whole number"),
    ],
)
def test_what_cannot_be_counted_is_refused(options, told, tracefs):
    run = pybpf(*options, "--", "/bin/true")
    assert run.code != 0 and not run.out
    assert told in harness.one_sentence(run.err)


def test_a_host_without_tracefs_is_told_how_to_mount_it():
    """In a mount namespace where both of its places are empty."""
    hide = "mount -t tmpfs none /sys/kernel/debug && mount -t tmpfs none /sys/kernel/tracing; exec \"$@\""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", hide, "sh", harness.PYBPF, "-e", GETPPID, "--", "/bin/true"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "tracefs is not mounted" in harness.one_sentence(done.stderr)
