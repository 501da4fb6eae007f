# SPDX-License-Identifier: Apache-2.0
"""Compiled code in the HTML report: its colours, its files, and what has no source. The sums are those of made_profiles.c."""
import re

import pytest

import formats
import html_page
from browser import browse
from html_page import READY, report, steps
from test_html_access import CONTRAST, LEAST, axe

chromium = html_page.chromium  # a fixture

NUMPY = "_multiarray_umath.cpython-312-x86_64-linux-gnu.so"
# What its functions took themselves, in percent, what kind of code it is, and what called it most.
FILES = [
    ("libopenblas.so.0", 41, "library", "fit model.py:80 (73.2 %) and 1 more"),
    (NUMPY, 7, "extension module", "fit model.py:80 (100 %)"),
    ("python3.12", 6, "interpreter", "load model.py:26 (100 %)"),
    ("uwsgi", 4, "interpreter", "load model.py:18 (100 %)"),
    ("in no file", 2, "", "load model.py:20 (100 %)"),
]
CODES = {"Python": 35, "extension module": 7, "library": 43, "interpreter": 10, "kernel": 5}


@pytest.fixture(scope="module")
def page(tmp_path_factory, chromium):
    folder = formats.made(tmp_path_factory.mktemp("made"))
    return report(folder / "compiled.pybpf", folder / "compiled.html")


def percent(text):
    return float(re.match(r"([\d.]+) %", text).group(1))


def test_files_by_what_they_took(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address + "#view=hot");
  await page.waitForSelector("[data-testid=compiled]");
  const table = "[data-testid=compiled] ";
  const out = {
    lead: await page.textContent(table + ".lead"),
    rows: await page.$$eval(table + "tbody tr", (all) => all.map((row) => [...row.children].map((cell) => cell.innerText.trim()))),
    sources: await page.$$eval(".hotspots li", (all) => all.filter((one) => one.innerText.includes("Source")).map((one) => one.querySelector(".named b").textContent)),
  };
  await page.click(table + "tbody button >> nth=1");
  await page.waitForFunction(() => document.querySelector("main").dataset.view === "graph");
  out.caller = await page.textContent(".chip.on");
  await page.goto("about:blank");
  await page.goto(address + "#view=hot");
  await page.click(table + "tbody button");
  await page.waitForSelector("[data-testid=matched] b");
  out.file = await page.textContent("[data-testid=matched]");
  return out;
"""
        ),
    )
    assert percent(told["lead"]) == 60
    assert [(row[1], percent(row[0]), *row[2:]) for row in told["rows"]] == FILES
    assert sum(percent(row[0]) for row in told["rows"]) == percent(told["lead"])
    assert set(told["sources"]) == {"fit", "load"}
    assert told["caller"].startswith("fit")
    assert "46" in told["file"], "41 samples in it and 5 in the kernel on top of it"


def test_a_profile_of_python_has_no_such_table(page):
    recursive = report(page.with_name("recursive.pybpf"), page.with_name("recursive.html"))
    look = steps(
        """
  await page.goto(address + "#view=hot");
  await page.waitForSelector("[data-testid=hotspots]");
  return page.$$eval("[data-testid=compiled]", (all) => all.length);
"""
    )
    assert browse(page, look) == 1 and browse(recursive, look) == 0


def test_functions_with_lines_are_in_their_library(page):
    """And not in their source, which another library may have, too."""
    lines = report(page.with_name("lines.pybpf"), page.with_name("lines.html"))
    look = steps(
        """
  await page.goto(address + "#view=hot");
  await page.waitForSelector("[data-testid=compiled]");
  return page.$$eval("[data-testid=compiled] tbody tr", (all) => all.map((row) => [...row.children].slice(0, 3).map((cell) => cell.innerText.trim())));
"""
    )
    told = [(name, percent(self), code) for self, name, code in browse(lines, look)]
    assert told == [("libz.so.1", 70, "library"), ("libother.so", 30, "library")]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_by_kind_of_code(page, dark):
    told = browse(
        page,
        steps(
            CONTRAST
            + """
  await page.goto(address + "#color=kind");
  %s
  await calm();
  const chips = await page.$$eval("[data-testid=codes] .chip", (all) => all.map((chip) => [chip.childNodes[0].textContent.trim(), chip.querySelector("small").textContent, getComputedStyle(chip).color, getComputedStyle(chip).backgroundColor]));
  const boxes = await page.evaluate(() => {
    const { tree, look } = document.querySelector(".host").flame;
    return Array.from(tree.key, (key, i) => [key < 0 ? "all" : `${tree.keys.name[key]} ${tree.keys.file[key]}`, look.fill(i), look.ink(i)]);
  });
  const least = [];
  for (const [, , ink, ground] of chips) least.push(await page.evaluate(contrast, [ink, ground]));
  for (const [, fill, ink] of boxes) least.push(await page.evaluate(contrast, [ink, fill]));
  await page.evaluate(argument);
  await page.focus(".host");
  const hear = {};
  for (let i = 0; i < 7; i++) {
    await page.keyboard.press("ArrowDown");
    await page.waitForSelector("[data-testid=details]");
    hear[await page.textContent("[data-testid=details] .who b")] = [await page.textContent("[data-testid=details] .facts"), await page.isVisible("[data-testid=details] >> text=Source")];
  }
  const faults = (await page.evaluate(() => axe.run(document))).violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => v.id);
  return { chips, boxes, least, hear, faults };
"""
            % READY
        ),
        argument=axe(),
        dark=dark,
    )
    assert {name: percent(share) for name, share, *_ in told["chips"]} == CODES
    assert min(told["least"]) >= LEAST
    assert told["faults"] == []
    # A colour is of one kind; functions of one kind differ in lightness alone.
    fills = dict((name, re.search(r"([\d.]+)\)$", fill).group(1)) for name, fill, _ in told["boxes"] if "oklch" in fill)
    assert fills["fit model.py"] == fills["solve numpy/linalg/_linalg.py"]
    assert fills["list_sort_impl python3.12"] == fills["[CPython] uwsgi"]
    different = ["fit model.py", "ufunc_generic_fastcall " + NUMPY, "dgemm_ libopenblas.so.0", "[CPython] uwsgi", "do_syscall_64_[k] "]
    assert len({fills[name] for name in different}) == len(CODES)
    # The words are there, too.
    assert "codelibrary" in told["hear"]["dgemm_"][0] and "codeextension module" in told["hear"]["ufunc_generic_fastcall"][0]
    assert "code" not in told["hear"]["fit"][0]
    assert told["hear"]["fit"][1] and not told["hear"]["dgemm_"][1], "what has no source leads to none"


def test_compiled_code_has_no_source(page):
    told = browse(
        page,
        steps(
            """
  const out = [];
  for (const file of ["", "libopenblas.so.0"]) {
    await page.goto("about:blank");
    await page.goto(address + "#view=source&file=" + file);
    await page.waitForSelector("[data-testid=sources]");
    out.push([await page.textContent("[data-testid=sources] .chosen .file"), await page.$$eval("[data-testid='no source']", (all) => all.map((p) => p.innerText)), await page.$$eval("[data-testid=code]", (all) => all.length)]);
  }
  await page.click("[data-testid='no source'] button");
  await page.waitForSelector("[data-testid=table]");
  out.push(await page.$$eval("[data-testid=table] .rows .name b", (all) => all.map((b) => b.textContent)));
  return out;
"""
        ),
    )
    assert told[0] == ["model.py", [], 1], "a file of Python is what is shown first"
    name, sentences, code = told[1]
    assert name == "libopenblas.so.0" and code == 0 and "is compiled code" in sentences[0]
    assert told[2] == ["dgemm_", "[libopenblas.so.0+0x4711]", "blas_thread_server"]


def test_callers_and_callees_of_compiled_code(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const key = await page.evaluate(() => document.querySelector(".host").flame.tree.keys.name.indexOf("dgemm_"));
  await page.goto(address + "#view=callers&fn=" + key);
  await page.waitForSelector("[data-testid=callees] .host");
  return page.evaluate(() => [...document.querySelectorAll(".callers .host")].map(({ flame: { tree } }) => Array.from(tree.key, (k, i) => [k < 0 ? "all" : tree.keys.name[k], tree.total[i]])));
"""
            % READY
        ),
    )
    callers, callees = map(dict, told)
    assert (callers["dgemm_"], callers["ufunc_generic_fastcall"], callers["load"]) == (43, 35, 8)
    assert callees["[libopenblas.so.0+0x4711]"] == 10 and callees["do_syscall_64_[k]"] == 5


def test_text_has_the_same_files(page):
    text = report(page.with_name("compiled.pybpf"), page.with_suffix(".txt")).read_text(encoding="utf-8")
    rows = re.findall(r"^ +(\d+) +[\d.]+%  (\S.*?)(?:, called from (\S+) \((\S+)\).*)?$", text[: text.index("\n\n")], re.M)
    assert "compiled code (60.0% in all)" in text
    assert [(name.strip("[]"), int(self), caller, place) for self, name, caller, place in rows] == [
        (name, share, *called.split()[:2]) for name, share, _, called in FILES
    ]
