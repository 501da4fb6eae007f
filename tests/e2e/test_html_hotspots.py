# SPDX-License-Identifier: Apache-2.0
"""The HTML report's hotspots, of programs that wait or are in libraries: they are told by the program's own functions."""
import re

import pytest

import harness
import html_page
from browser import browse
from html_page import READY, report, steps

chromium = html_page.chromium  # fixture
pytestmark = pytest.mark.usefixtures("profiler", "chromium")


WAITS = """
import queue
def asks(q):
    for i in range(40):
        try:
            q.get(timeout=0.003 if i % 4 else 0.06)
        except queue.Empty:
            pass
asks(queue.Queue())
"""


def test_hotspots_of_waits_name_the_programs_own_function(tmp_path):
    program, profile = tmp_path / "asks.py", tmp_path / "asks.pybpf"
    program.write_text(WAITS)
    run = harness.pybpf("-q", "-o", profile, "--mode=wall", "--", *harness.default_python().argv, program)
    assert run.code == 0, run.err
    path = report(profile, tmp_path / "asks.html")
    told = browse(path, steps("""
  await page.goto(address + "#view=hot");
  await page.waitForSelector("[data-testid=hotspots]");
  const spot = page.locator("[data-testid=hotspots] > ol > li:has-text('[lock] in asks')");
  return { text: await spot.textContent(), lengths: await spot.locator("[data-testid=lengths]").getAttribute("aria-label") };
"""))
    assert re.search(r"% \[lock\] in asks asks\.py:3[\d.]* m?s of waiting: (\d+) waits, \d+ ms each on average, the longest \d+ ms\.", told["text"]), told
    assert "hottest line is 6" in told["text"] and "q.get(timeout=" in told["text"] and "Via Condition.wait (100 %)." in told["text"], told
    counts = [int(n) for n in re.findall(r": (\d+)", told["lengths"])]
    assert sum(counts) >= 40 and len(counts) > 2, told
    assert int(re.search(r"50 ms to 100 ms: (\d+)", told["lengths"]).group(1)) > 0, told


WORKS = """
import concurrent.futures, time
pool = concurrent.futures.ThreadPoolExecutor(2)
def asks():
    for _ in range(20):
        pool.submit(abs, 1).result()
        time.sleep(0.02)
asks()
"""


def test_waits_for_work_are_one_hotspot(tmp_path):
    program, profile = tmp_path / "works.py", tmp_path / "works.pybpf"
    program.write_text(WORKS)
    run = harness.pybpf("-q", "-o", profile, "--mode=wall", "--", *harness.default_python().argv, program)
    assert run.code == 0, run.err
    path = report(profile, tmp_path / "works.html")
    told = browse(path, steps("""
  const all = () => page.$$eval("[data-testid=hotspots] > ol > li", (all) => all.map((l) => l.textContent));
  await page.goto(address);
  %s
  const first = await page.$$eval("[data-testid=hottest] li", (all) => all.map((l) => l.textContent));
  await page.click("[data-testid=hottest] >> text=waiting for work");
  await page.waitForSelector("[data-testid=idle]");
  const folded = await all();
  await page.click("text=Show each");
  await page.waitForSelector("[data-testid=idle]", { state: "detached" });
  const each = await all();
  await page.click("text=Waits for work as one");
  await page.waitForSelector("[data-testid=idle]");
  return { first, folded, each, again: await all() };
""" % READY))
    assert told["first"][-1].endswith("% waiting for work"), told
    share = float(told["folded"][-1].split(" %")[0])
    assert re.match(r"[\d.]+ % Waiting for work[\d.]+ m?s of waiting: \d+ waits, ", told["folded"][-1]) and share > 10, told
    assert "In _worker (" in told["folded"][-1], told
    assert not any("[lock] in _worker" in words for words in told["folded"][:-1]), told
    assert any("[lock] in _worker" in words for words in told["each"]), told
    # A machine with much to do makes others than the worker wait for work, too.
    folded = [words for words in told["each"] if words not in told["folded"]]
    assert abs(sum(float(words.split(" %")[0].lstrip("<")) for words in folded) - share) < 0.1 * len(folded) + 0.1, told
    assert told["again"] == told["folded"] and "Waiting for work" not in "".join(told["each"]), told


SPAWNS = """
import os, time
def spawns():
    for _ in range(30):
        pid = os.fork()
        if not pid:
            time.sleep(0.05)
            os._exit(0)
        os.waitpid(pid, 0)
spawns()
"""


def test_waits_for_children_are_one_hotspot(tmp_path):
    program, profile = tmp_path / "spawns.py", tmp_path / "spawns.pybpf"
    program.write_text(SPAWNS)
    run = harness.pybpf("-q", "-o", profile, "--mode=wall", "--", *harness.default_python().argv, program)
    assert run.code == 0, run.err
    path = report(profile, tmp_path / "spawns.html")
    told = browse(path, steps("""
  await page.goto(address);
  %s
  const first = await page.$$eval("[data-testid=hottest] li", (all) => all.map((l) => l.textContent));
  await page.click("[data-testid=hottest] >> text=All hotspots");
  await page.waitForSelector("[data-testid=hotspots]");
  const all = await page.$$eval("[data-testid=hotspots] > ol > li", (all) => all.map((l) => l.textContent));
  await page.click("[data-testid=hotspots] > ol > li:has-text('processes]') >> text=Graph");
  await calm();
  return { first, all, q: await page.inputValue("input[type=search]") };
""" % READY))
    rows = [words for words in told["all"] if "[child" in words]
    found = re.match(r"[\d.]+ % \[child: (\d+) processes\] in spawns", rows[0])
    # Beside a load a child may have ended before it is waited for.
    assert len(rows) == 1 and found and int(found.group(1)) >= 10, told
    assert any("[child: %s processes]" % found.group(1) in words for words in told["first"]), told
    assert told["q"] == "^\\[child: \\d", told


def test_hotspots_of_libraries_name_the_programs_own_function(tmp_path):
    program, profile = tmp_path / "dumps.py", tmp_path / "dumps.pybpf"
    program.write_text("import json, time\ndef exports():\n    end = time.process_time() + 1\n    while time.process_time() < end: json.dumps([{'a': str(i)} for i in range(500)], indent=1)\nexports()\n")
    run = harness.pybpf("-q", "-F", 499, "-o", profile, "--", *harness.default_python().argv, program)
    assert run.code == 0, run.err
    path = report(profile, tmp_path / "dumps.html")
    told = browse(path, steps("""
  await page.goto(address);
  %s
  const first = await page.$$eval("[data-testid=hottest] li", (all) => all.map((l) => l.textContent));
  await page.click("[data-testid=hottest] >> text=All hotspots");
  await page.waitForSelector("[data-testid=hotspots]");
  return { first, all: await page.$$eval("[data-testid=hotspots] > ol > li", (all) => all.map((l) => l.textContent)) };
""" % READY))
    assert any("_iterencode" in words and "from exports" in words for words in told["first"]), told
    assert any("_iterencode" in words and "From the program's own exports (100 %)." in words for words in told["all"]), told
