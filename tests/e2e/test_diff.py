# SPDX-License-Identifier: Apache-2.0
"""Two saved profiles of real runs compared: what grew is named, what did not is not."""

import gzip
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest

import formats
import harness
import html_page
from browser import browse
from harness import one_sentence, pybpf

NUMBER = r" +([-+]?[\d.]+)"
ROW = re.compile(r"^(\w+)" + 5 * NUMBER + r"(?: +[\d.]+ +[\d.]+)?  (\S.*)$", re.M)
TITLE = re.compile(r"^(.*) \(([\d,]+) samples?, [\d.]+%; ([-+]?[\d.]+)%\)$")

chromium = html_page.chromium  # a fixture


@dataclass
class Row:
    verdict: str
    before: float
    after: float
    change: float
    low: float
    high: float


def tables(text):
    """The rows of the two tables of text, by function: own samples, and total."""
    own, total = text.split("\nTotal (on the stack)")
    return [
        {row[-1]: Row(row[0], *map(float, row[1:-1])) for row in ROW.findall(table)} for table in (own, total)
    ]


def diff(*args, **options):
    run = pybpf("diff", *args, **options)
    assert run.code == 0, run.err
    return run


@pytest.fixture(scope="module")
def runs(profiler, tmp_path_factory):
    """Saved profiles: two of the same work, and one in which grown() does three times as much."""
    folder = tmp_path_factory.mktemp("runs")
    for name, percent in (("one", 60), ("two", 60), ("more", 180)):
        argv = harness.default_python().command("grows.py", "700", str(percent))
        run = pybpf("-F", 997, "-q", "-o", folder / (name + ".pybpf"), "--", *argv)
        assert run.code == 0, run.err
    return folder


def test_same_work_in_both_runs(runs):
    own, _ = tables(diff(runs / "one.pybpf", runs / "two.pybpf", "--all-rows").out)
    crunch, grown = own["crunch (grows.py)"], own["grown (grows.py)"]
    assert crunch.before + grown.before > 80, "the program was not at work"
    # Machines are noisy: what is no chance but the machine's doing is small.
    assert all(abs(row.change) < 8 for row in own.values()), own
    assert crunch.low < crunch.change < crunch.high


def test_what_grew_is_named(runs):
    own, total = tables(diff(runs / "one.pybpf", runs / "more.pybpf", "--compare=time").out)
    grown = own["grown (grows.py)"]
    assert grown.verdict == "grew" and 2 < grown.after / grown.before < 4.5, own
    assert 0 < grown.low < grown.change < grown.high
    assert max(own, key=lambda name: abs(own[name].change)) == "grown (grows.py)"
    assert total["rounds (grows.py)"].verdict == "grew"
    # What does as much as before does not take much more, though the machine may be slower by then.
    for name in ("crunch (grows.py)", "even (grows.py)"):
        for table in (own, total):
            row = table.get(name)
            assert row is None or abs(row.change) < grown.change / 3, table


def test_shares_add_up(runs):
    own, _ = tables(diff(runs / "one.pybpf", runs / "more.pybpf", "--all-rows", "--limit=10000").out)
    assert own["grown (grows.py)"].verdict == "grew"
    assert own["crunch (grows.py)"].verdict == "shrank"
    for side in ("before", "after"):
        assert sum(getattr(row, side) for row in own.values()) == pytest.approx(100, abs=0.5)


def test_the_other_way_round(runs):
    own, _ = tables(diff(runs / "more.pybpf", runs / "one.pybpf").out)
    assert own["grown (grows.py)"].verdict == "shrank"
    assert own["crunch (grows.py)"].verdict == "grew"


def test_by_line(runs):
    own, _ = tables(diff(runs / "one.pybpf", runs / "more.pybpf", "--by=line", "--all-rows").out)
    lines = {name: row for name, row in own.items() if name.startswith("grown (grows.py:")}
    assert len(lines) >= 2
    whole, _ = tables(diff(runs / "one.pybpf", runs / "more.pybpf").out)
    assert sum(row.after for row in lines.values()) == pytest.approx(whole["grown (grows.py)"].after, abs=0.1)


def test_filters(runs):
    own, total = tables(diff(runs / "one.pybpf", runs / "more.pybpf", "--under=even", "--all-rows").out)
    assert set(total) == {"crunch (grows.py)", "even (grows.py)"} >= set(own)
    assert total["even (grows.py)"].before == total["even (grows.py)"].after == 100
    own, _ = tables(diff(runs / "one.pybpf", runs / "more.pybpf", "--ignore=grown", "--all-rows").out)
    assert "crunch (grows.py)" in own and "grown (grows.py)" not in own


def folded(text):
    """Stack, as text -> (before, after)."""
    return {stack: (int(before), int(after)) for stack, before, after in (row.rsplit(" ", 2) for row in text.splitlines())}


def test_folded(runs):
    pair = runs / "one.pybpf", runs / "more.pybpf"
    stacks = folded(diff(*pair, "-f", "folded").out)
    grown = [counts for stack, counts in stacks.items() if stack.endswith(";grown (grows.py)")]
    assert sum(before for before, _ in grown) < 0.8 * sum(after for _, after in grown)
    # The counts after are those of the profile itself.
    after = harness.total(pybpf("report", "-q", "-f", "folded", pair[1]).stacks())
    assert sum(counts[1] for counts in stacks.values()) == after
    everything = folded(diff(*pair, "-f", "folded", "--all-rows").out)
    assert sum(counts[0] for counts in everything.values()) == pytest.approx(after, rel=0.02)
    # Where nothing has changed, no difference is to be seen.
    changed = {stack for stack, (first, second) in stacks.items() if first != second}
    assert 0 < len(changed) < len([stack for stack, (first, second) in everything.items() if first != second])


def test_flamegraph_draws_what_changed(runs, tmp_path):
    path = tmp_path / "change.folded"
    diff(runs / "one.pybpf", runs / "more.pybpf", "-o", path)
    boxes = {}
    for title, colour in formats.flamegraph(path):
        found = TITLE.fullmatch(title)
        if found:
            boxes.setdefault(found.group(1), []).append((float(found.group(3)), colour))
    red, green, blue = map(int, re.findall(r"\d+", boxes["grown (grows.py)"][0][1]))
    assert boxes["grown (grows.py)"][0][0] > 5 and red > green == blue
    red, green, blue = map(int, re.findall(r"\d+", boxes["crunch (grows.py)"][0][1]))
    assert boxes["crunch (grows.py)"][0][0] < -5 and blue > green == red


def test_html_has_what_was_compared(runs, tmp_path):
    path = tmp_path / "change.html"
    pair = runs / "one.pybpf", runs / "more.pybpf"
    diff(*pair, "-o", path)
    data = formats.html_data(path)
    totals = [harness.total(pybpf("report", "-q", "-f", "folded", name).stacks()) for name in pair]
    assert [data["diff"]["before_total"], data["diff"]["after_total"]] == totals
    assert [sum(data["samples"][key]) for key in ("before", "value")] == totals
    assert [data["diff"]["before"], data["diff"]["after"]] == [name.name for name in pair]
    assert str(runs) not in json.dumps(data)
    functions = data["diff"]["functions"]
    grown = functions["name"].index("grown")
    assert functions["verdict"][grown] == 1
    assert 0 < functions["low"][grown] < functions["after"][grown] - functions["before"][grown] < functions["high"][grown]
    assert functions["verdict"][functions["name"].index("crunch")] == -1


COLOURS = """
  await page.goto(address);
  %s
  await page.waitForTimeout(300);
  const places = [];
  for (const name of argument) places.push([name, await page.evaluate(place, name)]);
  return page.evaluate((places) => {
    const { canvas } = document.querySelector(".host").flame, box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width, { width, height } = canvas;
    const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    // Below the label, in the middle of the box.
    const at = ({ x, y }) => 4 * (Math.round((y - box.y + 6) * scale) * width + Math.round((x - box.x) * scale));
    return Object.fromEntries(places.map(([name, where]) => [name, Array.from(pixels.slice(at(where), at(where) + 3))]));
  }, places);
"""


@pytest.mark.usefixtures("chromium")
def test_html_is_red_where_it_grew(runs, tmp_path):
    path = tmp_path / "change.html"
    diff(runs / "one.pybpf", runs / "more.pybpf", "-o", path)
    colours = browse(path, html_page.steps(COLOURS % html_page.READY), argument=["grown", "crunch", "rounds"])
    red, _, blue = colours["grown"]
    assert red > blue + 40, colours
    red, _, blue = colours["crunch"]
    assert blue > red + 40, colours
    # It is on every stack, before and after: no change.
    red, _, blue = colours["rounds"]
    assert abs(red - blue) < 25, colours


def test_anonymized_names_still_match(runs):
    own, _ = tables(diff(runs / "one.pybpf", runs / "more.pybpf", "--anonymize").out)
    assert [row.verdict for row in own.values()].count("grew") >= 1
    assert not any("grown" in name for name in own)


def test_as_any_user(runs, tmp_path):
    """Comparing takes no rights beyond reading the files."""
    shutil.copy(harness.PYBPF, tmp_path / "pybpf")
    for name in ("one", "two"):
        shutil.copy(runs / (name + ".pybpf"), tmp_path)
        (tmp_path / (name + ".pybpf")).chmod(0o644)
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if not parent.stat().st_mode & 1:
            parent.chmod(parent.stat().st_mode | 0o011)
    done = subprocess.run(
        ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tmp_path / "pybpf", "diff",
         tmp_path / "one.pybpf", tmp_path / "two.pybpf"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
    )
    assert done.returncode == 0 and "Self (on top of the stack)" in done.stdout, done.stderr


# Bad input.


def refused(tmp_path, *args):
    """Runs diff with an -o that must not come to be; returns its one sentence."""
    before = sorted(os.listdir(tmp_path))
    run = pybpf("diff", *args) if "-o" in args else pybpf("diff", "-o", tmp_path / "change.txt", *args)
    assert run.code in (1, 2), run
    assert run.out == ""
    assert sorted(os.listdir(tmp_path)) == before, "something was left behind"
    return one_sentence(run.err)


def test_missing_file(runs, tmp_path):
    assert "nowhere.pybpf" in refused(tmp_path, runs / "one.pybpf", tmp_path / "nowhere.pybpf")


def test_not_a_profile(runs, tmp_path):
    path = tmp_path / "note.pybpf"
    path.write_text("no profile\n")
    assert "note.pybpf" in refused(tmp_path, path, runs / "one.pybpf")


def test_truncated(runs, tmp_path):
    path = tmp_path / "half.pybpf"
    whole = (runs / "one.pybpf").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "half.pybpf" in refused(tmp_path, runs / "one.pybpf", path)


def test_different_units(runs, tmp_path):
    path = tmp_path / "bytes.pybpf"
    line, packed = (runs / "one.pybpf").read_bytes().split(b"\n", 1)
    # saved.proto, measure_unit: of a field that is there twice the last one counts.
    path.write_bytes(line + b"\n" + gzip.compress(gzip.decompress(packed) + b"\x1a\x05bytes"))
    sentence = refused(tmp_path, runs / "one.pybpf", path)
    assert "count" in sentence and "bytes" in sentence and "one.pybpf" in sentence and "bytes.pybpf" in sentence


@pytest.mark.parametrize(
    "args, word",
    [
        (["-f", "svg"], "svg"),
        (["--by=thread"], "thread"),
        (["--compare=size"], "size"),
        (["--confidence=0.95"], "0.95"),
        (["--confidence=100"], "100"),
        (["--tolerance=-1"], "-1"),
        (["--limit=0"], "0"),
        (["--focus=("], "("),
        (["--by=line", "-f", "html"], "html"),
        (["--compare=time", "-f", "html"], "html"),
        (["--frequency=1"], "--frequency"),
    ],
)
def test_wrong_options(runs, tmp_path, args, word):
    assert word in refused(tmp_path, runs / "one.pybpf", runs / "two.pybpf", *args)


def test_wrong_number_of_profiles(runs, tmp_path):
    assert "1" in refused(tmp_path, runs / "one.pybpf")
    assert "3" in refused(tmp_path, *[runs / "one.pybpf"] * 3)


def test_unknown_suffix_lists_the_known(runs, tmp_path):
    sentence = refused(tmp_path, runs / "one.pybpf", runs / "two.pybpf", "-o", tmp_path / "change.pdf")
    assert all(name in sentence for name in (".pdf", "text", "folded", "html"))


def test_output_is_a_folder(runs, tmp_path):
    assert str(tmp_path) in refused(tmp_path, runs / "one.pybpf", runs / "two.pybpf", "-f", "text", "-o", tmp_path)


def test_full_disk(runs):
    if not os.path.exists("/dev/full"):
        pytest.skip("/dev/full is missing")
    with open("/dev/full", "wb") as full:
        run = pybpf("diff", runs / "one.pybpf", runs / "two.pybpf", stdout=full)
    assert run.code == 1
    assert "stdout" in one_sentence(run.err)


@pytest.mark.parametrize("form", ["text", "folded", "html"])
def test_empty_profile(runs, tmp_path, form):
    """Valid, and says what is missing."""
    empty, path = tmp_path / "empty.pybpf", tmp_path / "change"
    assert pybpf("report", "-q", runs / "one.pybpf", "--focus=no_such_function", "-o", empty).code == 0
    for pair in ((empty, runs / "one.pybpf"), (runs / "one.pybpf", empty)):
        run = diff(*pair, "-f", form, "-o", path)
        assert "empty.pybpf" in one_sentence(run.err)
        text = path.read_text(encoding="utf-8")
        if form == "text":
            assert "empty.pybpf has no sample" in text and "changed" not in text
        elif form == "folded":
            assert all(0 in counts for counts in folded(text).values())
        else:
            assert text.rstrip().endswith("</html>")
    assert len(diff(empty, empty, "-q").err) == 0
