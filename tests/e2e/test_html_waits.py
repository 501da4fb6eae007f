# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a profile of waits: how long they were, which of the program's own functions wait, what threads did."""
import re

import pytest

import harness
import html_page
from browser import browse
from html_page import report, steps

chromium = html_page.chromium  # a fixture

LENGTHS = (0.0015, 0.003, 0.007, 0.013, 0.025, 0.06, 0.12)  # a bucket each
WAITS = """
import queue, threading, time
def asks(q):
    for seconds in %r * 3:
        try:
            q.get(timeout=seconds)
        except queue.Empty:
            pass
def rests():
    for _ in range(20):
        time.sleep(0.05)
thread = threading.Thread(target=rests, name="rester")
thread.start()
asks(queue.Queue())
thread.join()
""" % (LENGTHS,)


@pytest.fixture(scope="module")
def page(profiler, chromium, tmp_path_factory):
    folder = tmp_path_factory.mktemp("waits")
    program, profile = folder / "asks.py", folder / "asks.pybpf"
    program.write_text(WAITS)
    run = harness.pybpf("-q", "-o", profile, "--mode=wall", "--", *harness.default_python().argv, program)
    assert run.code == 0, run.err
    return report(profile, folder / "asks.html")


@pytest.mark.parametrize("width", [400, 700, 1400])
def test_no_words_of_a_histogram_overlap(page, width):
    told = browse(page, steps("""
  await page.goto(address + "#view=hot");
  await page.waitForSelector("[data-testid=lengths]");
  return page.$$eval("[data-testid=lengths]", (all) => all.map((lengths) => ({
    right: lengths.parentElement.getBoundingClientRect().right,
    words: [...lengths.querySelectorAll("b, small")].filter((e) => e.textContent).map((e) => {
      const range = document.createRange();
      range.selectNodeContents(e);
      const { left, right, top, bottom } = range.getBoundingClientRect();
      return [left, right, top, bottom];
    }),
  })));
"""), width=width)
    assert max(len(lengths["words"]) for lengths in told) > 2 * 5, "several bars"
    for lengths in told:
        boxes = lengths["words"]
        assert all(box[1] <= lengths["right"] + 1 for box in boxes), lengths
        for i, (left, right, top, bottom) in enumerate(boxes):
            for other in boxes[:i]:
                apart = right <= other[0] + 0.5 or other[1] <= left + 0.5 or bottom <= other[2] + 1 or other[3] <= top + 1
                assert apart, (width, boxes[i], other)


def test_states_name_the_programs_own_function(page):
    """As the hotspots and --by=state do: Condition.wait() is beside who called it."""
    told = browse(page, steps("""
  const rows = () => page.$$eval("[data-testid='state table'] .rows .row", (all) => all.map((row) => row.lastChild.textContent.trim()));
  await page.goto(address + "#view=states");
  await page.waitForSelector("[data-testid='state table'] .rows .row");
  const own = await rows();
  await page.fill("input[type=search]", "Condition.wait");
  await page.waitForFunction((count) => document.querySelectorAll("[data-testid='state table'] .rows .row").length < count, own.length);
  const found = await rows();
  await page.fill("input[type=search]", "");
  await page.selectOption("[aria-label=Time]", "total");
  await page.waitForFunction(() => /Total/.test(document.querySelector("[data-testid='state table'] .head").textContent));
  return { own, found, total: await rows() };
"""))
    assert any(re.match(r"asks asks\.py:3 via Condition\.wait", row) for row in told["own"]), told
    assert any(re.match(r"rests asks\.py:\d+$", row) for row in told["own"]), told
    assert not any(row.startswith("Condition.wait") for row in told["own"]), told
    assert told["found"] and all("Condition.wait" in row for row in told["found"]), told
    assert any(row.startswith("Condition.wait") for row in told["total"]) and not any(" via " in row for row in told["total"]), told


@pytest.mark.parametrize("width", [400, 1400])
def test_the_run_tells_what_each_thread_did(page, width):
    told = browse(page, steps("""
  await page.goto(address + "#view=run");
  await page.waitForSelector("[data-testid=threads]");
  const widths = await page.$$eval("[data-testid=threads] tr > *", (all) => all.map((cell) => cell.getBoundingClientRect().width));
  const rows = await page.$$eval("[data-testid=threads] tr", (all) => all.map((row) => [...row.cells].map((cell) => cell.textContent)));
  return { rows, narrowest: Math.min(...widths), text: await page.textContent("[data-testid=run]") };
"""), width=width)
    assert "What each thread did" in told["text"] and "Time by thread" not in told["text"]
    head, *rows = told["rows"]
    assert head[:4] == ["Process", "Thread", "Time", "on CPU"] and {"sleep", "lock"} <= set(head) and "Share" not in head, head
    rester = next(row for row in rows if row[1].startswith("rester"))
    shares = {name: float(text.strip("<% ") or 0) for name, text in zip(head[3:], rester[3:])}
    assert shares["sleep"] > 40 and sum(shares.values()) == pytest.approx(100, abs=0.2), rester
    main = next(row for row in rows if row is not rester)
    assert float(dict(zip(head, main))["lock"].strip("<% ")) > 30, main
    assert told["narrowest"] > 30, "no column of single letters"


CROWD = """
import threading, time
threads = [threading.Thread(target=time.sleep, args=(1,)) for _ in range(30)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_many_groups_can_be_shown_as_one(profiler, chromium, tmp_path):
    """Side by side they are too narrow for names."""
    program, profile = tmp_path / "crowd.py", tmp_path / "crowd.pybpf"
    program.write_text(CROWD)
    run = harness.pybpf("-q", "-t", "-o", profile, "--mode=wall", "--", *harness.default_python().argv, program)
    assert run.code == 0, run.err
    told = browse(report(profile, tmp_path / "crowd.html"), steps("""
  const groups = () => page.evaluate(() => document.querySelector(".host").flame.tree.key.filter((key, i) => i && key < 0).length);
  await page.goto(address + "#roots=process,thread");
  await page.waitForSelector("[data-testid=crowd]");
  const before = await groups(), words = await page.textContent("[data-testid=crowd]");
  await page.click("[data-testid=crowd] button");
  await page.waitForSelector("[data-testid=crowd]", { state: "detached" });
  return { before, words, after: await groups() };
"""))
    assert told["before"] == 32 and told["after"] == 0, told
    assert told["words"].startswith("31 groups side by side, by process, then thread."), told
