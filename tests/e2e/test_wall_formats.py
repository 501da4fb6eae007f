# SPDX-License-Identifier: Apache-2.0
"""What formats and the report have of --mode=wall: time and how many waits, states, the function that waits."""

import collections
import json
import re
import shutil
import subprocess

import pytest

import harness
import html_page
import pythons
from browser import browse
from firefox import firefox
from html_page import READY, steps
from test_html_access import CONTRAST, LEAST, axe

chromium = html_page.chromium  # a fixture
pytestmark = pytest.mark.usefixtures("profiler")

KINDS = ("sleep", "pipe", "tcp")
STATES = {"sleep": "sleep", "pipe": "pipe", "tcp": "network"}
VERSIONS = ((2, 7), (3, 8), (3, 11), (3, 13), pythons.NEWEST)
PYTHONS = pythons.interpreters()


def chosen():
    """One of each version that differs in its frames or its GIL, and one without a GIL."""
    firsts = [next((p for p in PYTHONS if p.version == v and p.kind != "free-threaded"), None) for v in VERSIONS]
    free = next((p for p in PYTHONS if p.kind == "free-threaded"), None)
    return [p for p in firsts + [free] if p]


class Recorded:
    def __init__(self, python, folder):
        self.saved = folder / "wall.pybpf"
        command = python.command("waits.py", "1", *KINDS)
        stats = folder / "stats.json"
        self.run = harness.pybpf(
            "--mode=wall", "--no-children", "--json-stats", stats, "-o", self.saved, "--", *command
        )
        assert self.run.code == 0, self.run.err
        self.says = json.loads(self.run.out)
        self.stats = json.loads(stats.read_text())

    def report(self, *options):
        run = harness.pybpf("report", self.saved, *options)
        assert run.code == 0, run.err
        return run


@pytest.fixture(scope="module", params=chosen(), ids=lambda item: item.name)
def recorded(request, tmp_path_factory, profiler):
    return Recorded(request.param, tmp_path_factory.mktemp("wall"))


@pytest.fixture(scope="module")
def one(tmp_path_factory, profiler):
    return Recorded(harness.default_python(), tmp_path_factory.mktemp("wall"))


def waits_of(profile):
    """{function: {state: [microseconds, count]}} of a profile in json; "": it runs."""
    frames, stacks = profile["frames"], profile["stacks"]
    found = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for sample in profile["samples"]:
        names, at = [], sample["stack"]
        state = frames[stacks[at]["frame"]].get("state", "")
        while at is not None:
            names.append(frames[stacks[at]["frame"]]["name"])
            at = stacks[at]["parent"]
        for function in {name for name in names if name.startswith("wait_")} or {""}:
            found[function][state][0] += sample["value"]
            found[function][state][1] += sample["count"]
    return found


def thread_seconds(text):
    lines = [line for line in text.splitlines() if "thread-seconds" in line]
    assert len(lines) == 1, text
    return lines[0]


def test_waits_are_counted_and_have_states(recorded):
    profile = json.loads(recorded.report("-q", "-f", "json").out)
    found = waits_of(profile)
    assert profile["measure"] == {"name": "wall", "unit": "microseconds", "period_ns": None}
    for kind in KINDS:
        us, count = found["wait_" + kind][STATES[kind]]
        # The last call of a thread may be after the end of the program's own count. What has come before a thread reads
        # it is not waited for. A first sleep may begin before the process is known.
        calls = recorded.says["calls"][kind]
        assert (calls - 2 if kind == "sleep" else calls / 2) <= count <= calls + 1, (kind, calls, dict(found["wait_" + kind]))
        assert us / 1e6 <= recorded.says["seconds"][kind] + 0.05
    states = collections.Counter()
    for by_state in found.values():
        for state, (us, _) in by_state.items():
            states[state or "on CPU"] += us
    for state, seconds in recorded.stats["state_s"].items():
        assert abs(states[state] / 1e6 - seconds) < 0.001, state
    assert sum(count for by_state in found.values() for count in [by_state[""][1]]) <= recorded.stats["samples"]["taken"]


def test_report_tells_the_states_of_the_run(recorded):
    told = thread_seconds(recorded.run.err)
    assert "sleep" in told and "network" in told
    again = recorded.report("-f", "folded")
    assert thread_seconds(again.err) == told
    twice = harness.pybpf("report", recorded.saved, recorded.saved, "-f", "folded")
    assert thread_seconds(twice.err).split(": ")[2] == told.split(": ")[2]
    part = recorded.report("-f", "folded", "--focus", "^wait_sleep ")
    seconds = sum(count for _, count in harness.parse(part.out)) / 1e6
    assert abs(float(re.search(r"([\d.]+) thread-seconds", thread_seconds(part.err)).group(1)) - seconds) < 0.006
    assert "network" not in thread_seconds(part.err)


def test_text_shows_the_function_that_waits(recorded):
    row = r"^ *[\d.]+ m?s +[\d.]+% +\d+ +[\d.]+ [mu]?s +[\d.]+ m?s  \[sleep\] in wait_sleep \(waits\.py\)$"
    assert re.search(row, recorded.report("-q").out, re.M)
    lines = recorded.report("-q", "--by=state", "--limit", "200").out.splitlines()
    columns = re.split(r" {2,}", lines[0].strip())
    assert columns[:2] == ["self", "on CPU"] and columns[-1] == "function" and {"sleep", "pipe", "network"} <= set(columns)
    rows = {re.split(r" {2,}", line.strip())[-1]: re.split(r" {2,}", line.strip())[:-1] for line in lines[1:]}
    for kind in KINDS:
        cells = dict(zip(columns, rows["wait_%s (waits.py)" % kind]))
        others = [cells[STATES[other]] for other in KINDS if other != kind]
        assert others == ["-", "-"] and float(cells[STATES[kind]].rstrip("%")) > 0, cells


ASKS = """
import queue
def asks(q):
    for _ in range(30):
        try:
            q.get(timeout=0.02)
        except queue.Empty:
            pass
asks(queue.Queue())
"""


@pytest.mark.parametrize("python", [one for one in map(pythons.one, ((3, 8), (3, 12), pythons.NEWEST)) if one], ids=lambda item: item.name)
def test_text_names_the_nearest_function_that_is_the_programs_own(python):
    run = harness.pybpf("--mode=wall", "-f", "text", "--", *python.argv, "-c", ASKS)
    row = r"^.* (\d+) +[\d.]+ ms  \[lock\] in asks \(<string>\), via Condition\.wait \(threading\.py\)$"
    name = row if python.version >= (3, 11) else row.replace(r"Condition\.", "")
    found = re.search(name, run.out, re.M)
    assert found and int(found.group(1)) >= 25, run.out


def test_firefox_profiler_has_time_and_markers(one, tmp_path):
    """By its own code: each wait of the recording is a marker as long, and sums are milliseconds."""
    path = tmp_path / "wall.gecko.json"
    one.report("-q", "-o", path)
    waits, total = collections.Counter(), 0
    for stack, us in harness.parse_all(one.report("-q", "-f", "folded").out):
        total += us
        waits[stack[-1].name.strip("[]").split(":")[0]] += us / 1e6
    written = json.loads(path.read_text(encoding="utf-8"))
    names = written["shared"]["stringArray"]
    seconds = collections.Counter()
    for thread in written["threads"]:
        assert thread["samples"]["weightType"] == "tracing-ms"
        markers = thread["markers"]
        for i in range(markers["length"]):
            assert names[markers["data"][i]["cause"]].startswith("[")
            assert written["meta"]["categories"][markers["category"][i]]["name"] == "Waiting"
            seconds[names[markers["name"][i]]] += (markers["endTime"][i] - markers["startTime"][i]) / 1e3
    # Waits below 1 ms have no times.
    for kind in KINDS:
        assert 0.9 * one.says["seconds"][kind] - 0.05 < seconds[STATES[kind]] < waits[STATES[kind]] + 0.01, seconds
    with firefox(path, tmp_path / "session") as session:
        shown, marked = 0, ""
        # A thread's samples without times are a thread of their own.
        for thread in session.ask("thread", "list", "--limit", 0)["threads"]:
            chosen = "--thread", thread["threadHandle"]
            functions = session.ask("thread", "functions", *chosen, "--limit", 0)["functions"]
            shown += sum(function["selfSamples"] for function in functions)
            marked += session.run("thread", "markers", *chosen)[1]
        assert abs(shown - total / 1e3) < 0.001 * total / 1e3, (shown, total)
    assert all(re.search(r"^  %s +\d+ markers" % state, marked, re.M) for state in STATES.values()), marked


def test_pprof_has_time_and_counts(one, tmp_path):
    go = shutil.which("go")
    if not go:
        pytest.skip("there is no go")
    path = tmp_path / "wall.pb.gz"
    one.report("-q", "-o", path)
    raw = subprocess.run([go, "tool", "pprof", "-raw", path], capture_output=True, text=True, check=True).stdout
    assert "samples/count waits/count wall/microseconds[dflt]" in raw
    top = subprocess.run(
        [go, "tool", "pprof", "-top", "-cum", "-sample_index=waits", "-tagfocus=state=^sleep$", path],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    cumulated = int(re.search(r"(\d+) +[\d.]+% +wait_sleep\b", top).group(1))
    assert -2 <= cumulated - one.says["calls"]["sleep"] <= 1, top


def test_refusals(one):
    for options, words in (
        (["report", one.saved, "-f", "svg", "--by=state"], "text has"),
        (["-p", "1", "-f", "text", "--by=state"], "--mode=wall"),
    ):
        run = harness.pybpf(*options)
        assert run.code == 2 and words in harness.one_sentence(run.err)


@pytest.fixture(scope="module")
def page(one, chromium):
    path = one.saved.with_suffix(".html")
    one.report("-q", "-o", path)
    return path


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_report_has_colours_and_columns_of_states(one, page, dark):
    told = browse(
        page,
        steps(
            CONTRAST
            + """
  await page.goto(address);
  %s
  const out = { colour: await page.inputValue("[aria-label=Colours]"), chips: await page.$$eval("[data-testid=states] .chip", (all) => all.map((c) => c.firstChild.textContent)) };
  const colours = await page.evaluate(() => {
    const { tree, look } = document.querySelector(".host").flame;
    const of = {}, pairs = new Set();
    for (let i = 1; i < tree.count; i++) {
      const state = tree.key[i] >= 0 && tree.keys.state[tree.key[i]];
      if (state) (of[state] ??= new Set()).add(look.fill(i));
      pairs.add(JSON.stringify([look.ink(i), look.fill(i)]));
    }
    for (const chip of document.querySelectorAll("[data-testid=states] .chip")) pairs.add(JSON.stringify([getComputedStyle(chip).color, getComputedStyle(chip).backgroundColor]));
    return { of: Object.fromEntries(Object.entries(of).map(([s, set]) => [s, [...set]])), pairs: [...pairs].map(JSON.parse) };
  });
  out.of = colours.of;
  out.least = Math.min(...(await Promise.all(colours.pairs.map((pair) => page.evaluate(contrast, pair)))));
  await page.click(".more");
  await page.selectOption("[aria-label=Colours]", "module");
  out.module = await page.$$eval("[data-testid=states]", (all) => all.length);
  await page.selectOption("[aria-label=Colours]", "state");
  await page.keyboard.press("Escape");
  const at = await page.evaluate(place, "[sleep]");
  await page.mouse.click(at.x, at.y);
  out.details = await page.textContent("[data-testid=details]");
  await page.keyboard.press("Escape");
  await page.click("#tab-states");
  await page.waitForSelector("[data-testid='state table'] .rows .row");
  const rows = () => page.$$eval("[data-testid='state table'] .row", (all) => all.map((row) => [...row.children].map((c) => c.textContent.trim())));
  out.rows = await rows();
  await page.click("text=pipe");
  out.sorted = await rows();
  out.address = await page.evaluate(() => location.hash);
  await page.selectOption("[aria-label=Time]", "total");
  out.total = await rows();
  await page.evaluate(argument.axe);
  out.faults = [];
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 800 });
    await calm();
    const { violations } = await page.evaluate(() => axe.run(document));
    out.faults.push(...violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => [width, v.id, v.nodes[0].html]));
  }
  return out;
"""
            % READY
        ),
        argument={"axe": axe()},
        dark=dark,
    )
    assert told["colour"] == "state" and told["module"] == 0
    assert {"on CPU", "sleep", "pipe", "network"} <= {chip.strip() for chip in told["chips"]}
    assert all(len(colours) == 1 for colours in told["of"].values()), "a state has one colour"
    assert len({colours[0] for colours in told["of"].values()}) == len(told["of"]) >= 3
    assert told["least"] >= LEAST
    assert abs(html_page.number(re.search(r"waits([\d,]+)", told["details"]).group(1)) - one.says["calls"]["sleep"]) <= 60
    head = [re.sub(r"\W+$", "", text) for text in told["rows"][0]]
    cells = {row[-1].split()[0].split("waits.py")[0]: dict(zip(head, row)) for row in told["rows"][1:]}
    for kind in KINDS:
        row = cells["wait_" + kind]
        assert [row[STATES[other]] for other in KINDS if other != kind] == ["", ""] and row[STATES[kind]], row
    assert told["sorted"][1][-1].startswith("wait_pipe") and "column=pipe" in told["address"]
    most = [max(float(row[0].strip(" %<")) for row in told[table][1:]) for table in ("rows", "total")]
    assert most[1] > 1.5 * most[0], "what starts threads has the time of several functions"
    assert told["faults"] == []


def test_a_frame_of_several_states_has_their_colours_by_share(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  await page.mouse.move(640, 5);
  await calm();
  const out = { chips: await page.$$eval("[data-testid=states] .chip", (all) => all.map((c) => [c.firstChild.textContent.trim(), parseFloat(c.querySelector("small").textContent.replace("<", ""))])) };
  // The first row's pixels, above its text, as [colour, how many] from left to right.
  out.runs = await page.evaluate(() => {
    const { canvas } = document.querySelector(".host").flame;
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 1, canvas.width - 1, 1).data.buffer);
    const runs = [];
    for (const pixel of pixels) if (runs.at(-1)?.[0] === pixel) runs.at(-1)[1]++; else runs.push([pixel, 1]);
    return runs;
  });
  const box = await page.locator(".host").boundingBox();
  await page.mouse.move(box.x + 300, box.y + 5);
  await page.waitForSelector("[role=tooltip]");
  out.tip = await page.textContent("[role=tooltip]");
  return out;
"""
            % READY
        ),
    )
    width = sum(pixels for _, pixels in told["runs"])
    shown = [(state, share) for state, share in told["chips"] if share * width / 100 > 2]
    assert len(shown) >= 3 and len({colour for colour, _ in told["runs"]}) == len(told["runs"])
    for (_, pixels), (_, share) in zip(told["runs"], shown):
        assert abs(100 * pixels / width - share) < 0.3, (told["runs"], told["chips"])
    assert re.search(r"states%s [\d.]+ %%, %s " % tuple(re.escape(state) for state, _ in shown[:2]), told["tip"])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_bars_over_time_say_what_they_are_and_have_all_states(page, dark):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  await calm();
  return page.evaluate(() => {
    const c = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const spelled = (data, i) => data.slice(i, i + 3).join(" ");
    const rgb = (colour) => {
      c.fillStyle = colour;
      c.fillRect(0, 0, 1, 1);
      return spelled(c.getImageData(0, 0, 1, 1).data, 0);
    };
    const canvas = document.querySelector("[data-testid=range] canvas");
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const pixels = {};
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) pixels[spelled(data, i)] = (pixels[spelled(data, i)] ?? 0) + 1;
    const chips = [...document.querySelectorAll("[data-testid=states] .chip")].map((chip) => [
      chip.firstChild.textContent.trim(), parseFloat(chip.querySelector("small").textContent.replace("<", "")), pixels[rgb(getComputedStyle(chip).backgroundColor)] ?? 0,
    ]);
    return { chips, caption: document.querySelector(".caption").textContent, label: canvas.getAttribute("aria-label") };
  });
"""
            % READY
        ),
        dark=dark,
    )
    assert re.match(r"What threads did over time [\d.]+ threads on average$", told["caption"])
    assert told["label"].startswith("What threads did over time, ")
    large = [chip for chip in told["chips"] if chip[1] > 5]
    assert len(large) >= 3 and all(pixels > 50 for _, _, pixels in large), told["chips"]


def test_a_profile_without_waits_has_neither(profiler, chromium, tmp_path):
    run = harness.pybpf("-o", tmp_path / "cpu.pybpf", "--", "/usr/bin/python3", "-c", "sum(range(20000000))")
    assert run.code == 0, run.err
    profile = json.loads(harness.pybpf("report", tmp_path / "cpu.pybpf", "-q", "-f", "json").out)
    assert profile["samples"] and not any("count" in sample for sample in profile["samples"])
    assert not [entry for entry in profile["account"] if entry["group"] == "thread_ns"]
    page = html_page.report(tmp_path / "cpu.pybpf", tmp_path / "cpu.html")
    told = browse(
        page,
        steps(
            """
  await page.goto(address + "#view=states&color=state");
  %s
  return { view: await page.getAttribute("main", "data-view"), tabs: await page.$$eval("[role=tab]", (all) => all.length), colour: await page.inputValue("[aria-label=Colours]") };
"""
            % READY
        ),
    )
    assert told == {"view": "graph", "tabs": 7, "colour": "module"}
