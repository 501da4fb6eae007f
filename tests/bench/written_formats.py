# SPDX-License-Identifier: Apache-2.0
"""What it takes to load a saved profile and to write each format of it, and what a browser takes to draw the report."""

import json
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

import harness
import node_peers
from figures import Figure, Section, each, ratios

SAMPLES, STACKS, DEPTH = 1000000, 50000, 40
# They repeat each stack for each sample: gigabytes.
A_TENTH = ("chrometrace", "perf-script")
NOTHING = "pybpf"  # what is loaded and written again: the least that any format takes beside its own writing
SEARCH = "Handler1[0-9]\\."


def formats():
    """As --help lists them."""
    text = subprocess.run([harness.PYBPF, "record", "--help"], stdout=subprocess.PIPE, check=True, text=True).stdout
    listed = text.partition("--format FORMAT")[2].partition("--by WHAT")[0]
    return re.findall(r"^ {8}([a-z-]+) +\.", listed, re.M)


def written(saved, name, folder):
    """Seconds, MiB of memory at most, and MiB written."""
    out = folder / ("profile." + name)
    argv = [harness.PYBPF, "report", str(saved), "-f", name, "-o", str(out)]
    measure = "import os, subprocess, sys, time; t = time.monotonic(); p = subprocess.Popen(sys.argv[1:])\n"
    measure += "_, status, usage = os.wait4(p.pid, 0); print(time.monotonic() - t, usage.ru_maxrss, status)"
    done = subprocess.run(
        ["/usr/bin/python3", "-c", measure, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True
    )
    seconds, kib, status = done.stdout.split()[-3:]
    assert status == "0", "pybpf report -f %s failed: %s" % (name, done.stderr.strip()[-300:])
    return {"seconds": float(seconds), "memory": int(kib) / 1024, "size": out.stat().st_size / (1 << 20)}


PAGE = """
const { chromium } = require("playwright-core");
const [file, executablePath, search] = process.argv.slice(-3);
(async () => {
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  await page.goto("file://" + file);
  await page.waitForFunction(() => window.pybpf && window.pybpf.drawn_ms);
  const drawn = await page.evaluate(() => window.pybpf.drawn_ms);
  const searched = await page.evaluate((text) => window.pybpf.timeSearch(text), search);
  console.log(JSON.stringify({ drawn, searched }));
  await browser.close();
})();
"""


def drawn(page):
    """Milliseconds from the navigation's start to the first drawing, and from a search to its result."""
    return json.loads(node_peers.node(PAGE, page, node_peers.chromium(), SEARCH))


def measure(bench):
    made = os.path.join(harness.TOP, "build", "make-profile")
    writers, page = defaultdict(list), []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scale = 1 if bench.plan.rounds > 1 else 10
        numbers = SAMPLES // scale, STACKS // scale, DEPTH
        saved, tenth = folder / "saved.pybpf", folder / "tenth.pybpf"
        for path, samples in (saved, numbers[0]), (tenth, numbers[0] // 10):
            with open(path, "wb") as out:
                subprocess.run([made, str(samples), *map(str, numbers[1:])], stdout=out, check=True)
        try:
            node_peers.node_modules()
            node_peers.chromium()
        except node_peers.Missing as missing:
            bench.lack("the report in a browser", str(missing))
        names = formats()
        for _ in bench.rounds("formats"):
            for one in names:
                writers[one].append(bench.attempt("format " + one, written, tenth if one in A_TENTH else saved, one, folder))
            if not any(what == "the report in a browser" for what, _ in bench.missing):
                page.append(bench.attempt("the report in a browser", drawn, os.fspath(folder / "profile.html")))
    section = Section(
        "pybpf report on a saved profile of %s samples with their times, %s stacks of %s frames" % tuple(numbers),
        ["format", "seconds", "of pybpf's", "peak MiB", "MiB written"],
        notes=["of pybpf's: of the time that loading and saving it again takes, in the same round"],
    )
    base = each(writers[NOTHING], lambda one: one["seconds"])
    for one in names:
        seconds = each(writers[one], lambda result: result["seconds"])
        section.add(
            one + (", of a tenth of the samples" if one in A_TENTH else ""),
            Figure(seconds),
            Figure(ratios(seconds, base)),
            Figure(each(writers[one], lambda result: result["memory"]), 0, spread=False),
            Figure(each(writers[one], lambda result: result["size"]), 1, spread=False),
        )
    browser = Section("its HTML report in Chromium", ["what", "ms"])
    browser.add("from opening the file to the first drawing", Figure(each(page, lambda one: one["drawn"]), 0))
    browser.add("from a search to its result", Figure(each(page, lambda one: one["searched"]), 0))
    return [section, browser]
