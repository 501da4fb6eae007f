# SPDX-License-Identifier: Apache-2.0
"""pybpf agent --mode=wall and gil: an epoch has as much of each thread as it is long, also of those that sleep throughout."""

import contextlib
import gzip
import platform
import re

import pytest

import harness
from harness import pybpf
from receiver import receiving
from test_agent import account, agent, as_json, end, epochs, values
from protobuf import numbers, of
from test_agent_push import HOME, base, otlp_total

STATES = "thread_ns"


@contextlib.contextmanager
def measured(folder, mode, *args, **options):
    with harness.target(harness.default_python(), "parts.py") as target:
        command = ["-p", target.pid, "--mode", mode, "--epoch", "1s", "--max-cpu", "100", "--threads", *args]
        with agent(folder, *command, **options) as process:
            yield process


def by_thread(profile):
    """Name and TID of each thread with its time in microseconds, and how much of that rounding may be."""
    threads = {}
    for sample in profile["samples"]:
        thread = profile["threads"][sample["thread"]]
        us, rows = threads.get((thread["name"], thread["tid"]), (0, 1))
        threads[thread["name"], thread["tid"]] = us + sample["value"], rows + 1
    return threads


def leaf_of(profile, sample):
    return profile["frames"][profile["stacks"][sample["stack"]]["frame"]]["name"]


def leaves(profile, name):
    """What the thread waits for, and how many waits begin."""
    found = [sample for sample in profile["samples"] if profile["threads"][sample["thread"]]["name"] == name]
    return (
        {leaf_of(profile, sample) for sample in found},
        sum(sample["count"] for sample in found),
    )


def length_us(profile):
    return float(profile["facts"]["duration_s"]) * 1e6


def test_each_epoch_has_all_threads(tmp_path):
    folder = tmp_path / "epochs"
    with measured(folder, "wall") as process:
        harness.wait_for(lambda: len(epochs(folder)) >= 3)
        end(process)
    each = [as_json(folder / name) for name in epochs(folder)]
    assert len(each) >= 4
    for profile in each[1:]:
        threads = by_thread(profile)
        assert len(threads) == 5, threads
        exact = max(us for us, rows in threads.values() if rows == 2)
        assert abs(exact - length_us(profile)) <= 501, (exact, profile["facts"])
        assert all(abs(us - exact) <= rows for us, rows in threads.values()), threads
        assert abs(account(profile, STATES) / 1000 - values(profile)) <= len(profile["samples"]) + 1
        assert leaves(profile, "sleeps") == ({"[sleep]"}, 0) and leaves(profile, "locked") == ({"[lock]"}, 0)
    # Each wait counts in the epoch in which it was first.
    assert leaves(each[0], "sleeps")[1] == leaves(each[0], "locked")[1] == 1
    everything = as_json(folder)
    assert values(everything) == sum(map(values, each))
    assert account(everything, STATES) == sum(account(profile, STATES) for profile in each)
    run = pybpf("diff", "-q", str(folder) + "@-1h..", str(folder) + "@..")
    assert run.code == 0 and "[sleep]" in run.out, run


def pprof_sums(body):
    """The sum of each value by its type and unit."""
    profile = gzip.decompress(body)
    strings = [text.decode() for text in of(profile, 6)]
    types = [tuple(strings[next(of(one, field))] for field in (1, 2)) for one in of(profile, 1)]
    sums = dict.fromkeys(types, 0)
    for packed in of(profile, 2, 2):
        for one, value in zip(types, numbers(packed)):
            sums[one] += value
    return sums


@pytest.mark.parametrize("mode", ["wall", "gil"])
def test_receivers_get_all_of_it(tmp_path, mode):
    """OTLP in nanoseconds, the others in microseconds, with the number of waits."""
    folder = tmp_path / "epochs"
    with receiving() as it:
        urls = ["--otlp", base(it), "--pyroscope", base(it) + "/", "--pprof", base(it) + "/profiles"]
        with measured(folder, mode, *urls, env=HOME) as process:
            harness.wait_for(lambda: len(epochs(folder)) >= 2)
            assert not end(process)
    profile = as_json(folder)
    waits = sum(sample["count"] for sample in profile["samples"] if leaf_of(profile, sample).startswith("["))
    assert profile["measure"]["name"] == mode and values(profile) > 0 and waits > 0
    sums = {"/ingest": [], "/profiles": [], "/v1development/profiles": []}
    for request in it.requests:
        sums[request.path.split("?")[0]].append(request.body)
    assert sum(map(otlp_total, sums["/v1development/profiles"])) == 1000 * values(profile)
    for path in "/ingest", "/profiles":
        each = [pprof_sums(body) for body in sums[path]]
        assert sum(one[mode, "microseconds"] for one in each) == values(profile)
        assert sum(one["waits", "count"] for one in each) == waits


def test_the_gil_in_each_epoch(tmp_path):
    """The profile has waits for it, and the account the time of all threads; and all that takes less than 64 MiB."""
    folder = tmp_path / "epochs"
    with measured(folder, "gil", "-v") as process:
        harness.wait_for(lambda: len(epochs(folder)) >= 3)
        said = end(process)
    taken = [float(mib) for mib in re.findall(r"pybpf took \S+ % of a CPU and (\S+) MiB\n", said)]
    # Before Linux 6.4 the kernel tells of a map that grows how large it may become.
    assert taken and (max(taken) < 64 or tuple(map(int, platform.release().split(".")[:2])) < (6, 4)), taken
    each = [as_json(folder / name) for name in epochs(folder)]
    assert any(leaf_of(profile, sample) == "[GIL: held in contends]" for profile in each for sample in profile["samples"])
    for profile in each[1:]:
        assert abs(account(profile, STATES) / 1000 - 5 * length_us(profile)) <= 5 * 501, profile["facts"]
        gil = sum(entry["value"] for entry in profile["account"] if (entry["group"], entry["key"]) == (STATES, "GIL"))
        shown = sum(sample["value"] for sample in profile["samples"] if leaf_of(profile, sample).startswith("[GIL"))
        assert abs(gil / 1000 - shown) <= len(profile["samples"]) + 1
