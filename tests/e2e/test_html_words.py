# SPDX-License-Identifier: Apache-2.0
"""Reports of memory and of events are in their own words, and not in those of samples and of time; suspended tasks, too."""
import re

import pytest

import harness
import html_page
from browser import browse
from html_page import report, steps

chromium = html_page.chromium  # a fixture

# Holds some MiB at its end; each touch is a page fault, each line a write().
PROGRAM = """
import sys
def holds(n):
    return [bytearray(1 << 20) for _ in range(n)]
def writes(n):
    for _ in range(n):
        sys.stderr.write("")
        sys.stdout.write("x")
        sys.stdout.flush()
held = holds(24)
writes(200)
"""
KINDS = {
    "memory": (["--mode=memory"], r"[\d.]+ MiB of memory", r"Most memory was first touched in[\d.]+ % holds"),
    "faults": (["-e", "page-faults"], r"[\d,]+ page faults", r"Most page faults are in[\d.]+ % holds"),
    "hits": (
        ["-e", "tracepoint:syscalls:sys_enter_write"],
        r"\d+ hits of syscalls:sys_enter_write",
        r"Most hits of syscalls:sys_enter_write are in[\d.]+ % writes",
    ),
}
UNITS = {"memory": r"[\d.]+ (MiB|KiB|bytes)", "faults": r"[\d,]+ page faults?", "hits": r"[\d,]+ hits?"}
LOOK = """
  const out = {};
  const text = (selector) => page.$$eval(selector, (all) => all.map((e) => e.textContent).join(" "));
  for (const view of ["graph", "hot", "callers", "table", "source", "run"]) {
    await page.goto("about:blank");
    await page.goto(address + "#view=" + view);
    await page.waitForSelector("main > *");
    await calm();
    out[view] = await page.evaluate(() => document.querySelector("#app").innerText + [...document.querySelectorAll("[title]")].map((e) => e.title).join(" "));
  }
  out.summary = await text("[data-testid=summary]");
  out.threads = await text("[data-testid=threads] th");
  await page.goto("about:blank");
  await page.goto(address + "#q=holds|writes");
  await page.waitForSelector("[data-testid=matched] b");
  out.hottest = await text("[data-testid=hottest]");
  out.matched = await text("[data-testid=matched]");
  out.captions = await text(".caption");
  await page.focus(".host");
  for (let i = 0; i < 2; i++) await page.keyboard.press("ArrowDown");
  await page.waitForSelector("[data-testid=details]");
  out.details = await text("[data-testid=details]");
  return out;
"""


@pytest.mark.parametrize("kind", KINDS)
def test_their_own_words(chromium, tmp_path, kind):
    options, summary, hottest = KINDS[kind]
    (tmp_path / "words.py").write_text(PROGRAM, encoding="utf-8")
    saved = tmp_path / "words.pybpf"
    run = harness.pybpf("-q", "-o", saved, *options, "--", *harness.default_python().argv, tmp_path / "words.py")
    assert run.code == 0, run.err
    told = browse(report(saved, tmp_path / "words.html"), steps(LOOK))
    assert re.search(summary, told["summary"]), told["summary"]
    assert re.search(hottest, told["hottest"]), told["hottest"]
    assert re.search(r"^total[\d.]+ %%, %s" % UNITS[kind], told["details"].split("words.py")[-1].lstrip(":0123456789")), told["details"]
    what = {"memory": "memory", "faults": "page faults", "hits": "hits"}[kind]
    assert re.search(r"of all %s, %s$" % (what, UNITS[kind]), told["matched"]), told["matched"]
    assert what.capitalize() in told["threads"]
    if kind == "memory":
        assert told["captions"] == ""
    else:
        assert re.match(r"%s.* over time up to [\d,]+ a second" % what.capitalize(), told["captions"])
    for view, text in told.items():
        text = re.sub(r"Event\s+\S+", "", text) if view == "run" else text  # as -e has it
        found = re.search(r".*\b(samples?|thread-seconds|most time|memory-bytes|page-faults)\b.*", text)
        assert not found, (view, found.group())


NAPS = """
import asyncio
async def nap():
    await asyncio.sleep(1)
async def main():
    server = await asyncio.start_server(print, "127.0.0.1", 0)
    serving = asyncio.wait_for(server.serve_forever(), 1)
    await asyncio.gather(nap(), nap(), nap(), serving, return_exceptions=True)
asyncio.run(main())
"""
SUMMARY = """
  await page.goto(address);
  await page.waitForSelector("[data-testid=summary]");
  const summary = await page.$eval("[data-testid=summary]", (e) => e.textContent);
  await page.goto("about:blank");
  await page.goto(address + "#view=hot");
  await page.waitForSelector("[data-testid=hotspots]");
  return { summary, hot: await page.$$eval("[data-testid=hotspots] > ol > li", (all) => all.map((l) => l.textContent)) };
"""


ACCOUNT = """
  await page.goto(address + "#view=run");
  await page.waitForSelector("[data-testid=run]");
  return { titles: await page.$$eval(".account h3", (all) => all.map((h) => h.textContent)) };
"""


def test_suspended_tasks_are_no_threads(chromium, tmp_path):
    (tmp_path / "naps.py").write_text(NAPS, encoding="utf-8")
    saved = tmp_path / "naps.pybpf"
    command = [*harness.default_python().argv, tmp_path / "naps.py"]
    run = harness.pybpf("-q", "-o", saved, "--mode=wall", "--async=all", "--", *command)
    assert run.code == 0, run.err
    told = browse(report(saved, tmp_path / "naps.html"), steps(SUMMARY))
    threads, tasks = re.search(r"([\d.]+) thread-seconds, ([\d.]+) task-seconds of suspended tasks", told["summary"]).groups()
    assert float(tasks) > float(threads), told
    assert re.match(r"[\d.]+ % Suspended tasks that wait for work.*In (Server\.)?serve_forever ", told["hot"][-2]), told
    assert "Waiting for work" in told["hot"][-1], told
    # It is not known which part of the account belongs to what filters let pass.
    kept = report(saved, tmp_path / "kept.html", "--ignore", "^nap ")
    of_all, of_some = (browse(path, steps(ACCOUNT))["titles"] for path in (tmp_path / "naps.html", kept))
    assert "Processes" in of_all and "filters" not in " ".join(of_all), of_all
    assert {"Processes, without filters", "Left out", "Time of threads"} <= set(of_some), of_some
