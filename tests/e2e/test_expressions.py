# SPDX-License-Identifier: Apache-2.0
"""--by=expression: which part of its line each function of a stack executes."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter

import pytest

import harness
import pythons
from harness import one_sentence, pybpf, record_busy

pytestmark = pytest.mark.usefixtures("profiler")
WITH_COLUMNS = [item for item in pythons.interpreters() if item.version >= (3, 11)]
WITHOUT_COLUMNS = [item for item in pythons.of_each_version(pythons.interpreters()) if item.version < (3, 11)]
COUNTED = [b"BYTES.count(b\"%c\")" % letter for letter in b"yabc"]


def stacks_of(path):
    """(frames below top(), count) of a profile in JSON."""
    document = json.loads(path.read_text(encoding="utf-8"))
    frames = {}
    for i, stack in enumerate(document["stacks"]):
        frames[i] = frames.get(stack["parent"], ()) + (document["frames"][stack["frame"]],)
    for sample in document["samples"]:
        names = [frame["name"] for frame in frames[sample["stack"]]]
        if "top" in names:
            yield frames[sample["stack"]][names.index("top") + 1 :], sample["value"]


def spot(frame):
    return (frame["name"], frame["line"]) + tuple(frame.get(key) for key in ("end_line", "column", "end_column"))


@pytest.mark.parametrize("seed", ["1", "2", "3"])
@pytest.mark.parametrize("python", WITH_COLUMNS, ids=lambda item: item.name)
def test_expressions_are_those_of_tracebacks(python, seed, tmp_path):
    """A caller has the call in progress, the function that runs has what it executes."""
    out = tmp_path / "out.json"
    with harness.target(python, "nested_calls.py", seed) as running:
        record_busy(running.pid, "--by=expression", "-o", out)
    callers = {tuple(tuple(spot) for spot in stack) for stack in running.says["more"]["stacks"]}
    source = (pythons.TARGETS / "nested_calls.py").read_bytes().splitlines()
    met, executed = 0, 0
    for frames, count in stacks_of(out):
        if not frames or frames[-1]["name"] != "burn":
            continue
        spots = tuple(spot(frame) for frame in frames)
        assert spots[:-1] in callers, spots
        met += count
        leaf = frames[-1]
        executed += source[leaf["line"] - 1][leaf.get("column", 0) : leaf.get("end_column", 0)] in COUNTED and count
    assert met > 50 and executed > 0.9 * met, (met, executed)


@pytest.fixture(scope="module")
def saved(profiler, tmp_path_factory):
    path = tmp_path_factory.mktemp("expressions") / "saved.pybpf"
    with harness.target(harness.default_python(), "nested_calls.py", "1") as running:
        record_busy(running.pid, "--by=expression", "-o", path)
    return path


def report(saved, *args):
    run = pybpf("report", "-q", saved, *args)
    assert run.code == 0 and run.err == "", run.err
    return run.out


def rows(text):
    """Without the texts of expressions."""
    return {row[2]: int(row[1]) for row in re.finditer(r"(?m)^ *(\d+) +[\d.]+% +\d+ +[\d.]+%  (.*?)(?:: .*)?$", text)}


def test_saved_by_function_line_and_expression(saved):
    """A profile that was recorded with columns can be shown in all ways, and its sums are the same."""
    found = [rows(report(saved, "-f", "text", "--limit", "9999", *by)) for by in ([], ["--by=line"], ["--by=expression"])]
    functions, lines, expressions = found
    assert len({sum(rows.values()) for rows in found}) == 1 and len(functions) < len(lines) < len(expressions)
    assert all(":" not in row for row in functions)
    by_line = Counter()
    for row, count in expressions.items():
        by_line[re.sub(r"^(\S+\.py:\d+)(?::\d+-(\d+:)?\d+)?  ", r"\1  ", row)] += count
    assert by_line == lines
    bare = report(saved, "-f", "folded").splitlines()
    assert not re.search(r":\d+:\d+-", "".join(bare)) and len(set(line.rpartition(" ")[0] for line in bare)) == len(bare)
    assert re.search(r"burn \(nested_calls.py:37:\d+-\d+\) ", report(saved, "-f", "folded", "--by=expression"))


@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed; tools/install-deps --test installs it")
def test_columns_in_pprof(saved):
    """pprof has the beginning of an expression."""
    want = Counter()
    for row, count in rows(report(saved, "-f", "text", "--limit", "9999", "--by=expression")).items():
        found = re.fullmatch(r"(\S+\.py:\d+)(:\d+)?(?:-[\d:]+)?  (.*)", row)
        if count and found:
            want["%s %s%s" % (found[3], found[1], found[2] or "")] += count
    path = saved.with_suffix(".pb.gz")
    report(saved, "-o", path)
    argv = ["go", "tool", "pprof", "-sample_index=samples", "-top", "-lines", "-showcolumns", "-nodefraction=0", "-nodecount=9999"]
    done = subprocess.run([*argv, path], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    read = {row[2]: int(row[1]) for row in re.finditer(r"(?m)^ +(\d+) +[\d.]+% +[\d.]+% +\d+ +[\d.]+%  (.*\.py:.*)$", done.stdout)}
    assert {row: count for row, count in read.items() if count} == want


def test_texts_of_expressions(saved):
    """Rows have the text where the source is known; while sampling and afterwards."""
    assert re.search(r"(?m)  nested_calls.py:37:\d+-\d+  burn: BYTES.count\(b\"[yabc]\"\)$", report(saved, "-f", "text", "--by=expression"))
    with harness.target(harness.default_python(), "nested_calls.py", "1") as running:
        shown = record_busy(running.pid, "--by=expression", "-f", "text")
        bare = record_busy(running.pid, "--by=expression", "-f", "text", "--no-source")
    assert "  burn: BYTES.count(b\"" in shown.out
    assert re.search(r"(?m)  nested_calls.py:37:\d+-\d+  burn$", bare.out) and "BYTES" not in bare.out


def test_saved_without_columns(tmp_path):
    path = tmp_path / "saved.pybpf"
    with harness.target(harness.default_python(), "nested_calls.py", "1") as running:
        record_busy(running.pid, "-o", path)
    run = pybpf("report", "-q", path, "-f", "text", "--by=expression")
    assert run.code == 0 and "nested_calls.py:37  burn" in run.out and "`pybpf record --by=expression`" in one_sentence(run.err)


OLD = [(item, {}) for item in WITHOUT_COLUMNS] + [(WITH_COLUMNS[0], {"PYTHONNODEBUGRANGES": "1"})]


@pytest.mark.parametrize("python, environment", OLD, ids=[item.name for item, _ in OLD])
def test_python_without_columns(python, environment, monkeypatch):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with harness.target(python, "spin.py") as running:
        run = record_busy(running.pid, "--by=expression", "-f", "text")
    assert run.err.count("code objects without columns") == 1
    assert re.search(r"(?m)  spin.py:\d+  ", run.out) and not re.search(r"spin.py:\d+:", run.out)


@pytest.mark.parametrize("options", [("-f", "callgrind"), ("-o", "x.pstats"), ("--lines=first",)])
def test_formats_without_a_place_for_columns(options):
    run = pybpf("--by=expression", "-p", os.getpid(), *options)
    assert run.code == 2 and "--by=expression" in one_sentence(run.err)
