# SPDX-License-Identifier: Apache-2.0
"""What formats with a timeline, and the static flame graph, say of real programs to their real readers.

A program is recorded once; every format is made of the saved profile, and holds the samples of the folded stacks.
"""

import json
import re
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from pathlib import Path

import pytest

import formats
import harness
import pythons
from firefox import firefox
from known import needs, node_peers, peers
from speedscope import assert_is_of_schema, evented_stacks, intervals, speedscope_app

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 199
FEWEST = 60  # samples of a recording that is to tell something
PERIOD_NS = 10**9 // RATE
SVG = "{http://www.w3.org/2000/svg}"
FORMATS = ("speedscope", "gecko", "chrometrace", "perf-script", "svg")
SUFFIX = {
    "speedscope": "speedscope.json",
    "gecko": "gecko.json",
    "chrometrace": "trace.json",
    "perf-script": "perf",
    "svg": "svg",
    "folded": "folded",
}


class Recording:
    """A saved profile, and what is made of it. It takes as long as the machine needs for so many samples."""

    def __init__(self, folder, pids, fewest=0):
        self.folder = Path(folder)
        self.saved = str(self.folder / "run.pybpf")
        for seconds in (1, 4, 16):
            run = harness.pybpf(
                "-p", ",".join(map(str, pids)), "-d", seconds, "-F", RATE, "--timestamps", "-o", self.saved
            )
            assert run.code == 0, run.err
            if self.samples() >= fewest:
                break

    def samples(self):
        return sum(sum(stacks.values()) for stacks in self.threads().values())

    def path(self, name, *args):
        path = self.folder / ("run." + SUFFIX[name])
        made = harness.pybpf("report", self.saved, "-o", path, *args)
        assert made.code == 0, made.err
        return path

    def text(self, name, *args):
        return self.path(name, *args).read_text(encoding="utf-8")

    def threads(self):
        """TID -> Counter of stacks, root first, of (name, file, line), of the folded output."""
        found = defaultdict(Counter)
        for (_, thread, *frames), count in harness.parse_all(self.text("folded", "--by", "process", "--threads")):
            # "name (TID)" reads like a function and its file.
            found[int(thread.file)][tuple((frame.name, frame.file, frame.line) for frame in frames)] += count
        return found


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    python = harness.default_python()
    with harness.target(python, "threads.py") as one, harness.target(python, "calls.py") as two:
        made = Recording(tmp_path_factory.mktemp("timeline"), [one.pid, two.pid], fewest=FEWEST)
    assert made.samples() >= FEWEST
    assert len(made.threads()) > 3
    return made


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    with harness.target(harness.default_python(), "names.py") as target:
        return Recording(tmp_path_factory.mktemp("hostile"), [target.pid], fewest=FEWEST)


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """A run of a program that sleeps."""
    script = "import time; print('{}', flush=True); time.sleep(60)"
    idle = [harness.default_python().command("spin.py")[0], "-c", script]
    with harness.started(idle, stdout=subprocess.PIPE) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        yield Recording(tmp_path_factory.mktemp("empty"), [process.pid])


def names_of(stacks):
    """Counter of (name of the leaf) of Counter of stacks."""
    leaves = Counter()
    for stack, count in stacks.items():
        leaves[stack[-1][0]] += count
    return leaves


# ------------------------------------------------------------------------------------------------ speedscope

def tid_of(profile):
    return int(profile["name"].rpartition("(")[2][:-1])


def test_speedscope(recording):
    """Its application shows at the time of each sample its stack, nothing where there is no sample, and the whole run."""
    (file,) = speedscope_app(recording.path("speedscope"))
    samples = defaultdict(list)
    for tid, time_ns, names in records_of(recording.text("perf-script")):
        samples[tid].append((time_ns, names))
    assert {tid_of(profile) for profile in file["profiles"]} == set(samples) == set(recording.threads())
    assert len({profile["endValue"] for profile in file["profiles"]}) == 1
    for profile in file["profiles"]:
        taken = samples[tid_of(profile)]
        assert profile["unit"] == "nanoseconds" and profile["startValue"] == 0
        shown = intervals(file, profile)
        for time_ns, names in taken:
            assert [[name for name, _, _ in stack] for begin, end, stack in shown if begin <= time_ns < end] == [names]
        # Each moment that is shown is at most one and a half periods behind a sample.
        times = [time_ns for time_ns, _ in taken]
        for begin, end, _ in shown:
            inside = [time_ns for time_ns in times if begin <= time_ns < end] + [end]
            assert inside[0] == begin
            assert max(b - a for a, b in zip(inside, inside[1:])) <= 1.5 * PERIOD_NS
        assert set(evented_stacks(file, profile)) == set(recording.threads()[tid_of(profile)])


BURSTS = """
import json, time
took = []
def burst(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def scattered():
    for _ in range(16):
        begin = time.monotonic()
        burst(0.02)
        took.append(time.monotonic() - begin)
        time.sleep(0.1)
scattered()
print(json.dumps(took))
"""


def test_speedscope_shows_gaps(tmp_path):
    """16 bursts of 20 ms in 2 s are bursts in 2 s, and not one block of 320 ms."""
    script = tmp_path / "bursts.py"
    script.write_text(BURSTS, encoding="utf-8")
    path = tmp_path / "bursts.speedscope.json"
    begin = time.monotonic()
    run = harness.pybpf("-F", RATE, "-o", path, "--", *harness.default_python().argv, script)
    took_s = time.monotonic() - begin
    assert run.code == 0, run.err
    (file,) = speedscope_app(path)
    (profile,) = file["profiles"]
    shown = [(start, end) for start, end, stack in intervals(file, profile) if stack[-1][0] == "burst"]
    # The sleeps between the bursts; a burst may be met by no sample. What is drawn of one is no longer than it was.
    bursts_s = json.loads(run.out)
    assert 12 <= sum(after - end >= 0.08e9 for (_, end), (after, _) in zip(shown, shown[1:]))
    assert sum(end - begin for begin, end in shown) <= sum(bursts_s) * 1e9 + 16 * PERIOD_NS
    assert 15 * 0.1 < (shown[-1][1] - shown[0][0]) / 1e9 < took_s
    assert 16 * 0.1 < (profile["endValue"] - profile["startValue"]) / 1e9 <= took_s
    # The CPU time is that of the samples, as near as the timer is exact.
    spent = sum(evented_stacks(file, profile).values())
    taken = int(run.err.split(" with Python frames")[0].split()[-1])
    assert spent == pytest.approx(taken * PERIOD_NS, rel=0.2)


@pytest.mark.parametrize("which", ["recording", "hostile", "empty"])
def test_speedscope_schema(which, request):
    assert_is_of_schema(request.getfixturevalue(which).path("speedscope"))


# ------------------------------------------------------------------------------------------------ Firefox Profiler


def assert_self(found, wanted):
    """Self samples of each thread's functions."""
    assert {tid: leaves for tid, (_, _, leaves, _) in found.items()} == {
        str(tid): names_of(stacks) for tid, stacks in wanted.items()
    }


def test_gecko(recording, tmp_path):
    with firefox(recording.path("gecko"), tmp_path) as session:
        found = session.threads()
        assert_self(found, recording.threads())
        assert {name for name, _, _, _ in found.values()} >= {"worker one", "worker;two", "worker-three"}
        info = session.ask("profile", "info", "--all")
        meta = session.ask("profile", "meta")
    assert meta["product"] == "pybpf"
    assert meta["interval"] == pytest.approx(1000 / RATE, rel=1e-5)
    assert len(info["processes"]) == 2


def test_gecko_libraries(tmp_path):
    """Firefox Profiler has the library of compiled code, and none of Python's functions."""
    path = formats.report(formats.made(tmp_path) / "compiled.pybpf", ".gecko.json")
    with firefox(path, tmp_path / "session") as session:
        (thread,) = session.ask("thread", "list", "--limit", 0)["threads"]
        functions = session.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", 0)["functions"]
    self = {function["nameWithLibrary"]: function["selfSamples"] for function in functions}
    assert sum(count for name, count in self.items() if name.startswith("libopenblas.so.0!")) == 41
    assert self["python3.12!list_sort_impl"] == 6 and self["[vdso]"] == 2 and self["fit"] == 30


def test_gecko_lines(recording):
    """Lines of frames, which the command line does not list, by the tables."""
    file = json.loads(recording.text("gecko"))
    shared = file["shared"]
    frames, functions, stacks = shared["frameTable"], shared["funcTable"], shared["stackTable"]

    def frame(index):
        function = frames["func"][index]
        name = shared["stringArray"][functions["name"][function]]
        source = shared["stringArray"][shared["sources"]["filename"][functions["source"][function]]]
        return name, source, frames["line"][index]

    wanted = recording.threads()
    for thread in file["threads"]:
        seen = Counter()
        samples = thread["samples"]
        for stack, weight in zip(samples["stack"], samples["weight"]):
            path = []
            while stack is not None:
                path.append(frame(stacks["frame"][stack]))
                stack = stacks["prefix"][stack]
            if path:
                seen[tuple(reversed(path))] += weight
        assert seen == wanted[thread["tid"]]


def test_perf_script(recording, tmp_path):
    """Firefox Profiler reads perf script's text: as many samples for each thread's functions."""
    with firefox(recording.path("perf-script"), tmp_path) as session:
        found = session.threads()
    for tid, (name, process, functions, handle) in found.items():
        leaves = Counter()
        for function, count in functions.items():
            leaves[without_file(function)] += count
        found[tid] = name, process, leaves, handle
    assert_self(found, recording.threads())


NAMESAKES = """
import sys, time
sys.path.insert(0, "FOLDER")
import other
def spin(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
class One:
    def run(self):
        spin(SECONDS)
        other.burn(SECONDS)
        spin(SECONDS)
run_one = One().run
class Two:
    def run(self):
        spin(SECONDS)
run_one()
Two().run()
other.run(spin, SECONDS)
"""
OTHER = """
import time
def burn(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
def run(spin, seconds):
    spin(seconds)
"""


def test_perf_script_tells_namesakes_apart(tmp_path):
    """gprof2dot has a node for each function, also where functions of one or of two files have the same name."""
    reader = needs(peers.readers) / "gprof2dot"
    (tmp_path / "other.py").write_text(OTHER, encoding="utf-8")
    script = tmp_path / "app.py"
    script.write_text(NAMESAKES.replace("FOLDER", str(tmp_path)).replace("SECONDS", "0.3"), encoding="utf-8")
    # 3.10: names are not qualified, so that the methods are two functions named run in one file.
    python = pythons.one(name="pyenv-3.10.13")
    if not python:
        pytest.skip("there is no Python 3.10.13 of pyenv's")
    path = tmp_path / "run.perf"
    run = harness.pybpf("-F", RATE, "-o", path, "--", *python.argv, script)
    assert run.code == 0, run.err
    made = subprocess.run(
        [reader, "-f", "perf", "-n0", "-e0", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True
    )
    nodes = re.findall(r'^\t"(.*?)" \[.*label="(.*?)"\]', made.stdout, re.M)
    shares = {}
    for name, label in nodes:
        if "->" not in name:
            shares[name] = float(re.search(r"\\n([\d.]+)%", label).group(1))
    source = script.read_text(encoding="utf-8").splitlines()
    first, second = [number for number, line in enumerate(source, 1) if "def run" in line]
    runs = {name: share for name, share in shares.items() if name.startswith("run")}
    both = {"run [app.py:%d]:app.py" % first: 60, "run [app.py:%d]:app.py" % second: 20, "run [other.py]:other.py": 20}
    # 0.9 s, 0.3 s and 0.3 s of 1.5 s. Each is one node, whatever its lines.
    assert runs == {name: pytest.approx(share, abs=12) for name, share in both.items()}
    assert [name for name in shares if name.startswith("spin")] == ["spin:app.py"]


# ------------------------------------------------------------------------------------------------ trace events


def without_file(name):
    """The name without the file that tells functions of the same name apart."""
    return re.sub(r" \[[^ ]*\.py(:\d+)?\]$", "", name)


def records_of(text):
    """(tid, time in nanoseconds, names of the stack, root first) of perf script's text."""
    for record in text.split("\n\n"):
        head, *frames = [line for line in record.split("\n") if not line.startswith("#")] or [""]
        if not head:
            continue
        words = head.split()
        assert words[-1] == "cpu-clock:" and int(words[-2]) == PERIOD_NS
        seconds, _, nanoseconds = words[-3].rstrip(":").partition(".")
        names = [without_file(line.strip().partition(" ")[2].rpartition(" (")[0]) for line in frames]
        tid = int(head.split("/")[1].split()[0])
        yield tid, int(seconds) * 10**9 + int(nanoseconds), names[::-1]


def slices_of(trace):
    """TID -> [(begin, end, name)] in microseconds, in the order of the file."""
    found = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "X":
            found[event["tid"]].append((event["ts"], event["ts"] + event["dur"], event["name"]))
    return found


def test_chrometrace(recording):
    """At the time of each sample, the slices that are open are its stack; no others are ever open."""
    slices = slices_of(json.loads(recording.text("chrometrace")))
    samples = defaultdict(list)
    for tid, time_ns, names in records_of(recording.text("perf-script")):
        samples[tid].append((time_ns // 1000, names))
    assert set(slices) == set(samples) == set(recording.threads())
    for tid, taken in samples.items():
        # Depth is the order of the file: what encloses stands before what it encloses.
        for begin, end, _ in slices[tid]:
            assert begin < end
        for time_us, names in taken:
            assert [name for begin, end, name in slices[tid] if begin <= time_us < end] == names
        for (begin, end, _), (after, after_end, _) in zip(slices[tid], slices[tid][1:]):
            assert begin <= after and (after >= end or after_end <= end)
        times = [time_us for time_us, _ in taken]
        # Each moment of a slice is at most one and a half periods behind a sample.
        for begin, end, _ in slices[tid]:
            inside = [time_us for time_us in times if begin <= time_us < end] + [end]
            assert inside[0] == begin
            assert max(b - a for a, b in zip(inside, inside[1:])) <= 1.5 * PERIOD_NS / 1000 + 1


def test_chrometrace_in_firefox_and_speedscope(recording, tmp_path):
    """Both read it: every thread, under its name."""
    path = recording.path("chrometrace")
    slices = slices_of(json.loads(path.read_text()))
    with firefox(path, tmp_path) as session:
        threads = session.ask("thread", "list", "--limit", 0)["threads"]
    # It takes slices for markers.
    assert {int(thread["tid"].rpartition(":")[2]): thread["markerCount"] for thread in threads} == {
        tid: len(found) for tid, found in slices.items()
    }
    (file,) = speedscope_app(path)
    for profile in file["profiles"]:
        tid = int(profile["name"].rpartition("tid ")[2].rstrip(")"))
        wanted = sum(end - begin for begin, end, _ in slices.pop(tid))
        found = sum(len(stack) * value for stack, value in evented_stacks(file, profile).items())
        assert found == pytest.approx(wanted, rel=1e-6)
    assert not slices


# ------------------------------------------------------------------------------------------------ SVG

DRAWN = r"""
const {chromium} = require('playwright-core');
const fs = require('fs');
const [program, file] = process.argv.slice(1);
(async () => {
    const browser = await chromium.launch({executablePath: program, args: ['--no-sandbox', '--disable-gpu']});
    const page = await browser.newPage({viewport: {width: 1200, height: 800}});
    const errors = [];
    page.on('pageerror', error => errors.push(error.message));
    page.on('dialog', dialog => { errors.push('dialog'); dialog.dismiss(); });
    const results = {};
    for (const scheme of ['light', 'dark']) {
        await page.emulateMedia({colorScheme: scheme});
        await page.goto('file://' + file);
        results[scheme] = await page.evaluate(() => {
            const shown = [...document.querySelectorAll('g')].map(g => {
                const rect = g.querySelector('rect').getBBox(), text = g.querySelector('text');
                const box = text && text.getBBox();
                return {title: g.querySelector('title').textContent, x: rect.x, y: rect.y, width: rect.width,
                        fill: getComputedStyle(g.querySelector('rect')).fill,
                        text: text && text.textContent, textX: box && box.x, textWidth: box && box.width,
                        ink: text && getComputedStyle(text).fill};
            });
            return {root: document.documentElement.tagName, scripts: document.querySelectorAll('script').length, shown};
        });
    }
    await browser.close();
    console.log(JSON.stringify({errors, ...results}));
})().catch(error => { console.error(error); process.exit(1); });
"""


def luminance(color):
    """Relative luminance of "rgb(r, g, b)", as WCAG 2 defines it."""
    parts = [int(part) / 255 for part in color[4:-1].split(",")[:3]]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, two):
    brighter, darker = sorted((luminance(one), luminance(two)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("which", ["recording", "hostile"])
def test_svg_in_chromium(which, request):
    """It is drawn in both themes: names lie inside of their frames, and can be read on them."""
    chromium = needs(node_peers.chromium)
    path = request.getfixturevalue(which).path("svg")
    result = json.loads(node_peers.node(DRAWN, chromium, path))
    assert result["errors"] == []
    for scheme in ("light", "dark"):
        assert result[scheme]["root"] == "svg"
        assert result[scheme]["scripts"] == 0
        shown = result[scheme]["shown"]
        assert len(shown) > 3
        for frame in shown:
            assert 12 - 0.1 <= frame["x"] and frame["x"] + frame["width"] <= 1188 + 0.1
            if frame["text"]:
                assert frame["textX"] + frame["textWidth"] <= frame["x"] + frame["width"] + 0.5, frame
                # WCAG 2's level AA for text.
                assert contrast(frame["fill"], frame["ink"]) >= 4.5, (scheme, frame)
    assert result["light"]["shown"][0]["fill"] != result["dark"]["shown"][0]["fill"]


def tooltips(root):
    """(first line, value, own value) of each frame that is drawn."""
    for group in root.iter(SVG + "g"):
        lines = group.find(SVG + "title").text.split("\n")
        words = lines[-1].split()
        assert words[1] in ("sample", "samples"), lines
        own = lines[-1].split(", ")[1].split()[0]
        yield lines[0], int(words[0]), int(own)


def test_svg_totals(recording):
    """Own values of all frames are the folded output's samples; so is the whole."""
    root = ElementTree.fromstring(recording.text("svg", "--threads"))
    threads = recording.threads()
    leaves, total = Counter(), 0
    for name, value, own in tooltips(root):
        total = total or value
        leaves["<module>" if name.startswith("<module> ") else name] += own  # with its file
    wanted = Counter()
    for stacks in threads.values():
        wanted += names_of(stacks)
    assert total == sum(wanted.values())
    # Nothing is as rare as to be left out here.
    assert +leaves == wanted


# ------------------------------------------------------------------------------------------------ names, nothing


def test_hostile_names(hostile, tmp_path):
    """Every format stays whole, and every sample is found again, whatever functions and files are called."""
    total = sum(sum(stacks.values()) for stacks in hostile.threads().values())
    assert total > 20
    (file,) = speedscope_app(hostile.path("speedscope"))
    shown = set().union(*(evented_stacks(file, profile) for profile in file["profiles"]))
    assert len(shown) == len(set().union(*hostile.threads().values()))
    for name in ("gecko", "perf-script"):
        with firefox(hostile.path(name), tmp_path / name) as session:
            assert sum(sum(leaves.values()) for _, _, leaves, _ in session.threads().values()) == total
    assert len(list(records_of(hostile.text("perf-script")))) == total
    with firefox(hostile.path("chrometrace"), tmp_path / "trace") as session:
        assert session.ask("thread", "list")["threads"]
    root = ElementTree.fromstring(hostile.text("svg"))
    assert next(tooltips(root))[1] == total


def test_empty(empty, tmp_path):
    """A profile of nothing is a file that its readers take, and that says what it is where it can."""
    (file,) = speedscope_app(empty.path("speedscope"))
    assert [profile["name"] for profile in file["profiles"]] == ["no samples with Python frames"]
    gecko = json.loads(empty.text("gecko"))
    assert [thread["name"] for thread in gecko["threads"]] == ["no samples with Python frames"]
    events = json.loads(empty.text("chrometrace"))["traceEvents"]
    assert [event["name"] for event in events] == ["no samples with Python frames"]
    assert "no samples with Python frames" in empty.text("perf-script")
    root = ElementTree.fromstring(empty.text("svg"))
    assert "No samples with Python frames." in [text.text for text in root.iter(SVG + "text")]
    assert not list(root.iter(SVG + "rect"))
    needs(node_peers.node_modules)
    with firefox(empty.path("gecko"), tmp_path) as session:
        assert session.ask("profile", "meta")["product"] == "pybpf"
        assert [name for name, _, _, _ in session.threads().values()] == ["no samples with Python frames"]


@pytest.mark.parametrize("name", FORMATS)
def test_without_times(name, tmp_path):
    """Samples without times are not given any, and are not lost."""
    with harness.target(harness.default_python(), "spin.py") as target:
        path = tmp_path / ("run." + SUFFIX[name])
        run = harness.pybpf("-p", target.pid, "-d", 1, "-F", RATE, "--no-timestamps", "-o", path)
    assert run.code == 0, run.err
    text = path.read_text(encoding="utf-8")
    taken = int(run.err.split(" taken")[0].split()[-1])
    assert taken > 0
    if name == "speedscope":
        assert sum(sum(profile["weights"]) for profile in json.loads(text)["profiles"]) == taken * PERIOD_NS
    elif name == "gecko":
        samples = [thread["samples"] for thread in json.loads(text)["threads"]]
        assert sum(sum(table["weight"]) for table in samples) == taken
        assert {time for table in samples for time in table["time"]} == {0}
    elif name == "chrometrace":
        events = json.loads(text)["traceEvents"]
        assert not [event for event in events if event["ph"] == "X"]
        assert sum(event["args"]["samples"] for event in events if event["ph"] == "i") == taken
    elif name == "perf-script":
        heads = [line for line in text.split("\n") if line and line[0] not in "\t#"]
        assert sum(int(line.split()[-2]) for line in heads) == taken * PERIOD_NS
        assert "times are not known" in text
    else:
        assert next(tooltips(ElementTree.fromstring(text)))[1] == taken
