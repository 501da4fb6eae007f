# SPDX-License-Identifier: Apache-2.0
"""Formats that are text: Callgrind's, read by callgrind_annotate; JSON, by Python's; the table by line."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter

import pytest

import formats
import harness
from harness import one_sentence, pybpf, total

pytestmark = pytest.mark.usefixtures("profiler")


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    return formats.recorded(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def recorded(recording):
    return recording[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return formats.made(tmp_path_factory.mktemp("made"))


def either(name, recorded, made):
    return recorded if name == "recorded" else made / (name + ".pybpf")


def annotate(path, *options, show="samples"):
    program = shutil.which("callgrind_annotate")
    if not program:
        pytest.skip("callgrind_annotate is not installed (Debian's valgrind); tools/install-deps --test installs it")
    # Paths below the working folder would be shortened.
    argv = [program, "--show-percs=no", "--show=" + show, "--threshold=100", *options, str(path)]
    done = subprocess.run(argv, capture_output=True, timeout=harness.PATIENCE, cwd="/")
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return done.stdout.decode()


def rows(text, show="samples"):
    """"FILE:FUNCTION" -> cost; and what they say is the cost of all."""
    found = {}
    head, table = re.split(r"\n *" + show + r" +file:function\n-+\n", text, maxsplit=1)
    for row in table.split("\n\n")[0].splitlines():
        cost, name = re.fullmatch(r" *([\d,.]+) +(.*)", row).groups()
        found[name] = number(cost)
    return found, number(re.search(r"\n *([\d,.]+) +PROGRAM TOTALS", head).group(1))


def number(text):
    return 0 if text == "." else int(text.replace(",", ""))


@pytest.mark.parametrize("name", ["recorded", "recursive"])
def test_callgrind_has_the_totals(name, recorded, made):
    """Own costs and inclusive ones of every function, recursion or not."""
    saved = either(name, recorded, made)
    path = formats.report(saved, ".callgrind")
    sums = formats.totals(formats.folded(saved))
    for column, inclusive in ((0, "no"), (1, "yes")):
        found, everything = rows(annotate(path, "--auto=no", "--inclusive=" + inclusive))
        assert everything == sums.all
        # Notes and processes have no file.
        functions = sums.functions().items()
        want = {"%s:%s" % (file or "???", function): both[column] for (function, file), both in functions}
        processes = {row: cost for row, cost in found.items() if row.startswith("???:") and row not in want}
        assert {row: cost for row, cost in found.items() if row not in processes} == want
        assert sum(processes.values()) == (sums.all if inclusive == "yes" else 0)


@pytest.mark.parametrize("name", ["recorded", "recursive"])
def test_callgrind_costs_are_microseconds(name, recorded, made):
    """With CPU time, own costs and inclusive ones are the samples' times their period, and are what readers show first."""
    saved = either(name, recorded, made)
    path = formats.report(saved, ".callgrind")
    period_us = json.loads(formats.report(saved, ".json").read_text(encoding="utf-8"))["measure"]["period_ns"] / 1000
    sums = formats.totals(formats.folded(saved))
    assert re.search(r"^events: cpu_us samples$", path.read_text(encoding="utf-8"), re.M)
    for column, inclusive in ((0, "no"), (1, "yes")):
        found, everything = rows(annotate(path, "--auto=no", "--inclusive=" + inclusive, show="cpu_us"), "cpu_us")
        assert everything == pytest.approx(sums.all * period_us, abs=1)
        for (function, file), both in sums.functions().items():
            # Each line and each call is rounded.
            assert found["%s:%s" % (file or "???", function)] == pytest.approx(both[column] * period_us, rel=1e-5, abs=20)


def test_callgrind_annotates_source(recorded):
    """Each line of a function beside its cost."""
    sums = formats.totals(formats.folded(recorded))
    text = annotate(formats.report(recorded, ".callgrind"), "--auto=yes", "--context=0")
    source = formats.TARGET.read_text(encoding="utf-8").splitlines()
    ours = Counter()
    for (_, file, line), own in sums.line_self.items():
        if file == str(formats.TARGET) and own:
            ours[line] += own
    assert len(ours) >= 5
    for line, own in ours.items():
        assert re.search(r"^ *%s +%s *$" % (format(own, ","), re.escape(source[line - 1])), text, re.M), (line, own)


def test_callgrind_with_names_made_to_harm(made):
    found, everything = rows(annotate(formats.report(made / "hostile.pybpf", ".callgrind"), "--auto=no"))
    assert everything == total(formats.folded(made / "hostile.pybpf")) == sum(found.values())


def test_callgrind_empty(made):
    assert "No sample has Python frames." in annotate(formats.report(made / "empty.pybpf", ".callgrind"))


def read_json(saved):
    """The document, and its samples as ([(name, file, line), root first], value)."""
    document = json.loads(formats.report(saved, ".json").read_text(encoding="utf-8"))
    frames, stacks, samples = document["frames"], document["stacks"], []
    for sample in document["samples"]:
        path, stack = [], sample["stack"]
        while stack is not None:
            frame = frames[stacks[stack]["frame"]]
            path.insert(0, (frame["name"], frame["file"], frame["line"]))
            stack = stacks[stack]["parent"]
        samples.append((path, sample["value"]))
    return document, samples


def read_lines(saved):
    """The first line of jsonl, and its samples."""
    lines = [json.loads(line) for line in formats.report(saved, ".jsonl").read_text(encoding="utf-8").splitlines()]
    return lines[0], lines[1:]


def counted(samples):
    """Equal stacks of different threads are one in folded text."""
    counts = Counter()
    for path, value in samples:
        counts[tuple(path)] += value
    return counts


def told(stacks):
    return counted(([(frame.name, frame.file or None, frame.line) for frame in stack], count) for stack, count in stacks)


@pytest.mark.parametrize("name", ["recorded", "recursive"])
def test_json_has_every_stack(name, recorded, made):
    saved = either(name, recorded, made)
    document, samples = read_json(saved)
    want = told(formats.folded(saved))
    assert document["format"] == "pybpf" and document["version"] == 1
    assert counted(samples) == want
    head, lines = read_lines(saved)
    assert {key: head.pop(key) for key in ("type", "begin_utc", "end_utc")}["type"] == "profile"
    assert head == {key: document[key] for key in head}
    assert counted(([(f["name"], f["file"], f["line"]) for f in s["stack"]], s["value"]) for s in lines) == want
    owners = [document["processes"][sample["process"]] for sample in document["samples"]]
    assert [sample["process"] for sample in lines] == owners


def test_json_tells_threads_and_the_run(recording):
    saved, stats = recording
    document, _ = read_json(saved)
    account = json.loads(stats.read_text(encoding="utf-8"))
    assert {thread["name"] for thread in document["threads"]} >= {"boss", "worker"}
    (python,) = [entry["value"] for entry in document["account"] if entry["key"] == "python"]
    without = sum(entry["value"] for entry in document["account"] if entry["group"] == "without")
    assert python == account["samples"]["python"] and without == sum(account["without_python"].values()) > 0
    others = account["without_python"].get("other_program", 0)  # not in the profile
    assert python + without - others == sum(sample["value"] for sample in document["samples"])
    period = document["measure"]["period_ns"]
    assert abs(period - 1e9 / account["freq_hz"]) < 1
    assert all(frame["first_line"] <= frame["line"] for frame in document["frames"] if frame["line"])


def test_json_has_times(tmp_path):
    """With --timestamps every sample has its time, in both forms."""
    saved, command = tmp_path / "times.pybpf", harness.default_python().command(formats.TARGET.name, "1")
    run = pybpf("-F", 499, "--timestamps", "-o", saved, "--", *command)
    assert run.code == 0, run.err
    document, samples = read_json(saved)
    _, lines = read_lines(saved)
    times = [time for time, _, _ in document["events"]]
    assert times == sorted(times) and times[-1] < 30e9
    by_sample = Counter()
    for _, sample, value in document["events"]:
        by_sample[sample] += value
    assert all(by_sample[index] <= value for index, (_, value) in enumerate(samples))
    assert sum(by_sample.values()) >= 0.9 * sum(value for _, value in samples)
    for index, line in enumerate(lines):
        assert sum(value for _, value in line.get("events", ())) == by_sample[index]


def test_json_with_names_made_to_harm(made):
    document, samples = read_json(made / "hostile.pybpf")
    counts = [count for _, count in formats.folded(made / "hostile.pybpf")]
    assert sorted(value for _, value in samples) == sorted(counts)
    assert "<script>" not in formats.report(made / "hostile.pybpf", ".json").read_text(encoding="utf-8")
    assert "</script><script>alert(1)</script>&amp;" in [frame["name"] for frame in document["frames"]]
    assert len(read_lines(made / "hostile.pybpf")[1]) == len(samples)


def test_json_empty(made):
    document, samples = read_json(made / "empty.pybpf")
    assert samples == [] and document["stacks"] == [] and "events" not in document
    assert read_lines(made / "empty.pybpf")[1] == []


def table(text):
    """What stands in the last column, without callers -> (self, total)."""
    found = {}
    for row in text.splitlines():
        match = re.fullmatch(r" *(\d+) +[\d.]+% +(\d+) +[\d.]+%  (.*?)(, from .*)?", row)
        if match:
            found[match.group(3)] = int(match.group(1)), int(match.group(2))
    return found


@pytest.mark.parametrize("name", ["recorded", "recursive"])
def test_text(name, recorded, made):
    saved = either(name, recorded, made)
    sums = formats.totals(formats.folded(saved))
    functions = table(formats.report(saved, ".txt").read_text(encoding="utf-8"))
    want = {"%s (%s)" % key if key[1] else key[0]: value for key, value in sums.functions().items()}
    assert functions.items() <= want.items() and len(functions) == min(40, len(want))
    lines = table(formats.report(saved, ".txt", "--by=line").read_text(encoding="utf-8"))
    want = {}
    for (function, file, line), value in sums.lines().items():
        # The process may have ended before the line was read.
        place = file if line is None else "%s:%d" % (file, line)
        want["%s  %s" % (place, function) if file else function] = value
    assert lines.items() <= want.items() and len(lines) == min(40, len(want))
    # The hottest come first, so what is left out has less.
    assert min(own for own, _ in lines.values()) >= max([0] + [own for row, (own, _) in want.items() if row not in lines])


def test_text_of_threads(recorded):
    """Each thread with its samples, the most first, and the function that has the most of them."""
    document, _ = read_json(recorded)
    counts = Counter()
    for sample in document["samples"]:
        if sample["stack"] is not None and sample["thread"] is not None:
            counts[document["threads"][sample["thread"]]["tid"]] += sample["value"]
    text = formats.report(recorded, ".txt", "-t").read_text(encoding="utf-8")
    rows = re.findall(r"(?m)^ *(\d+) +[\d.]+%  (\S.*) \((\d+)\)  +(\S.*)$", text.split("hottest function\n")[1].split("\n\n")[0])
    assert [int(value) for value, *_ in rows] == sorted(counts.values(), reverse=True)
    assert {int(tid): int(value) for value, _, tid, _ in rows} == counts
    assert {"boss", "worker", "pool 1"} == {name for _, name, *_ in rows} and any("formats.py)" in function for *_, function in rows)


def test_by_line_while_sampling():
    command = harness.default_python().command(formats.TARGET.name, "1")
    run = pybpf("--by=line", "-f", "text", "-F", 499, "--", *command)
    assert run.code == 0, run.err
    assert "of CPU time each" in run.out and any(row.startswith("formats.py:") for row in table(run.out))


def test_text_in_other_orders(recorded):
    rows = list(table(formats.report(recorded, ".txt", "--sort=total").read_text(encoding="utf-8")).values())
    assert [total for _, total in rows] == sorted((total for _, total in rows), reverse=True)
    text = formats.report(recorded, ".txt", "--sort=own").read_text(encoding="utf-8")
    owns = [int(own) for own in re.findall(r"(?m)^ *(\d+) +[\d.]+% +\d+ +[\d.]+% +\d+ +[\d.]+%  ", text)]
    assert owns and owns == sorted(owns, reverse=True) and " own% " in text
    assert pybpf("report", "--sort=total", "-f", "folded", recorded).code == 2
    assert pybpf("report", "--sort=total", "--by=state", recorded).code == 2


@pytest.mark.parametrize("options", [("-f", "folded"), ("-o", "x.html"), ()])
def test_by_line_is_for_text(options):
    run = pybpf("--by=line", "-p", os.getpid(), *options)
    assert run.code == 2 and "--by=line" in one_sentence(run.err) and "text" in run.err


@pytest.mark.parametrize("name", ["recorded", "recursive", "hostile"])
def test_folded_in_flamegraph(name, recorded, made):
    """Brendan Gregg's flamegraph.pl counts the same samples."""
    saved = either(name, recorded, made)
    titles = [title for title, _ in formats.flamegraph(formats.report(saved, ".folded"))]
    samples = {title: int(re.search(r" \(([\d,]+) samples?, ", title).group(1).replace(",", "")) for title in titles}
    whole = [count for title, count in samples.items() if title.startswith("all (")]
    assert whole == [max(samples.values())] == [total(formats.folded(saved))]


def test_marks_in_folded(made):
    """A mark is all that --frame-marks adds, and flamegraph.pl counts the same samples by it."""
    plain = formats.report(made / "compiled.pybpf", ".folded").read_text(encoding="utf-8")
    path = formats.report(made / "compiled.pybpf", ".folded", "--frame-marks")
    marked = path.read_text(encoding="utf-8")
    assert "_[n]" not in plain and marked.replace("_[n]", "") == plain
    leaves = Counter()
    for stack, count in re.findall(r"(?m)^(.*) (\d+)$", marked):
        leaves[re.search(r"(_\[.\])?$", stack).group()] += int(count)
        for frame in stack.split(";"):
            compiled = ".so" in frame or "(python3.12)" in frame or "(uwsgi)" in frame or "[vdso]" in frame
            assert frame.endswith("_[n]") == compiled, frame
    assert leaves == {"_[n]": 60, "_[k]": 5, "": 35}
    titles = [title for title, _ in formats.flamegraph(path)]
    assert [title for title in titles if title.startswith("dgemm_ (libopenblas.so.0)_[n] (35 samples")], titles
