# SPDX-License-Identifier: Apache-2.0
"""The options, what is printed where, and how a run is ended."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import time

import pytest

import harness
import processes
import pythons
from harness import Expectation, pybpf, record, total

STATS = {
    "duration_s": (int, float),
    "samples": dict,
    "incomplete": dict,
    "stacks": int,
    "kernel_ns_per_sample": (int, float),
    "user_cpu_s": (int, float),
    "peak_rss_kib": int,
    "time_to_first_sample_ms": (int, float),
}

pytestmark = pytest.mark.usefixtures("profiler")


def start(*args, **options):
    return harness.started([harness.PYBPF, *map(str, args)], **options)


def works(run, target):
    """Waits until pybpf samples, and the target has had the CPU meanwhile."""
    harness.wait_for(lambda: harness.samples_now(run.pid))
    end = harness.cpu_s(target.pid) + 0.2
    harness.wait_for(lambda: harness.cpu_s(target.pid) > end)


@pytest.mark.parametrize("option", ["-F", "--freq", "-r", "--rate"])
def test_rate(spinning, option):
    """The rate is that of the target's CPU time, which its own clock has from before the run until after it."""
    found = {}
    for hertz in (20, 500):
        for seconds in (1, 4, 16):
            before = harness.cpu_s(spinning.pid)
            found[hertz] = total(pybpf("-p", spinning.pid, "-d", seconds, option, hertz, "-q").stacks())
            took = harness.cpu_s(spinning.pid) - before
            if found[hertz]:
                break
        assert 0 < found[hertz] <= 1.1 * hertz * took + 5, (found, took)
    assert found[500] > 2 * 20 * took, (found, took)


def test_default_rate_is_99(spinning):
    run = pybpf("-p", spinning.pid, "-d", 2)
    asked = int(re.search(r"^pybpf: [\d.]+ s at 99 Hz on the CPU clock: (\d+) sample", run.err, re.M).group(1))
    # A program that others keep from the CPU is met less often, and never more often.
    assert 0 < total(run.stacks()) <= asked <= 99 * 2 * 1.2, run.err


def test_rate_above_the_limit_names_limit_and_sysctl(spinning):
    name = "kernel.perf_event_max_sample_rate"
    with open("/proc/sys/" + name.replace(".", "/"), encoding="ascii") as sysctl:
        limit = sysctl.read().strip()
    run = pybpf("-p", spinning.pid, "-d", 0.4, "-F", int(limit) + 1)
    assert limit in run.err and "perf_event_max_sample_rate" in run.err
    assert run.code != 0


def test_duration(spinning):
    begin = time.monotonic()
    run = record(spinning.pid, seconds=1)
    assert 1 <= run.stats["duration_s"] <= time.monotonic() - begin


def test_record_may_be_spelt_out(spinning):
    run = pybpf("record", "-p", spinning.pid, "-d", 1)
    assert run.code == 0 and total(run.stacks()) > 0


def test_lines_none(spinning):
    stacks = pybpf("-p", spinning.pid, "-d", 0.4, "-F", 1999, "--lines=none").stacks()
    assert [f.name for f in stacks[0][0]][:2] == ["<module>", "outer"]
    assert all(frame.line is None for stack, _ in stacks for frame in stack)


def test_lines_first(spinning):
    stacks = pybpf("-p", spinning.pid, "-d", 0.4, "-F", 1999, "--lines=first").stacks()
    first = {"<module>": 1, "outer": 10, "inner": 6}
    with open(pythons.TARGETS / "spin.py", encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            for name in ("outer", "inner"):
                if line.startswith("def %s(" % name):
                    first[name] = number
    for stack, _ in stacks:
        for frame in stack:
            assert frame.line == first[frame.name] or frame.name == "<module>", harness.show(stack)
            assert frame.name != "<module>" or frame.line in (0, 1)


def test_lines_current_is_the_default(spinning):
    for options in ([], ["--lines=current"]):
        stacks = record(spinning.pid, *options).stacks()
        Expectation(spinning.says).check(stacks)


def test_full_filenames(spinning):
    path = str(pythons.TARGETS / "spin.py")
    stacks = pybpf("-p", spinning.pid, "-d", 0.4, "-F", 1999, "--full-filenames").stacks()
    assert {frame.file for stack, _ in stacks for frame in stack} == {path}


def test_paths_are_shortened_to_what_is_imported():
    interpreter = harness.default_python()
    with harness.target(interpreter, "threads.py") as running:
        short = pybpf("-p", running.pid, "-d", 0.4, "-F", 1999).stacks()
        whole = pybpf("-p", running.pid, "-d", 0.4, "-F", 1999, "--full-filenames").stacks()
    assert {f.file for stack, _ in short for f in stack} == {"threading.py", "threads.py"}
    files = {f.file for stack, _ in whole for f in stack}
    assert all(os.path.isabs(name) for name in files), files


def test_threads_names_and_ids():
    with harness.target(harness.default_python(), "threads.py") as running:
        out = record(running.pid, "--threads").out
        threads = running.says["more"]["threads"]
    seen = set()
    for row in out.splitlines():
        root = harness.unescape(row.split(";")[0])
        for name, tid, function in threads:
            if name in root:
                assert str(tid) in root, row
                assert ";%s (" % function in row, row
                seen.add(name)
    assert seen == {name for name, _, _ in threads}


def test_without_threads_no_thread_is_named():
    with harness.target(harness.default_python(), "threads.py") as running:
        out = record(running.pid).out
    assert "worker" not in out


def test_output_file(spinning, tmp_path):
    path = tmp_path / "profile.folded"
    run = pybpf("-p", spinning.pid, "-d", 1, "-F", 999, "-o", path)
    assert run.code == 0 and run.out == ""
    Expectation(spinning.says).check(harness.parse(path.read_text()))
    assert os.listdir(tmp_path) == ["profile.folded"]


def test_output_replaces_a_file_only_at_the_end(spinning, tmp_path):
    path = tmp_path / "profile.folded"
    path.write_text("before")
    with start("-p", spinning.pid, "-o", path, stderr=subprocess.PIPE) as run:
        works(run, spinning)
        assert path.read_text() == "before"
        harness.interrupt(run)
        assert run.wait(harness.PATIENCE) == 0
    assert total(harness.parse(path.read_text())) > 0


def test_format_text_is_a_table(spinning):
    run = pybpf("-p", spinning.pid, "-d", 1, "-F", 499, "-f", "text")
    assert run.code == 0
    rows = [row for row in run.out.splitlines() if "inner" in row]
    assert rows and "%" in run.out


def test_format_folded_whatever_the_suffix(spinning, tmp_path):
    path = tmp_path / "profile.txt"
    assert pybpf("-p", spinning.pid, "-d", 1, "-f", "folded", "-o", path).code == 0
    assert total(harness.parse(path.read_text())) > 0


def test_account(spinning):
    run = pybpf("-p", spinning.pid, "-d", 0.4, "--stats")
    for word in ("asked", "taken", "stack", "ns", "CPU"):
        assert word in run.err, run.err
    assert len(run.err.strip().splitlines()) <= 12


def test_quiet(spinning):
    run = pybpf("-p", spinning.pid, "-d", 1, "-q")
    assert run.code == 0 and run.err == "" and total(run.stacks()) > 0


def test_verbose_tells_what_was_found(spinning):
    run = pybpf("-p", spinning.pid, "-d", 0.4, "-v")
    version = "%d.%d" % tuple(spinning.says["version"][:2])
    assert version in run.err
    assert "thread" in run.err and "offsets" in run.err


def test_json_stats(spinning):
    stats = record(spinning.pid).stats
    for key, kind in STATS.items():
        assert isinstance(stats[key], kind), (key, stats)
    samples = stats["samples"]
    assert set(samples) >= {"asked", "taken", "python", "lost"}
    assert samples["asked"] >= samples["taken"] >= samples["python"] > 0
    assert samples["asked"] == samples["taken"] + samples["lost"]
    assert all(count == 0 for count in stats["incomplete"].values())
    assert 0 < stats["kernel_ns_per_sample"] < 1e6
    assert 0 < stats["time_to_first_sample_ms"] < 10000
    assert 1000 < stats["peak_rss_kib"] < 500000


def test_distinct_stacks_are_counted(spinning):
    run = record(spinning.pid, "--full-filenames")
    # Two positions in one line are two stacks for the kernel and one row in the output.
    assert run.stats["stacks"] >= len(run.stacks())


@pytest.mark.parametrize("interrupts", [1, 2, 5])
def test_interrupt_writes_what_was_collected(spinning, tmp_path, interrupts):
    path = tmp_path / "profile.folded"
    with start("-p", spinning.pid, "-F", 499, "-o", path, stderr=subprocess.PIPE) as run:
        works(run, spinning)
        assert run.poll() is None, run.stderr.read()
        for _ in range(interrupts):
            harness.interrupt(run)
        code = run.wait(harness.PATIENCE)
    if interrupts == 1 or path.exists():
        stacks = harness.parse(path.read_text())
        assert total(stacks) > 0
        Expectation(spinning.says).check(stacks)
        assert code == 0
    else:
        assert code != 0, "nothing was written and all is said to be well"
    assert os.listdir(tmp_path) in (["profile.folded"], [])


def test_a_terminal_interrupts_helpers_too(spinning, tmp_path):
    """Ctrl-C goes to the whole group of processes."""
    path = tmp_path / "profile.folded"
    with start("-p", spinning.pid, "-o", path, stderr=subprocess.PIPE, start_new_session=True) as run:
        works(run, spinning)
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(harness.PATIENCE) == 0, run.stderr.read()
    assert total(harness.parse(path.read_text())) > 0
    assert os.listdir(tmp_path) == ["profile.folded"]


def test_terminate_writes_what_was_collected(spinning, tmp_path):
    path = tmp_path / "profile.folded"
    with start("-p", spinning.pid, "-o", path, stderr=subprocess.PIPE) as run:
        works(run, spinning)
        run.send_signal(signal.SIGTERM)
        assert run.wait(harness.PATIENCE) == 0
    assert total(harness.parse(path.read_text())) > 0


def test_the_end_of_a_terminal_is_not_that_of_a_run_under_nohup(spinning, tmp_path):
    stats = tmp_path / "stats.json"
    argv = ["nohup", harness.PYBPF, "-q", "-p", str(spinning.pid), "-d", "2", "-o", os.devnull, "--json-stats", str(stats)]
    with harness.started(argv, stdin=subprocess.DEVNULL) as run:
        harness.wait_for(lambda: run.poll() is not None or processes.is_sampling(run.pid))
        run.send_signal(signal.SIGHUP)
        assert run.wait(harness.PATIENCE) == 0
    assert json.loads(stats.read_text())["duration_s"] >= 2


def test_no_progress_when_stderr_is_no_terminal(spinning):
    run = pybpf("-p", spinning.pid, "-d", 2)
    assert "\r" not in run.err and "\x1b" not in run.err
    assert 0 < len(run.err.strip().splitlines()) <= 6


def read_terminal(master, process):
    seen = b""
    while process.poll() is None or select.select([master], [], [], 0.2)[0]:
        if select.select([master], [], [], 0.2)[0]:
            try:
                seen += os.read(master, 65536)
            except OSError:  # the last writer is gone
                break
    return seen.decode("utf-8", "replace")


def test_progress_on_a_terminal(spinning):
    master, slave = pty.openpty()
    with start("-p", spinning.pid, "-d", 2, stderr=slave, stdout=subprocess.DEVNULL) as run:
        os.close(slave)
        seen = read_terminal(master, run)
        assert run.wait(harness.PATIENCE) == 0
    os.close(master)
    progress = [part for part in seen.replace("\n", "\r").split("\r") if "sample" in part]
    assert len(progress) >= 3, seen


def test_target_is_not_stopped_nor_changed(spinning):
    """It never enters a traced or stopped state, and its memory map stays as it was."""

    def mappings():
        with open("/proc/%d/maps" % spinning.pid, encoding="utf-8") as maps:
            return [row.split()[:2] + row.split()[5:] for row in maps if "[heap]" not in row]

    before, states = mappings(), set()
    with start(
        "-p", spinning.pid, "-d", 2, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        while run.poll() is None:
            states.add(harness.state(spinning.pid))
            time.sleep(0.002)
    assert states <= {"R", "S"}, states
    named = [row for row in before if len(row) > 2]
    assert [row for row in mappings() if len(row) > 2] == named


def test_crowd_costs_no_more_than_one():
    costs = {}
    for count in (1, 400):
        with harness.target(harness.default_python(), "crowd.py", str(count)) as running:
            runs = [record(running.pid) for _ in range(2)]
            Expectation(running.says).check(runs[-1].stacks())
            costs[count] = min(run.stats["kernel_ns_per_sample"] for run in runs)
    assert costs[400] < 3 * costs[1], costs


def test_dead_before_its_names_are_read():
    """The process is gone at the end of the run; what it did last has its names all the same."""
    with harness.target(harness.default_python(), "mortal.py", "2") as running:
        run = pybpf("-p", running.pid, "-d", 2 * harness.PATIENCE, "-F", 999)
        assert run.code == 0 and "end" in run.err, run.err
        Expectation(running.says).check(run.stacks())
        leaves = {stack[-1].name for stack, _ in run.stacks()}
        assert "last_words" in leaves


def test_the_first_page_of_help_fits_a_terminal():
    """What people do, and all commands."""
    run = pybpf("--help")
    assert run.code == 0 and run.err == "" and run.out.count("\n") <= 30
    assert all(len(line) <= 80 for line in run.out.splitlines()), run.out
    for word in ("top", "dump", "record", "--mode=wall", "--container", "report", "diff", "doctor"):
        assert re.search(r"^  (sudo pybpf )?.*%s\b" % word, run.out, re.M), word


def test_help_begins_with_examples():
    run = pybpf("record", "--help")
    assert run.code == 0 and run.err == ""
    assert "xamples" in run.out and run.out.index("-p 1234") < run.out.index("--pid")
    for option in ("--lines", "--threads", "--json-stats", "--full-filenames"):
        assert option in run.out


def test_version():
    run = pybpf("--version")
    assert run.code == 0 and run.out.strip().startswith("pybpf ")
    assert any(character.isdigit() for character in run.out)
