# SPDX-License-Identifier: Apache-2.0
"""
Each allocation of a run fails, one run for each: the run says so in a sentence and leaves no file, or does without and
its output is right. The libraries' allocations are among them.
"""

import itertools
import json
import os
import random
import resource
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Dict

import pytest

import formats
import harness
from harness import PYBPF, TOP

LIMIT_S = 30  # of one run, which takes milliseconds
# For the runs that sample, of which there are some thousand: those that are not reached in this time are another day's.
SECONDS = float(os.environ.get("PYBPF_MEMORY_SECONDS", "30"))
SEEDS = TOP / "tests" / "fuzz" / "seeds" / "fuzz_saved"
FORMATS = (
    "folded text html pybpf pprof callgrind pstats json jsonl svg speedscope gecko chrometrace perf-script".split()
)


@dataclass(frozen=True)
class Result:
    code: int
    out: bytes
    err: str
    files: Dict[str, bytes]
    allocations: int


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """What makes allocations fail."""
    made = tmp_path_factory.mktemp("shim") / "fail_malloc.so"
    source = TOP / "tests" / "targets" / "fail_malloc.c"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", made, source]
    subprocess.run([str(word) for word in command], check=True, timeout=LIMIT_S)
    return made


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """One that has something of everything, one with long texts, for which memory grows in steps, and compiled code."""
    folder = tmp_path_factory.mktemp("made")
    subprocess.run([str(formats.MADE), str(folder)], check=True, timeout=LIMIT_S)
    made = {name: folder / (name + ".pybpf") for name in ("long", "compiled")}
    return {"rich": SEEDS / "rich.pybpf", "small": SEEDS / "small.pybpf", **made}


class Runs:
    def __init__(self, shim, folder, args):
        self.shim, self.folder, self.args = shim, folder, args
        self.number = itertools.count()

    def run(self, at=0, for_good=False, limit=None):
        """With the allocation of that number failing, from it on if for good, or in so many bytes."""
        own = self.folder / str(next(self.number))
        own.mkdir()
        count = self.folder / (own.name + ".count")
        count.write_bytes(bytes(8))
        # Not for the programs that start pybpf.
        words = ["/usr/bin/env", "LD_PRELOAD=%s" % self.shim, "FAIL_AT=%d" % at, "FAIL_COUNT=%s" % count]
        words += ["FAIL_FOR_GOOD=1"] if for_good else []
        done = subprocess.run(
            harness.tied([*words, PYBPF, *(str(word).replace("@", str(own)) for word in self.args)]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=LIMIT_S,
            preexec_fn=limit and (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))),
        )
        files = {path.name: path.read_bytes() for path in own.iterdir()}
        for path in own.iterdir():
            path.unlink()
        own.rmdir()
        (allocations,) = struct.unpack("Q", count.read_bytes())
        count.unlink()
        return Result(done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"), files, allocations)


def failed_well(result):
    """Nothing is left but one sentence. What went to a pipe cannot be taken back."""
    assert result.code == 1, result
    assert not result.files, sorted(result.files)
    harness.one_sentence(result.err)


def failed_sampling(result):
    """What was sampled is told also where it could not be written."""
    assert result.code == 1, result
    assert not set(result.files) - {"stats"}, sorted(result.files)
    lines = result.err.splitlines()
    assert lines and all(line.startswith("pybpf: ") for line in lines), result.err


def each(runs, tasks, check, seconds=None):
    """Does runs side by side. Returns how many."""
    end = time.monotonic() + seconds if seconds else None

    def one(task):
        if end and time.monotonic() > end:
            return 0
        try:
            check(runs.run(*task))
        except subprocess.TimeoutExpired:
            raise AssertionError("allocation %d%s: it hangs" % (task[0], task[1] * " and all after it")) from None
        except AssertionError as error:
            raise AssertionError("allocation %d%s: %s" % (task[0], task[1] * " and all after it", error)) from None
        return 1

    with ThreadPoolExecutor(2) as side:
        return sum(side.map(one, tasks))


def every(shim, folder, args):
    """Each allocation of a run that does the same each time."""
    runs = Runs(shim, folder, args)
    whole = runs.run()
    assert whole.code == 0 and whole.allocations > 20, whole

    def check(result):
        if result.code == 0:
            assert (result.out, result.files, result.err) == (whole.out, whole.files, whole.err)
        else:
            failed_well(result)

    tasks = [(number, for_good) for for_good in (False, True) for number in range(1, whole.allocations + 1)]
    assert each(runs, tasks, check) == len(tasks)


@pytest.mark.parametrize("name", ["rich", "long"])
@pytest.mark.parametrize("form", FORMATS)
def test_report(shim, saved, tmp_path, name, form):
    every(shim, tmp_path, ["report", "-f", form, "-o", "@/report", saved[name]])


@pytest.mark.parametrize("form", ["text", "pprof", "gecko"])
def test_report_of_compiled_code(shim, saved, tmp_path, form):
    every(shim, tmp_path, ["report", "-f", form, "-o", "@/report", saved["compiled"]])


def test_report_edited(shim, saved, tmp_path):
    """Names that are hidden, processes and threads in the stacks, two profiles in one, to a pipe."""
    args = ["report", "-f", "folded", "--anonymize", "--by", "container", "--threads", saved["long"], saved["long"]]
    runs = Runs(shim, tmp_path, args)
    whole = runs.run()
    assert whole.code == 0, whole

    def check(result):
        if result.code:
            failed_well(result)
        else:
            # The key of the hashes is another each time.
            assert len(result.out) == len(whole.out) and not result.err.count("memory"), result

    tasks = [(number, for_good) for for_good in (False, True) for number in range(1, whole.allocations + 1)]
    assert each(runs, tasks, check) == len(tasks)


@pytest.mark.parametrize("more", [[], ["-o", "@/diff.html"]], ids=["text", "html"])
def test_diff(shim, saved, tmp_path, more):
    every(shim, tmp_path, ["diff", *more, saved["small"], saved["rich"]])


@pytest.mark.parametrize("form", ["html", "pybpf"])
def test_run(profiler, spinning, shim, tmp_path, form):
    """Some allocations of a run that samples; the next time others."""
    output = tmp_path / "out"
    output.mkdir()
    words = ["-p", spinning.pid, "-d", 0.1, "-F", 199, "-o", "@/run." + form, "--threads", "--json-stats", "@/stats"]
    runs = Runs(shim, output, words)
    whole = runs.run()
    assert whole.code == 0 and whole.allocations > 100, whole
    back = Runs(shim, output, [])

    def check(result):
        if result.code:
            failed_sampling(result)
            return
        assert sorted(result.files) == ["run." + form, "stats"]
        content = result.files["run." + form]
        stats = json.loads(result.files["stats"])
        assert stats["samples"]["taken"] + sum(stats["lost"].values()) == stats["samples"]["asked"], stats
        if form == "html":
            assert content.rstrip().endswith(b"</html>")
            return
        path = output / ("%d.pybpf" % next(back.number))
        path.write_bytes(content)
        run = harness.pybpf("report", "-q", "-f", "folded", path)
        path.unlink()
        assert run.code == 0, run.err
        stacks = harness.parse(run.out)
        assert harness.total(stacks) == stats["samples"]["taken"], (stats, run.out)
        for stack, _ in harness.at_work(stacks):
            assert "python" in stack[0].name and "spin.py" in run.out, harness.show(stack)

    tasks = [(number, for_good) for for_good in (False, True) for number in range(1, whole.allocations + 1)]
    random.shuffle(tasks)
    done = each(runs, tasks, check, SECONDS)
    print("%d of %d" % (done, len(tasks)))
    assert done


@pytest.mark.parametrize("what", ["report", "run"])
def test_limit(profiler, spinning, shim, saved, tmp_path, what):
    """A dozen sizes of the address space between too little and enough (ulimit -v)."""
    args = {
        "report": ["report", "-f", "html", "-o", "@/out.html", saved["long"]],
        "run": ["-p", spinning.pid, "-d", 0.1, "-o", "@/out.html"],
    }[what]
    runs = Runs(shim, tmp_path, args)
    least = 1 << 20
    # From where the loader has room for the libraries, which says so itself below it (status 127).
    while Runs(shim, tmp_path, ["--version"]).run(0, False, least).code != 0:
        least += 1 << 18
    enough = least
    while runs.run(0, False, enough).code != 0:
        enough *= 2
    for step in range(12):
        result = runs.run(0, False, least + (enough - least) * step // 11)
        if result.code:
            failed_sampling(result)
        else:
            assert result.files["out.html"].rstrip().endswith(b"</html>")


def test_shim(shim, saved, tmp_path):
    """The first allocation fails, and what is counted is not only pybpf's own."""
    runs = Runs(shim, tmp_path, ["report", "-f", "folded", saved["rich"]])
    failed_well(runs.run(1))
    assert runs.run(10**9).code == 0
