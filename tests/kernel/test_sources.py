# SPDX-License-Identifier: Apache-2.0
"""Samples by other events than the timer, and by several at once: each is counted as its kind."""
import json
import os
import subprocess

import harness
import pytest
from inline import Source, go, newest, running

SOURCES = os.path.join(os.path.dirname(harness.PYBPF), "sources")
# include/uapi/linux/perf_event.h
CPU_CLOCK = "1:0"
PAGE_FAULTS = "1:2"
# enum pybpf_kind
CPU, EVENTS = 0, 1

PAGES = 4000
CALLS = 3000

# Faults in touch() only, and calls in ask() only; each go() has it do one of each.
TARGET = Source("""
import mmap
PAGES, CALLS = int(sys.argv[1]), int(sys.argv[2])
def touch(pages):
    for at in range(0, len(pages), mmap.PAGESIZE):
        pages[at] = 1
def ask():
    for n in range(CALLS):
        os.getppid()
def main():
    while True:
        go()
        pages = mmap.mmap(-1, PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(pages, "madvise"):
            pages.madvise(mmap.MADV_NOHUGEPAGE)
        touch(pages)
        ask()
        ready()
ready()
main()
""")


@pytest.fixture(scope="module")
def tracefs():
    harness.mount_tracefs()


def sample(*events, rounds=1, rate=999):
    """By kind what the kernel has counted, by leaf what is in the profile, and the account."""
    with running(newest(), TARGET, PAGES, CALLS) as target:
        argv = [SOURCES, str(target.pid), str(rate), *events]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "ready\n"
            for _ in range(rounds):
                go(target)
                harness.read_ready_line(target.process)
            out, _ = process.communicate("\n", timeout=harness.PATIENCE)
        finally:
            harness.stop(process)
    assert process.returncode == 0
    lines = out.split("\n")
    end = lines.index("{")
    records = [json.loads(line) for line in lines[:end]]
    kinds = {record["kind"]: (record["count"], record["value"]) for record in records if "kind" in record}
    leaves = {}
    for record in records:
        if "leaf" in record:
            leaves[record["leaf"]] = leaves.get(record["leaf"], 0) + record["value"]
    return kinds, leaves, json.loads("\n".join(lines[end:]))


@pytest.mark.parametrize("period", [1, 8])
def test_page_faults(period):
    """Each page is touched once: that many faults, whichever of them are sampled."""
    kinds, leaves, stats = sample("%s:%d:%d" % (PAGE_FAULTS, period, EVENTS), rounds=3)
    assert set(kinds) == {EVENTS}, kinds
    count, value = kinds[EVENTS]
    assert value == count * period
    assert stats["samples"]["python"] == count, stats
    assert stats["samples"]["lost"] == 0, stats
    # Each CPU has a period that was begun by others, and others end it.
    slack = 3 * period * os.cpu_count()
    assert abs(leaves["touch"] - 3 * PAGES) <= slack + 0.01 * PAGES, leaves
    assert leaves.get("ask", 0) < 0.02 * PAGES, leaves


def test_tracepoint(tracefs):
    """Each call is one sample, to the last."""
    kinds, leaves, stats = sample("syscalls:sys_enter_getppid:%d" % EVENTS, rounds=2)
    assert kinds == {EVENTS: (2 * CALLS, 2 * CALLS)}
    assert leaves == {"ask": 2 * CALLS}
    assert stats["samples"]["python"] == 2 * CALLS, stats


def test_two_kinds_at_once(tracefs):
    """The same stacks under two kinds are two counts."""
    kinds, _, stats = sample(
        "%s:0:%d" % (CPU_CLOCK, CPU), "syscalls:sys_enter_getppid:%d" % EVENTS, rounds=20, rate=4999
    )
    assert set(kinds) == {CPU, EVENTS}, kinds
    assert kinds[CPU][0] > 0 and kinds[CPU][1] == 0, kinds
    # perf leaves out a call whose program would interrupt that of the timer, or the other way round: none does here.
    assert kinds[EVENTS] == (20 * CALLS, 20 * CALLS), kinds
    assert stats["samples"]["python"] == kinds[CPU][0] + kinds[EVENTS][0], stats
