# SPDX-License-Identifier: Apache-2.0
"""When waits were: the events of --mode=wall, the time line of the report and that of other formats."""
import bisect
import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness
import html_page
import pythons
from browser import browse
from html_page import steps

pytestmark = pytest.mark.usefixtures("profiler")
chromium = html_page.chromium  # a fixture

US = 1e6
NS = 1e9
VERSIONS = ((2, 7), (3, 8), (3, 11), (3, 12), (3, 13), pythons.NEWEST)
PYTHONS = pythons.interpreters()
SHORTEST = 1000  # microseconds, that are drawn


def chosen():
    firsts = [next((p for p in PYTHONS if p.version == v and p.kind != "free-threaded"), None) for v in VERSIONS]
    free = next((p for p in PYTHONS if p.kind == "free-threaded"), None)
    return [p for p in firsts + [free] if p]


class Event:
    def __init__(self, profile, event):
        time_ns, index, self.value = event
        sample = profile["samples"][index]
        self.begin = time_ns / 1000
        self.thread = sample["thread"]
        self.names, self.state = [], None
        stack = sample["stack"]
        while stack is not None:
            frame = profile["frames"][profile["stacks"][stack]["frame"]]
            if not self.names:
                self.state = frame.get("state")
            self.names.append(frame["name"])
            stack = profile["stacks"][stack]["parent"]
        self.end = self.begin + (self.value if self.state else 0)


class Recorded:
    def __init__(self, python, folder):
        self.saved = folder / "wall.pybpf"
        stats = folder / "stats.json"
        command = python.command("intervals.py")
        self.run = harness.pybpf(
            "--mode=wall", "-F", 199, "--no-children", "--json-stats", stats, "-o", self.saved, "--", *command
        )
        assert self.run.code == 0, self.run.err
        self.says = json.loads(self.run.out)
        self.stats = json.loads(stats.read_text())
        self.profile = json.loads(self.report("-f", "json").out)
        self.events = [Event(self.profile, event) for event in self.profile["events"]]
        self.start_us = int(self.profile["facts"]["start_ns"]) / 1000

    def report(self, *options):
        run = harness.pybpf("report", self.saved, *options)
        assert run.code == 0, run.err
        return run

    def waits(self, function, state):
        known = {function, "[stack not readable]"}  # a switch in the middle of a change of frames
        return [event for event in self.events if event.state == state and known.intersection(event.names)]

    def said(self, function):
        return [(begin * US - self.start_us, end * US - self.start_us) for begin, end, _ in self.says[function]]


@pytest.fixture(scope="module", params=chosen(), ids=lambda item: item.name)
def recorded(request, tmp_path_factory, profiler):
    return Recorded(request.param, tmp_path_factory.mktemp("times"))


@pytest.fixture(scope="module")
def one(tmp_path_factory, profiler):
    return Recorded(harness.default_python(), tmp_path_factory.mktemp("times"))


def off_cpu_us(recorded, thread, begin, end):
    """For how long a thread is not on a CPU between these times."""
    own = [event for event in recorded.events if event.thread == thread and event.state not in (None, "on CPU")]
    return sum(max(0, min(event.end, end) - max(event.begin, begin)) for event in own)


@pytest.mark.parametrize("function, state", [("sleeps", "sleep"), ("locks", "lock")])
def test_waits_are_where_the_program_says(recorded, function, state):
    """Within what it says; else the thread has the CPU for as long as its own clock says, or waits for it."""
    waits, missing, met = recorded.waits(function, state), [], 0
    thread = next(wait.thread for wait in waits if function in wait.names)
    for (begin, end), (_, _, cpu_s) in zip(recorded.said(function), recorded.says[function]):
        if end - begin < 2 * SHORTEST:
            continue
        met += any(begin - 200 <= wait.begin and wait.end <= end + 200 for wait in waits)
        missing.append(end - begin - cpu_s * US - off_cpu_us(recorded, thread, begin, end))
    missing.sort()
    # Where it has its CPU late, there is nothing to wait for any more, and many waits are too short to be drawn.
    assert met > len(missing) // 2 > 1, (met, missing)
    assert missing[len(missing) // 2] <= 2 * SHORTEST, missing


def check_overlaps(events):
    """No thread is in two states at a time. Returns the events that are states."""
    threads = collections.defaultdict(list)
    for event in events:
        if event.state:
            threads[event.thread].append(event)
    for own in threads.values():
        own.sort(key=lambda event: event.begin)
        met = [(one.state, one.end, other.state, other.begin) for one, other in zip(own, own[1:]) if one.end > other.begin + 2]
        assert not met, met
    return [event for own in threads.values() for event in own]


def test_time_and_events_are_the_same_sum(recorded):
    """Each wait is an event or counted as too short; the parts of each thread do not overlap."""
    drawn = collections.Counter()
    for event in recorded.events:
        if event.state:
            drawn[event.state] += event.value
    all_us = sum(s * US for state, s in recorded.stats["state_s"].items() if s and state not in ("on CPU", "asleep"))
    waits = recorded.stats["waits"]
    assert waits["untimed"] == 0 and waits["undrawn"] >= 100
    assert abs(sum(drawn.values()) + waits["undrawn_s"] * US - all_us) <= 0.001 * all_us
    assert abs(drawn["sleep"] / US - recorded.stats["state_s"]["sleep"]) <= waits["undrawn_s"] + 0.001
    assert "waits shorter than 1 ms are not in the time line" in recorded.run.err
    assert all(event.value >= SHORTEST - 1 for event in check_overlaps(recorded.events))


def test_what_a_thread_waits_for_a_cpu_is_between_its_sleeps_for_the_gil(tmp_path):
    """A wait for the GIL is many sleeps, and after each the thread has to wait for its CPU."""
    saved = tmp_path / "wall.pybpf"
    spin = ["taskset", "-c", "0", sys.executable, "-c", "while True: pass"]
    with harness.target(harness.default_python(), "gil.py") as running, harness.started(spin):
        for tid in os.listdir("/proc/%d/task" % running.pid):
            os.sched_setaffinity(int(tid), {0})
        run = harness.pybpf("-p", running.pid, "--mode=wall", "-d", 1.5, "-o", saved)
    assert run.code == 0, run.err
    profile = json.loads(harness.pybpf("report", saved, "-f", "json").out)
    events = check_overlaps([Event(profile, event) for event in profile["events"]])
    waits = collections.Counter(event.state for event in events)
    assert waits["GIL"] >= 10 and waits["waiting for a CPU"] >= 10, waits


def test_samples_are_between_waits(recorded):
    waits = collections.defaultdict(list)
    for event in recorded.events:
        if event.state:
            waits[event.thread].append((event.begin, event.end))
    samples = [event for event in recorded.events if not event.state]
    for event in samples:
        i = bisect.bisect(waits[event.thread], (event.begin,)) - 1
        assert i < 0 or waits[event.thread][i][1] <= event.begin + 500, event.names
    said = recorded.said("runs")
    inside = [any(begin - 1000 <= e.begin <= end + 1000 for begin, end in said) for e in samples if "runs" in e.names]
    assert len(inside) >= 3 and sum(inside) >= 0.9 * len(inside)


def test_what_began_before_the_run_or_lasts_beyond_its_end_is_there(tmp_path):
    path = tmp_path / "crowd.pybpf"
    with harness.target(harness.default_python(), "crowd.py", "5") as target:
        run = harness.record(target.pid, "--mode=wall", "--idle", "-o", path, seconds=1, rate=99)
    report = harness.pybpf("report", path, "-f", "json")
    profile = json.loads(report.out)
    events = [Event(profile, event) for event in profile["events"]]
    sums = collections.Counter()
    for event in events:
        if event.state:
            sums[event.thread] += event.value
    seconds = run.stats["duration_s"]
    asleep = sorted(sums.values())[-5:]  # the main thread may have run
    assert len(asleep) == 5 and seconds - 0.01 <= asleep[0] / US and asleep[-1] / US <= seconds + 0.001, (sums, seconds)


def test_timelines_have_slices_as_long_as_waits(one):
    trace = json.loads(one.report("-f", "chrometrace").out)["traceEvents"]
    sleeps = [e for e in trace if e["ph"] == "X" and e["name"] == "[sleep]" and e["cat"] == "sleep"]
    begins = sorted(e["ts"] for e in sleeps)
    longest = sorted(e["dur"] for e in sleeps)[-3:]
    said = sorted(end - begin for begin, end in one.said("sleeps") + one.said("runs"))[-3:]
    assert begins and longest[0] >= 0.08 * US, (longest, said)
    waits = one.waits("sleeps", "sleep")
    assert {round(w.begin) for w in waits} <= {near for b in begins for near in (round(b) - 1, round(b), round(b) + 1)}


def test_details_and_names_are_left_out_as_elsewhere(tmp_path):
    command = harness.default_python().command("waits.py", "0.3", "tcp")
    told = {}
    for option in ("--wait-detail=all", "--wait-detail=none", "--anonymize"):
        saved = tmp_path / ("%s.pybpf" % option[2:6])
        run = harness.pybpf("--mode=wall", "--no-source", option, "-o", saved, "--", *command)
        assert run.code == 0, run.err
        for name in ("chrometrace", "gecko", "json"):
            text = harness.pybpf("report", saved, "-f", name).out
            told[option, name] = ("127.0.0.1" in text, "wait_tcp" in text, "network" in text)
    for name in ("chrometrace", "gecko", "json"):
        assert told["--wait-detail=all", name] == (True, True, True)
        assert told["--wait-detail=none", name] == (False, True, True)
        assert told["--anonymize", name] == (False, False, True)


def test_no_times_on_request(tmp_path):
    path = tmp_path / "wall.pybpf"
    command = ["/usr/bin/python3", "-c", "import time; time.sleep(0.2)"]
    run = harness.pybpf("--mode=wall", "--no-timestamps", "-o", path, "--", *command)
    assert run.code == 0, run.err
    assert not json.loads(harness.pybpf("report", path, "-f", "json").out).get("events")
    assert "time line" not in run.err


# What boxes of the strips are of: by the innermost function that is no note, and the state.
STRIPS = r"""
const strips = () => page.evaluate(() => {
  const { boxes, tree, look, lanes } = document.querySelector(".host").timeline;
  return { lanes: lanes.map((lane) => lane.label), boxes: boxes.map(({ node, from, to, top }) => {
    const key = tree.key[node], above = tree.key[tree.parent[node]];
    return { state: tree.keys.state[key], name: tree.keys.name[key], caller: above >= 0 ? tree.keys.name[above] : "", from, to, top, colour: look.strip(node) };
  }) };
});
"""


def test_the_report_draws_strips_and_a_range_cuts_every_view(one, chromium, tmp_path):
    path = tmp_path / "wall.html"
    one.report("-q", "-o", path)
    # A range that ends in the middle of the longest sleep.
    begin, end = max(((w.begin, w.end) for w in one.waits("sleeps", "sleep")), key=lambda w: w[1] - w[0])
    middle = round((begin + end) / 2)
    told = browse(
        path,
        steps(
            STRIPS
            + """
  await page.goto(address + "#view=time");
  await page.waitForFunction(() => document.querySelector(".host")?.timeline?.boxes.length > 10);
  const out = { strips: await strips(), undrawn: await page.textContent("[data-testid=undrawn]") };
  const at = await page.evaluate(() => {
    const { boxes, tree, canvas } = document.querySelector(".host").timeline, { left, top } = canvas.getBoundingClientRect();
    const box = boxes.filter((b) => tree.keys.state[tree.key[b.node]] === "sleep").sort((x, y) => y.right - y.left - (x.right - x.left))[0];
    return { x: left + (box.left + box.right) / 2, y: top + box.top + 8 };
  });
  await page.mouse.move(at.x, at.y);
  out.tip = await page.textContent(".tip");
  await page.mouse.move(2, 2);
  await page.focus(".host");
  out.said = [];
  for (const key of [".", ".", "ArrowDown"]) {
    await page.keyboard.press(key);
    await calm();
    out.said.push(await page.textContent("[data-testid=said]"));
  }
  await page.goto(address + "#t=" + argument.from + "-" + argument.to);
  await page.waitForFunction(() => document.querySelector(".host")?.flame);
  out.graph = await page.evaluate(() => {
    const { tree } = document.querySelector(".host").flame;
    let asleep = 0;
    for (let i = 1; i < tree.count; i++) if (tree.keys.state[tree.key[i]] === "sleep" && tree.keys.name[tree.key[tree.parent[i]]] === "sleeps") asleep += tree.total[i];
    return { all: tree.total[0], asleep };
  });
  out.scope = await page.textContent("[data-testid=scope]");
  await page.click("#tab-states");
  await page.waitForSelector("[data-testid='state table'] .rows .row");
  out.rows = await page.$$eval("[data-testid='state table'] .row", (all) => all.map((row) => row.textContent));
  await page.click("#tab-table");
  await page.waitForSelector(".rows .row");
  out.table = await page.$$eval(".rows .row", (all) => all.map((row) => row.textContent));
  return out;
"""
        ),
        argument={"from": round(begin), "to": middle},
    )
    boxes = told["strips"]["boxes"]
    # That of nods has a strip only if a sample met it, or a wait was long.
    assert len(told["strips"]["lanes"]) in (4, 5)
    longest = max((b for b in boxes if (b["state"], b["caller"]) == ("sleep", "sleeps")), key=lambda b: b["to"] - b["from"])
    assert abs(longest["from"] - begin) <= 2 and abs(longest["to"] - end) <= 2
    colours = {b["state"]: b["colour"] for b in boxes if b["state"] in ("", "sleep", "lock")}
    assert len(set(colours.values())) == len(colours) == 3, colours
    assert "waits shorter than 1 ms" in told["undrawn"]
    assert "state" in told["tip"] and "sleep" in told["tip"] and "here" in told["tip"] and "in" in told["tip"]
    assert all("state" in said and "here" in said for said in told["said"]) and len(set(told["said"])) >= 2, told["said"]
    assert abs(told["graph"]["asleep"] - (middle - round(begin))) <= 3
    inside = sum(
        max(0, min(e.end, middle) - max(e.begin, round(begin))) if e.state else e.value * (begin <= e.begin < middle)
        for e in one.events
        if e.names
    )
    assert abs(told["graph"]["all"] - inside) <= 20
    assert "sleeps" in "".join(told["rows"]) and "runs" not in "".join(told["rows"] + told["table"])
    assert "shown" in told["scope"]


NAPS = """
import threading, time
def nap():
    while True:
        time.sleep(0.03)
for _ in range(30):
    threading.Thread(target=nap, daemon=True).start()
    time.sleep(0.001)
print("ready", flush=True)
time.sleep(60)
"""


def scheduled_s(pid):
    """For how long its threads have run, as the scheduler counts."""
    return sum(int(path.read_text(encoding="ascii").split()[0]) for path in Path("/proc/%d/task" % pid).glob("*/schedstat")) / 1e9


@pytest.mark.parametrize("number", range(3))
def test_sleeps_are_not_time_on_a_cpu(number):
    """The kernel does not tell every switch from its idle task, nor what woke the thread: that sleep has an end, too."""
    argv = [*harness.default_python().argv, "-c", NAPS]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout.readline() == b"ready\n"
        before = scheduled_s(process.pid)
        run = harness.record(process.pid, "--mode=wall", seconds=4, rate=99)
        ran = scheduled_s(process.pid) - before
        assert run.stats["state_s"]["on CPU"] <= ran + 0.002, run.stats["state_s"]
