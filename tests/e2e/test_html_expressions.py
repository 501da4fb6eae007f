# SPDX-License-Identifier: Apache-2.0
"""The report's source view: which parts of lines were executed."""
import base64
import gzip
import json
import re
from collections import Counter, defaultdict

import pytest

import formats
import harness
import html_page
from browser import browse
from html_page import number, steps
from test_html_access import CONTRAST, LEAST

chromium = html_page.chromium  # a fixture
pytestmark = pytest.mark.usefixtures("profiler", "chromium")
TAB = "    "

# Expressions in one another, over several lines, behind wide characters and tabs. It works for some CPU time, so that there
# are as many samples on a machine that has little to give.
PROGRAM = """
import time

def inner(n):
\tif n:\treturn sum(range(n))

def outer(n):
\twörter = {"漢字": inner(n), "ü": (inner(n), inner(2 * n))}; return max(inner(n), inner(3 * n) +\tinner(n), key=lambda v: "漢😀" and -v)

def main():
    while time.process_time() < 2:
        [outer(500), outer(
            500
        ), inner(1000)]

main()
"""


@pytest.fixture(scope="module")
def saved(profiler, chromium, tmp_path_factory):
    """A folder with program.py, and its profile as report.pybpf and report.html."""
    folder = tmp_path_factory.mktemp("expressions")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    profile = folder / "report.pybpf"
    command = harness.default_python().argv
    run = harness.pybpf("--by=expression", "-F", 999, "-o", profile, "--", *command, "-B", folder / "program.py")
    assert run.code == 0, run.err
    html_page.report(profile, folder / "report.html")
    return folder


def executed(saved):
    """(first line, text) -> [(self, total), ...] of the expressions in program.py, by what the interpreter says of bytes."""
    lines = PROGRAM.encode().split(b"\n")
    sums = defaultdict(lambda: [0, 0])
    for stack, count in html_page.folded(html_page.report(saved / "report.pybpf", saved / "report.folded", "--by=expression")):
        spots = re.findall(r"\(program\.py:(\d+):(\d+)-(?:(\d+):)?(\d+)\)", ";".join(frame.text for frame in stack))
        leaf = re.search(r"\(program\.py:(\d+):(\d+)-(?:(\d+):)?(\d+)\)$", stack[-1].text)
        for spot in set(spots):
            line, column, end_line, end_column = [int(value or 0) for value in spot]
            if end_line:
                text = lines[line - 1][column - 1 :].decode() + " …"
            else:
                text = lines[line - 1][column - 1 : end_column].decode()
            pair = sums[line, text.replace("\t", TAB), spot]
            pair[0] += count if leaf and leaf.groups("") == spot else 0
            pair[1] += count
    found = {}
    for (line, text, _), pair in sums.items():
        found.setdefault((line, text), []).append(pair)
    return found


PARTS = """
  await page.goto(address + "#view=source&file=program.py");
  await page.waitForSelector(".rows .line code");
  await calm();
  return await page.locator(".rows .line").evaluateAll((rows) => rows.map((row) => [
    Number(row.querySelector("button").textContent),
    row.querySelector("code").textContent,
    [...row.querySelectorAll(".part")].map((part) => [part.textContent, part.title]),
  ]));
"""


def total(want, key):
    return max(pair[1] for pair in want[key])


def test_parts_are_what_was_executed(saved):
    """Each part names its innermost expression and that one's samples; the text of a line is as it was."""
    want, met = executed(saved), Counter()
    rows = browse(saved / "report.html", steps(PARTS), height=1000)
    assert [text for _, text, _ in rows] == [line.replace("\t", TAB) for line in PROGRAM.split("\n")]
    for line, text, parts in rows:
        at = 0
        for part, title in parts:
            at = text.index(part, at) + len(part)
            expression, counts = title.split("\n")
            sums = [number(word) for word in counts.split(", ", 1)]
            key = line, expression
            if key not in want:  # on a further line of it
                key = max((n, other) for n, other in want if n < line and other == expression)
            assert sums in want[key], (line, part, title)
            met[key] += 1
    # What is around others has the rest.
    assert ", " in [part for _, _, parts in rows for part, title in parts if title.startswith("max(inner(n)")]
    # An expression can only be missing where others cover all of it.
    hottest = sorted(want, key=lambda key: -total(want, key))[:6]
    assert set(hottest) <= set(met) and len(met) >= 8, (hottest, met)
    assert any("漢😀" in expression for _, expression in met) and any(TAB in expression for _, expression in met)
    # Its three lines, unless its argument was executing, too.
    call = next(key for key in want if key[1] == "outer( …")
    assert met[call] + met[call[0] + 1, "500"] == 3


def test_a_line_lists_its_expressions(saved):
    want = executed(saved)
    line = next(n for n, text in want if "inner(3 * n)" == text)
    told = browse(
        saved / "report.html",
        steps("""
  await page.goto(address + "#view=source&file=program.py&line=" + argument);
  return await page.locator("[data-testid=executed] li").allInnerTexts();
"""),
        line,
        width=400,
    )
    rows = [re.fullmatch(r"(.*?) (?:column (\d+), )?([\d.]+) % total, ([\d.]+) % self", row.replace("\xa0", " ")) for row in told]
    listed = [row.groups() for row in rows if row]
    expected = [pair for key in want if key[0] == line for pair in want[key]]
    repeated = [column for text, column, *_ in listed if text == "inner(n)"]
    assert None not in repeated and len(set(repeated)) == len(repeated) > 1
    assert len(listed) == min(12, len(expected)) and listed[0][0] == max((text for n, text in want if n == line), key=lambda text: total(want, (line, text)))


def test_numbers_are_shaded_in_their_own_line(saved):
    """Also on a phone, which has no room for a column."""
    heights = browse(
        saved / "report.html",
        steps("""
  await page.goto(address + "#view=source&file=program.py");
  await page.waitForSelector(".rows .line.apart");
  return await page.locator(".rows .line").evaluateAll((rows) => rows.flatMap((row) => [...row.children].map((cell) => cell.getBoundingClientRect().height - row.getBoundingClientRect().height)));
"""),
        width=400,
    )
    assert heights and max(heights) <= 0.5


def changed(page, path, change):
    """A copy of the page with other data."""
    data = formats.html_data(page)
    change(data)
    packed = base64.b64encode(gzip.compress(json.dumps(data).encode())).decode()
    text = page.read_text(encoding="utf-8")
    path.write_text(re.sub(r'(<script[^>]*id="data"[^>]*>)[^<]*', lambda m: m[1] + packed, text), encoding="utf-8")
    return path


@pytest.mark.parametrize("how", ["without columns", "other text", "shorter text"])
def test_no_marks(saved, how):
    """Where no columns were recorded, and where the text cannot be the one that ran."""

    def change(data):
        text = data["sources"]["text"][data["sources"]["file"].index(data["strings"].index("program.py"))]
        if how == "without columns":
            for column in ("end_line", "column", "end_column"):
                del data["frames"][column]
        elif how == "other text":
            data["strings"][text] = data["strings"][text].replace("inner(3 * n)", "inner( n)  ")
        else:
            data["strings"][text] = data["strings"][text][:200]

    rows = browse(changed(saved / "report.html", saved / "changed.html", change), steps(PARTS), height=1000)
    assert rows and not any(parts for _, _, parts in rows)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_parts_have_contrast(saved, dark):
    pairs = browse(
        saved / "report.html",
        steps(
            CONTRAST.replace("light([ground, ink]), light([ground])", "light([...ground, ink]), light(ground)")
            + """
  await page.goto(address + "#view=source&file=program.py");
  await page.waitForSelector(".part");
  const pairs = await page.evaluate(() => [...document.querySelectorAll(".part, .part span")].map((e) => {
    const part = e.closest(".part");
    return [getComputedStyle(e).color, getComputedStyle(part).backgroundColor, getComputedStyle(document.body).backgroundColor, e.textContent];
  }));
  const out = [];
  for (const [ink, part, ground, text] of pairs) out.push([await page.evaluate(contrast, [ink, [ground, part]]), text]);
  return out;
"""
        ),
        dark=dark,
    )
    assert len(pairs) > 10 and min(pairs)[0] >= LEAST, min(pairs)


def test_search_marks_within_parts(saved):
    told = browse(
        saved / "report.html",
        steps("""
  await page.goto(address + "#view=source&file=program.py&text=" + encodeURIComponent("max\\\\(inner"));
  await page.waitForSelector(".rows mark");
  return await page.locator(".rows .line").evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll("mark")].map((mark) => mark.textContent).join("")));
"""),
    )
    assert [text for text in told if text] == ["max(inner"]
