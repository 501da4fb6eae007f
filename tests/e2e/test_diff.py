# SPDX-License-Identifier: Apache-2.0
"""Two saved profiles of real runs compared: what grew is named, what did not is not."""

import gzip
import json
import os
import re
import shutil
import subprocess

import pytest

import formats
import harness
import html_page
from browser import browse
from harness import one_sentence, pybpf

TITLE = re.compile(r"^(.*) \(([\d,]+) samples?, [\d.]+%; ([-+]?[\d.]+)%\)$")

chromium = html_page.chromium  # a fixture


UNDISTURBED = 1.15
CHANGED = ("grew", "shrank", "new", "gone")
SIDES = {"one": ["one-1", "one-2", "one-3"], "two": ["two-1", "two-2", "two-3"], "more": ["more-1", "more-2", "more-3"]}


def diff(*args, **options):
    run = pybpf("diff", *args, **options)
    assert run.code == 0, run.err
    return run


def record_work(path):
    percent = 180 if path.name.startswith("more") else 60
    argv = harness.default_python().command("grows.py", "150", str(percent))
    run = pybpf("-F", 1997, "-q", "--timestamps", "-o", path, "--", *argv)
    assert run.code == 0, run.err


def same_work(path):
    """Samples of what all runs do alike."""
    return sum(count for stack, count in everything_of(path) if "grown" not in [frame.name for frame in stack])


@pytest.fixture(scope="module")
def runs(profiler, tmp_path_factory):
    """Saved profiles: six of the same work, in two sides, and three in which grown() does three times as much.

    The same work takes up to twice as much CPU time beside other work on the same core: what was disturbed most is done again.
    """
    folder = tmp_path_factory.mktemp("runs")
    paths = [folder / ("%s-%d.pybpf" % (name, turn)) for turn in (1, 2, 3) for name in ("one", "more", "two")]
    for path in paths:
        record_work(path)
    for _ in paths:
        took = {path: same_work(path) for path in paths}
        slowest = max(paths, key=took.get)
        if took[slowest] < UNDISTURBED * min(took.values()):
            break
        record_work(slowest)
    return folder


def sides(runs, before, after):
    return [
        "--before", *(runs / (name + ".pybpf") for name in SIDES[before]),
        "--after", *(runs / (name + ".pybpf") for name in SIDES[after]),
    ]


def functions(*args):
    """What is said of each function, and the whole document."""
    told = json.loads(diff("-f", "json", *args).out)
    return {function["name"]: function for function in told["functions"]}, told


def everything_of(*files):
    """The stacks of saved profiles, those of threads without Python included."""
    run = pybpf("report", "-q", "-f", "folded", *files)
    return run.stacks() + run.rows()


def named(found):
    return {name: function["verdict"] for name, function in found.items() if function["verdict"] in CHANGED}


def test_same_work_on_both_sides(runs):
    found, told = functions(*sides(runs, "one", "two"), "--compare=time")
    assert named(found) == {}
    assert found["crunch"]["samples_before"] > 300, "the program was not at work"
    # Functions with too few samples are not judged: how many those are depends on what the machine gave.
    judged = [name for name in ("crunch", "halve", "join", "pick", "grown") if "low" in found[name]]
    assert "crunch" in judged and len(judged) >= 3, found
    for name in judged:
        assert found[name]["low"] <= 0 <= found[name]["high"], found[name]
        assert found[name]["noticeable"] > 0
    assert [len(told[side]["runs"]) for side in ("before", "after")] == [3, 3]
    assert told["time"]["low"] <= told["time"]["change"] <= told["time"]["high"]


def test_what_grew_is_named_and_nothing_else(runs):
    found, _ = functions(*sides(runs, "one", "more"))
    assert named(found) == {"grown": "grew"}
    grown = found["grown"]
    # Three times the work takes three times as long, against what did not change.
    assert 0 < grown["low"] < 2 < grown["high"] < 8, grown
    crunch = found["crunch"]
    assert crunch["samples_after"] / grown["samples_after"] < 0.6 * crunch["samples_before"] / grown["samples_before"]
    assert abs(crunch["change"]) < 0.2, "its share shrinks, and it is not named"


@pytest.mark.parametrize("what", ["share", "rate", "time"])
@pytest.mark.parametrize("after", ["two", "more"])
def test_changes_are_those_of_the_numbers_beside_them(runs, what, after):
    found, told = functions(*sides(runs, "one", after), "--compare=" + what)
    judged = [function for function in found.values() if "change" in function and function["before"]]
    assert len(judged) >= 3
    for function in judged:
        assert function["change"] == pytest.approx(function["after"] / function["before"] - 1), function
        named_or_not = function["low"] > 0 or function["high"] < 0
        assert named_or_not == (function["verdict"] in CHANGED), function
        if function["verdict"] in ("noise", "spread"):
            assert not any(note.startswith(("%(name)s (" % function, "likely: %(name)s (" % function)) for note in told["notes"])


def test_one_run_of_each(runs):
    """Three times as much is named; the text says that nothing was repeated."""
    pair = runs / "one-1.pybpf", runs / "more-1.pybpf"
    found, told = functions(*pair)
    assert named(found) == {"grown": "grew"}
    assert told["spread_assumed"] and told["spread"] >= 0.08
    several, _ = functions(*sides(runs, "one", "more"))
    assert found["crunch"]["noticeable"] > several["crunch"]["noticeable"]
    text = diff(*pair).out
    told = " ".join(text.split())
    if "Perhaps not comparable" not in told:  # since the one was recorded beside a greater load
        assert "if two runs of one program differ by no more than" in told and "Record three runs" in told
    assert "was not measured but assumed" in " ".join(diff(*pair, "--explain").out.split())
    assert "assumed" not in diff(*sides(runs, "one", "more"), "--explain").out


def test_uneven_sides(runs):
    found, told = functions(
        "--after", *(runs / (name + ".pybpf") for name in SIDES["more"]), "--before", runs / "one-1.pybpf"
    )
    assert named(found) == {"grown": "grew"}
    assert [len(told[side]["runs"]) for side in ("before", "after")] == [1, 3]


def test_the_other_way_round(runs):
    found, _ = functions(*sides(runs, "more", "one"))
    assert named(found) == {"grown": "shrank"}
    assert -1 <= found["grown"]["low"] < -2 / 3 < found["grown"]["high"] < 0, found["grown"]


def test_tolerance_says_why_it_is_grey(runs):
    found, told = functions(*sides(runs, "one", "more"), "--tolerance=90")
    assert named(found) == {} and found["grown"]["verdict"] == "spread"
    assert any("grown" not in note and "runs of the same program" in note and "(spread)" in note for note in told["notes"])


@pytest.mark.parametrize("what, unit", [("share", "%"), ("rate", "ms/s"), ("time", "s")])
def test_all_formats_say_the_same(runs, tmp_path, what, unit):
    options = [*sides(runs, "one", "more"), "--compare=" + what]
    found, told = functions(*options)
    text = diff(*options, "--explain").out
    path = tmp_path / "change.html"
    diff(*options, "-o", path)
    page = formats.html_data(path)["diff"]
    assert page["notes"].splitlines() == told["notes"]
    for note in told["notes"]:
        assert note in " ".join(text.split())
    at = page["functions"]["name"].index("grown")
    grown = found["grown"]
    factor = 1000 if what == "rate" else 1
    assert page["functions"]["self_after"][at] == pytest.approx(factor * grown["after"])
    for key in ("change", "low", "high", "noticeable"):
        assert page["functions"][key][at] == pytest.approx(grown[key])
    assert page["functions"]["words"][at] == grown["verdict"] == "grew"
    assert "Total CPU time" in text if what != "share" else "Total CPU time" not in text
    row = re.search(r"^grew +([\d.]+) +([\d.]+) +\+(\d+) %  grown \(grows\.py\)$", text, re.M)
    assert row and re.search(r"^ +%s +%s  " % (unit, unit), text, re.M), text
    scale = {"share": 100, "rate": 1000, "time": 1}[what]
    assert float(row.group(1)) == pytest.approx(scale * grown["before"], rel=0.01)
    assert float(row.group(2)) == pytest.approx(scale * grown["after"], rel=0.01)
    assert int(row.group(3)) == pytest.approx(100 * grown["change"], abs=1)


@pytest.mark.parametrize("what", ["share", "rate", "time"])
def test_the_first_line_says_it(runs, what):
    text = diff(*sides(runs, "one", "more"), "--compare=" + what).out
    told_uneven = functions(*sides(runs, "one", "more"))[1]["load_uneven"]
    assert text.startswith("Perhaps not comparable: ") == told_uneven
    first = re.search(r"^grown \(grows\.py\) takes ([\d.]+) times as long(?: \([\d.]+ to [\d.]+\))?: \+[\d.]+ ", text, re.M)
    assert first and 2.5 < float(first.group(1)) < 3.5, text
    assert "interval" not in text and "--explain" in text
    assert re.search(r"^(No change seen|Too noisy to compare)", diff(*sides(runs, "one", "two")).out, re.M)


def test_units_are_those_of_the_runs(runs):
    """Against what the profiles say by themselves. Values after are scaled to before."""

    def said(*args):
        found, told = functions(*args)
        grown = found["grown"]
        for key in ("after", "total_after"):
            grown[key] *= told["pace"]
        return grown

    options = sides(runs, "one", "more")
    own = {}
    for side in ("one", "more"):
        files = [runs / (name + ".pybpf") for name in SIDES[side]]
        stacks = everything_of(*files)
        own[side] = sum(count for stack, count in stacks if stack[-1].name == "grown"), harness.total(stacks)
    share, rate, time = (said(*options, "--compare=" + what) for what in ("share", "rate", "time"))
    for key, side in (("before", "one"), ("after", "more")):
        count, total = own[side]
        assert share["samples_" + key] == count
        assert share[key] == pytest.approx(count / total)
        assert time[key] == pytest.approx(count / 1997 / 3, rel=0.01)
        assert 0 < rate[key] < 1
    assert share["total_after"] >= share["after"]


def test_load_beside_the_runs_is_known(runs):
    _, told = functions(*sides(runs, "one", "more"))
    for side in ("before", "after"):
        assert 0 <= told[side]["load"] <= 1
    assert any(re.match(r"Other programs took \d+ to \d+ % of the machine", note) for note in told["notes"])


def test_shares_add_up(runs):
    _, told = functions(*sides(runs, "one", "more"))
    for side in ("before", "after"):
        scale = told["pace"] if side == "after" else 1
        assert scale * sum(function[side] for function in told["functions"]) == pytest.approx(1)
        assert sum(function["samples_" + side] for function in told["functions"]) == told[side]["samples"]


def test_text_is_80_columns_wide(runs):
    for options in ([], ["--compare=rate"], ["--all-rows"], ["--by=line", "--all-rows"], ["--all-rows", "--compare=time"], ["--explain"]):
        text = diff(*sides(runs, "one", "more"), *options).out
        # Names of files are not cut.
        long = [line for line in text.splitlines() if len(line) > 80 and ".pybpf" not in line]
        assert not long, long
        assert "-101 %" not in text and "inf" not in text and "nan" not in text


def test_by_line(runs):
    told = json.loads(diff(*sides(runs, "one", "more"), "--by=line", "-f", "json").out)
    lines = [f for f in told["functions"] if f["name"] == "grown" and f["samples_after"]]
    assert len(lines) >= 2 and all(f["line"] > 0 for f in lines)
    whole, _ = functions(*sides(runs, "one", "more"))
    assert sum(f["samples_after"] for f in lines) == whole["grown"]["samples_after"]
    assert any(f["verdict"] == "grew" for f in lines)


def test_filters(runs):
    found, _ = functions(*sides(runs, "one", "more"), "--under=even")
    assert {name for name, f in found.items() if f["samples_before"]} <= {"crunch", "even"}
    assert found["even"]["total_before"] == pytest.approx(1)
    assert found["even"]["total_after"] == pytest.approx(max(f["total_after"] for f in found.values()))
    found, _ = functions(*sides(runs, "one", "more"), "--ignore=grown")
    assert "crunch" in found and "grown" not in found


def folded(text):
    """Stack, as text -> (before, after)."""
    return {stack: (int(before), int(after)) for stack, before, after in (row.rsplit(" ", 2) for row in text.splitlines())}


def test_folded(runs):
    pair = runs / "one-1.pybpf", runs / "more-1.pybpf"
    stacks = folded(diff(*pair, "-f", "folded").out)
    grown = [counts for stack, counts in stacks.items() if stack.endswith(";grown (grows.py)")]
    assert sum(before for before, _ in grown) < 0.8 * sum(after for _, after in grown)
    # The counts after are those of the profile itself.
    after = harness.total(everything_of(pair[1]))
    assert sum(counts[1] for counts in stacks.values()) == after
    everything = folded(diff(*pair, "-f", "folded", "--all-rows").out)
    # What did not change is as large on both sides.
    crunch = [counts for stack, counts in everything.items() if stack.endswith(";crunch (grows.py)")]
    # The same work takes a machine that does other things as well more CPU time.
    assert sum(c[0] for c in crunch) == pytest.approx(sum(c[1] for c in crunch), rel=0.5)
    # Where nothing has changed, no difference is to be seen.
    changed = {stack for stack, (first, second) in stacks.items() if first != second}
    assert changed == {stack for stack in stacks if stack.endswith(";grown (grows.py)")}
    assert len(changed) < len([stack for stack, (first, second) in everything.items() if first != second])


def test_flamegraph_draws_what_changed(runs, tmp_path):
    path = tmp_path / "change.folded"
    diff(*sides(runs, "one", "more"), "-o", path)
    boxes = {}
    for title, colour in formats.flamegraph(path):
        found = TITLE.fullmatch(title)
        if found:
            boxes.setdefault(found.group(1), []).append((float(found.group(3)), colour))
    red, green, blue = map(int, re.findall(r"\d+", boxes["grown (grows.py)"][0][1]))
    assert boxes["grown (grows.py)"][0][0] > 5 and red > green == blue
    assert boxes["crunch (grows.py)"][0][0] == 0


def test_html_has_what_was_compared(runs, tmp_path):
    path = tmp_path / "change.html"
    pair = runs / "one-1.pybpf", runs / "more-1.pybpf"
    diff(*pair, "-o", path)
    data = formats.html_data(path)
    totals = [harness.total(everything_of(name)) for name in pair]
    assert [data["diff"]["before_total"], data["diff"]["after_total"]] == totals
    assert [sum(data["samples"][key]) for key in ("before", "value")] == totals
    assert [data["diff"]["before"], data["diff"]["after"]] == [name.name for name in pair]
    assert str(runs) not in json.dumps(data)
    columns = data["diff"]["functions"]
    assert columns["verdict"][columns["name"].index("grown")] == 1
    assert columns["verdict"][columns["name"].index("crunch")] == 0


def test_html_of_several_runs(runs, tmp_path):
    path = tmp_path / "change.html"
    diff(*sides(runs, "one", "more"), "-o", path)
    told = formats.html_data(path)["diff"]
    assert (told["before"], told["after"]) == ("3 runs (one-1.pybpf, ...)", "3 runs (more-1.pybpf, ...)")


COLOURS = """
  await page.goto(address);
  %s
  await calm();
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
    colours = {}
    for order in (("one", "more"), ("more", "one")):
        diff(*sides(runs, *order), "-o", path)
        colours[order] = browse(path, html_page.steps(COLOURS % html_page.READY), argument=["grown", "crunch", "rounds"])
    red, _, blue = colours["one", "more"]["grown"]
    assert red > blue + 40, colours
    red, _, blue = colours["more", "one"]["grown"]
    assert blue > red + 40, colours
    for found in colours.values():
        for name in ("crunch", "rounds"):  # less of a share, and no change
            red, _, blue = found[name]
            assert abs(red - blue) < 25, colours


@pytest.mark.usefixtures("chromium")
@pytest.mark.parametrize("what, unit", [("share", " points"), ("time", " s")])
def test_html_says_what_it_compares(runs, tmp_path, what, unit):
    path = tmp_path / "change.html"
    options = [*sides(runs, "one", "more"), "--compare=" + what]
    diff(*options, "-o", path)
    told = browse(
        path,
        html_page.steps(
            """
  await page.goto(address + "#view=table");
  await page.waitForSelector("[data-testid=table]");
  const shown = () => page.$$eval(".rows .row", (all) => all.map((row) => row.textContent));
  const rows = await shown();
  await page.goto(address + "#view=table&q=crunch");
  await page.waitForFunction(() => [...document.querySelectorAll(".rows .row")].every((row) => row.textContent.includes("crunch")));
  const crunch = await shown();
  await page.goto(address + "#view=run");
  await page.waitForSelector("[data-testid=run]");
  return { rows, crunch, run: await page.textContent("[data-testid=run]") };
"""
        ),
    )
    found, document = functions(*options)
    assert "grown" in told["rows"][0] and "grew +%.0f %%" % (100 * found["grown"]["change"]) in told["rows"][0], told
    assert (" s" in told["rows"][0]) == (unit == " s")
    (crunch,) = told["crunch"]
    assert "none seen above" in crunch or "runs differ by as much" in crunch
    assert all(note in told["run"] for note in document["notes"])


def test_anonymized_names_still_match(runs):
    found, _ = functions(*sides(runs, "one", "more"), "--anonymize")
    assert list(named(found).values()) == ["grew"]
    assert not any("grown" in name for name in found)


def test_as_any_user(runs, tmp_path):
    """Comparing takes no rights beyond reading the files."""
    shutil.copy(harness.PYBPF, tmp_path / "pybpf")
    for name in ("one-1", "two-1"):
        shutil.copy(runs / (name + ".pybpf"), tmp_path)
        (tmp_path / (name + ".pybpf")).chmod(0o644)
    tmp_path.chmod(0o755)
    done = subprocess.run(
        ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", tmp_path / "pybpf", "diff",
         tmp_path / "one-1.pybpf", tmp_path / "two-1.pybpf"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
    )
    assert done.returncode == 0 and "crunch (grows.py)" in done.stdout, done.stderr


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
    assert "nowhere.pybpf" in refused(tmp_path, runs / "one-1.pybpf", tmp_path / "nowhere.pybpf")


def test_not_a_profile(runs, tmp_path):
    path = tmp_path / "note.pybpf"
    path.write_text("no profile\n")
    assert "note.pybpf" in refused(tmp_path, path, runs / "one-1.pybpf")


def test_truncated(runs, tmp_path):
    path = tmp_path / "half.pybpf"
    whole = (runs / "one-1.pybpf").read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "half.pybpf" in refused(tmp_path, runs / "one-1.pybpf", path)


def test_different_units(runs, tmp_path):
    path = tmp_path / "bytes.pybpf"
    line, packed = (runs / "one-1.pybpf").read_bytes().split(b"\n", 1)
    # saved.proto, measure_unit: where a field occurs twice, the last one counts.
    path.write_bytes(line + b"\n" + gzip.compress(gzip.decompress(packed) + b"\x1a\x05bytes"))
    sentence = refused(tmp_path, runs / "one-1.pybpf", path)
    assert "count" in sentence and "bytes" in sentence and "one-1.pybpf" in sentence and "bytes.pybpf" in sentence


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
        (["--before"], "--before"),
        (["--before", "c.pybpf"], "one-1.pybpf"),
        (["--frequency=1"], "--frequency"),
    ],
)
def test_wrong_options(runs, tmp_path, args, word):
    assert word in refused(tmp_path, runs / "one-1.pybpf", runs / "two-1.pybpf", *args)


def test_wrong_number_of_profiles(runs, tmp_path):
    one, two = runs / "one-1.pybpf", runs / "two-1.pybpf"
    assert "1" in refused(tmp_path, one)
    assert "3" in refused(tmp_path, *[one] * 3)
    assert "--after is missing" in refused(tmp_path, "--before", one, two)
    assert "--before is missing" in refused(tmp_path, "--after", one, two)


def test_same_run_twice_on_a_side(runs, tmp_path):
    one, two, more = (runs / name for name in ("one-1.pybpf", "two-1.pybpf", "more-1.pybpf"))
    assert "same run" in refused(tmp_path, "--before", one, two, one, "--after", more)
    copy = tmp_path / "copy.pybpf"
    shutil.copy(more, copy)
    sentence = refused(tmp_path, "--before", one, "--after", more, copy)
    assert "copy.pybpf" in sentence and "more-1.pybpf" in sentence and "after" in sentence


def test_different_rates_on_a_side(runs, tmp_path):
    slow = runs / "slow.pybpf"
    argv = harness.default_python().command("grows.py", "40", "60")
    assert pybpf("-F", 99, "-q", "-o", slow, "--", *argv).code == 0
    sentence = refused(tmp_path, "--before", runs / "one-1.pybpf", slow, "--after", runs / "more-1.pybpf")
    assert "slow.pybpf" in sentence and "rate" in sentence
    # Between sides it does not matter: shares are of each side's samples.
    assert diff(runs / "more-1.pybpf", slow).code == 0


def test_unknown_suffix_lists_the_known(runs, tmp_path):
    sentence = refused(tmp_path, runs / "one-1.pybpf", runs / "two-1.pybpf", "-o", tmp_path / "change.pdf")
    assert all(name in sentence for name in (".pdf", "text", "folded", "html", "json"))


def test_output_is_a_folder(runs, tmp_path):
    assert str(tmp_path) in refused(tmp_path, runs / "one-1.pybpf", runs / "two-1.pybpf", "-f", "text", "-o", tmp_path)


def test_full_disk(runs):
    if not os.path.exists("/dev/full"):
        pytest.skip("/dev/full is missing")
    with open("/dev/full", "wb") as full:
        run = pybpf("diff", runs / "one-1.pybpf", runs / "two-1.pybpf", stdout=full)
    assert run.code == 1
    assert "stdout" in one_sentence(run.err)


@pytest.mark.parametrize("form", ["text", "folded", "html", "json"])
def test_empty_profile(runs, tmp_path, form):
    """Valid, and says what is missing."""
    empty, path = tmp_path / "empty.pybpf", tmp_path / "change"
    assert pybpf("report", "-q", runs / "one-1.pybpf", "--focus=no_such_function", "-o", empty).code == 0
    for pair in ((empty, runs / "one-1.pybpf"), (runs / "one-1.pybpf", empty)):
        run = diff(*pair, "-f", form, "-o", path)
        assert "empty.pybpf" in one_sentence(run.err)
        text = path.read_text(encoding="utf-8")
        if form == "text":
            assert "empty.pybpf has no sample" in " ".join(text.split()) and "take" not in text
        elif form == "folded":
            assert all(0 in counts for counts in folded(text).values())
        elif form == "json":
            assert json.loads(text)["judged"] is False and "empty.pybpf" in " ".join(json.loads(text)["notes"])
        else:
            assert text.rstrip().endswith("</html>")
    assert len(diff(empty, empty, "-q").err) == 0
