# SPDX-License-Identifier: Apache-2.0
"""What is full is reported, to the sample, and the run goes on."""

import json
import os
import platform
import resource

import pytest

import harness
from harness import pybpf, total

pytestmark = pytest.mark.usefixtures("profiler")

LEAST_MIB = 32


@pytest.fixture
def paths():
    """A program that hardly has a stack twice."""
    with harness.target(harness.default_python(), "paths.py", "250") as running:
        yield running


@pytest.fixture
def counted(tmp_path):
    """Runs pybpf and reads its account."""

    def run(*args):
        path = tmp_path / "stats.json"
        done = pybpf(*args, "--json-stats", path)
        assert done.code == 0, done.err
        done.stats = json.loads(path.read_text())
        return done

    return run


def check_sum(run):
    samples = run.stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], run.stats
    assert samples["lost"] == sum(run.stats["lost"].values()), run.stats
    assert samples["python"] == total(run.stacks()), run.stats


def test_memory_is_used_up(paths, counted):
    """Stacks that are known go on being counted; what pybpf takes stays near the limit."""
    run = counted("-p", paths.pid, "-d", 4, "-F", 4999, "--max-memory", LEAST_MIB, "--max-stacks", 60000)
    check_sum(run)
    assert run.stats["lost"]["memory_limit"] > 0, run.stats
    assert "memory limit of %d MiB" % LEAST_MIB in run.err
    # What was on its way in the buffer (4 MiB) when the limit was met is kept as well.
    assert run.stats["peak_rss_kib"] < (LEAST_MIB + 16) << 10, run.stats


def test_waits_at_the_memory_limit(paths, counted):
    """Their time is in the profile, and how much of it has no stack is counted."""
    cpu = min(os.sched_getaffinity(0))
    with harness.target(harness.default_python(), "paths.py", "250") as other:
        for pid in (paths.pid, other.pid):
            os.sched_setaffinity(pid, {cpu})
        run = counted("-p", paths.pid, "-p", other.pid, "-d", 4, "-F", 4999, "--max-memory", LEAST_MIB, "--mode=wall")
    without = [value for stack, value in run.stacks() if any(frame.text == "[no memory for the stack]" for frame in stack)]
    assert abs(run.stats["waits"]["stack_refused_s"] * 1e6 - sum(without)) <= len(without), run
    assert run.stats["waits"]["stack_refused_s"] > 0 and "which was new when the memory was used up" in run.err, run


def test_memory_is_enough(paths, counted):
    run = counted("-p", paths.pid, "-d", 1, "-F", 499)
    assert run.stats["lost"]["memory_limit"] == 0, run
    check_sum(run)


def test_process_table_is_full(paths, counted):
    """Every process of the machine takes an entry; those that find none are counted, not sampled."""
    run = counted("--all", "-d", 1, "-F", 499, "--max-processes", 1)
    check_sum(run)
    assert run.stats["lost"]["process_table_full"] > 0, run.stats
    assert "--max-processes" in run.err


def test_memory_is_that_of_the_processes_there_are(paths, counted):
    """16 MiB are for the table of a million, some 400 for that many. Before Linux 6.4 the kernel tells of the latter."""
    run = counted("-p", paths.pid, "-d", 1, "-F", 499, "--max-processes", 1000000, "--max-memory", 128)
    check_sum(run)
    refused = run.stats["lost"]["memory_limit"] > 0
    assert refused == (tuple(map(int, platform.release().split(".")[:2])) < (6, 4)), run.stats


@pytest.mark.parametrize(
    "option, value",
    [("--max-memory", "31"), ("--max-memory", "x"), ("--max-memory", "1.5"), ("--max-processes", "0")],
)
def test_limit_that_cannot_be(paths, option, value):
    run = pybpf("-p", paths.pid, "-d", 1, option, value)
    assert run.code == 2
    sentence = harness.one_sentence(run.err)
    assert option in sentence and value in sentence


def test_descriptors(tmp_path):
    """A run takes three for each CPU, which is more than a shell allows on large machines; a command keeps its own limit."""
    few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))}
    said = tmp_path / "said"
    code = "import resource; open(%r, 'w').write(str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])); sum(range(20000000))" % str(said)
    done = pybpf("-q", "-o", tmp_path / "p.folded", "--", harness.default_python().argv[0], "-c", code, **few)
    assert done.code == 0, done.err
    assert said.read_text() == "40" and total(harness.parse((tmp_path / "p.folded").read_text()))


def test_too_few_descriptors_for_the_opener(tmp_path):
    """It is the last that a run opens: with those for all else the run goes on, and says what it is without."""

    def run(pid, limit):
        few = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))}
        return pybpf("-p", pid, "-d", 0.1, "-o", tmp_path / "p.folded", **few)

    with harness.target(harness.default_python(), "spin.py") as target:
        least, enough = 20, 4096
        while enough - least > 1:
            middle = (least + enough) // 2
            least, enough = (least, middle) if run(target.pid, middle).code == 0 else (middle, enough)
        done = run(target.pid, enough)
        refused = run(target.pid, 24)
    assert done.code == 0 and "CPUs that come online during the run are not sampled" in done.err, done.err
    assert refused.code != 0 and "the limit is 24: raise it by `ulimit -Hn`" in harness.one_sentence(refused.err), refused.err
