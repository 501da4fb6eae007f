# SPDX-License-Identifier: Apache-2.0
"""The report for who has no mouse, does not see the page, sees little contrast, or reads it on paper."""
import re

import pytest

import html_page
import node_peers
from browser import browse
from html_page import READY, steps

chromium, saved, stacks, page = html_page.chromium, html_page.saved, html_page.stacks, html_page.page  # fixtures
deep = html_page.deep

VIEWS = ("graph", "hot", "time", "callers", "table", "source", "run")
LEAST = 4.5  # contrast of text, as WCAG 2.2 has it (1.4.3)

# Contrast of two colours of any CSS spelling, the first over the second, as WCAG 2.2 defines it.
CONTRAST = r"""
const contrast = ([ink, ground]) => {
  const c = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const light = (colours) => {
    for (const colour of colours) {
      c.fillStyle = colour;
      c.fillRect(0, 0, 1, 1);
    }
    const [r, g, b] = [...c.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [x, y] = [light([ground, ink]), light([ground])].sort((a, b) => b - a);
  return (x + 0.05) / (y + 0.05);
};
"""


def axe():
    return (node_peers.package("axe-core") / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "width,height,dark", [(1280, 800, False), (1920, 1080, True), (390, 844, False), (390, 844, True)]
)
def test_axe_finds_no_serious_fault(page, dark, width, height):
    told = browse(
        page,
        steps(
            """
  const found = async (state) => {
    await calm();
    const { violations, passes } = await page.evaluate(() => axe.run(document));
    return [state, passes.length, violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html)])];
  };
  const out = [];
  for (const view of argument.views) {
    await page.goto("about:blank");
    await page.goto(address + "#t=100000-900000&view=" + view);
    await page.waitForSelector("main > *");
    await page.evaluate(argument.axe);
    out.push(await found(view));
    if (view === "graph") {
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.waitForSelector("[data-testid=details]");
      await page.fill("input[type=search]", "leaf(");
      await page.waitForSelector(".error");
      out.push(await found("details and an error"));
      await page.keyboard.press("Escape");
      await page.fill("input[type=search]", "leaf");
      await page.waitForSelector("[data-testid=matched] b");
      await page.click("[aria-label=Help]");
      out.push(await found("help and a search"));
    }
    if (view === "source") {
      await page.click("[data-testid=code] .rows .n button >> nth=9");
      await page.fill("[data-testid=sources] input", "leaf");
      await page.waitForSelector("mark");
      out.push(await found("a line's callers and a search"));
    }
  }
  // That it would find one: a list of views whose tabs have no names, in grey on grey.
  await page.evaluate(() => {
    const tab = document.querySelector("[role=tab]");
    tab.textContent = "";
    tab.removeAttribute("title");
    document.querySelector("h1").style.color = "#ccc";
    document.querySelector("h1").style.background = "#bbb";
  });
  const broken = await found("broken");
  return { out, broken };
"""
        ),
        argument={"axe": axe(), "views": VIEWS},
        width=width,
        height=height,
        dark=dark,
    )
    assert [state for state, _, faults in told["out"] if faults] == [], told["out"]
    assert len(told["out"]) == len(VIEWS) + 3 and all(passed > 10 for _, passed, _ in told["out"])
    assert {"color-contrast"} <= {fault for fault, _ in told["broken"][2]}


def test_tabs_and_rows_by_keyboard(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const view = () => page.getAttribute("main", "data-view");
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  const out = { views: [] };
  await page.focus("[role=tab][aria-selected=true]");
  for (const key of ["ArrowRight", "End", "ArrowRight", "ArrowLeft", "Home"]) {
    await page.keyboard.press(key);
    out.views.push([await view(), await focused()]);
  }
  out.stops = await page.$$eval("[role=tab]", (all) => all.filter((t) => t.tabIndex === 0).length);
  for (let i = 0; i < 4; i++) await page.keyboard.press("ArrowRight");
  await page.waitForSelector(".rows .row");
  const names = await page.$$eval(".rows .row button.name", (all) => all.map((b) => b.textContent));
  // From the tab on, the tabulator comes to the rows.
  for (let i = 0; i < 20 && !(await page.evaluate(() => document.activeElement.classList.contains("rows"))); i++) await page.keyboard.press("Tab");
  out.moves = [];
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "End", "Home", "PageDown"]) {
    await page.keyboard.press(key);
    await calm(focused);
    out.moves.push(names.indexOf(await focused()));
  }
  await page.keyboard.press("Home");
  await calm(focused);
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("main").dataset.view === "graph");
  out.opened = await page.textContent(".chip.on");
  out.count = names.length;
  out.first = names[0];
  return out;
"""
            % READY
        ),
        height=1400,
    )
    assert [view for view, _ in told["views"]] == ["hot", "run", "graph", "run", "graph"]
    assert [text for _, text in told["views"]] == ["Hotspots", "Run", "Flame graph", "Run", "Flame graph"]
    assert told["stops"] == 1
    moves = told["moves"]
    assert moves[:4] == [0, 1, 2, 1] and moves[5] == 0 and moves[6] > 5
    assert moves[4] == -1 or moves[4] == told["count"] - 1, "End leads to the last row"
    assert told["opened"].split()[0] == told["first"].split()[0]


BAR = """
  const rows = () => page.evaluate(() => {
    const tops = [...document.querySelectorAll(".tools > *")].filter((e) => e.checkVisibility()).map((e) => e.getBoundingClientRect());
    const lines = tops.filter((box, i) => !tops.slice(0, i).some((other) => box.top < other.bottom && other.top < box.bottom));
    return [tops.length, lines.length, document.documentElement.scrollWidth > innerWidth];
  });
"""


@pytest.mark.parametrize("width,most", [(1400, 1), (700, 1), (400, 2)])
def test_the_controls_are_one_row(page, width, most):
    told = browse(
        page,
        steps(
            BAR
            + """
  const out = {};
  for (const view of argument) {
    await page.goto("about:blank");
    await page.goto(address + "#q=leaf&view=" + view);
    await page.waitForSelector("main > *");
    await calm(rows);
    out[view] = await rows();
  }
  return out;
"""
        ),
        argument=["graph", "time", "callers", "table"],
        width=width,
    )
    for view, (controls, lines, wider) in told.items():
        assert controls == 3 and lines <= most and not wider, (view, controls, lines, wider)


def test_the_menu_by_keyboard(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const shown = () => page.isVisible("[data-testid=options]");
  const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label") ?? document.activeElement.textContent);
  const out = { before: await shown() };
  await page.focus(".more");
  await page.keyboard.press("Enter");
  out.open = [await shown(), await page.getAttribute(".more", "aria-expanded")];
  out.stops = [];
  for (let i = 0; i < 6; i++) {
    await page.keyboard.press("Tab");
    out.stops.push(await focused());
  }
  await page.selectOption("[aria-label=Order]", "name");
  out.still = await shown();
  await page.focus("[aria-label=Order]");
  await page.keyboard.press("Escape");
  out.closed = [await shown(), await focused()];
  await page.keyboard.press("Enter");
  const box = await page.locator("h1").boundingBox();
  await page.mouse.click(box.x + 5, box.y + 5);
  out.beside = await shown();
  await page.click(".more");
  await page.focus(".host");
  out.left = await shown();
  return out;
"""
            % READY
        ),
    )
    assert not told["before"] and told["open"] == [True, "true"] and told["still"]
    assert told["stops"] == ["Colours", "Group by", "Detail", "Recursive calls", "Order", "Graph grows"]
    assert told["closed"] == [False, "More options"]
    assert not told["beside"] and not told["left"]


def test_moves_in_the_graph_are_announced(page, stacks):
    everything = sum(count for _, count in stacks)
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const said = () => page.textContent("[data-testid=said]");
  const out = { empty: await said(), polite: await page.getAttribute("[data-testid=said]", "aria-live") };
  await page.focus(".host");
  out.heard = [];
  for (let i = 0; i < 4; i++) {
    const before = await said();
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((text) => document.querySelector("[data-testid=said]").textContent !== text, before);
    const name = await page.evaluate(() => {
      const { tree, selected } = document.querySelector(".host").flame;
      return [tree.key[selected] < 0 ? "all" : tree.keys.name[tree.key[selected]], tree.total[selected], tree.depth[selected]];
    });
    out.heard.push([await said(), ...name]);
  }
  const at = await page.evaluate(place, "main");
  await page.mouse.click(at.x, at.y);
  await page.waitForFunction(() => document.querySelector("[data-testid=said]").textContent.includes("Zoomed"));
  out.zoomed = await said();
  out.total = await page.evaluate((node) => document.querySelector(".host").flame.tree.total[node], at.node);
  out.host = await page.getAttribute(".host", "aria-label");
  return out;
"""
            % READY
        ),
    )
    assert told["empty"] == "" and told["polite"] == "polite" and "arrow keys" in told["host"]
    assert len({said for said, *_ in told["heard"]}) == 4
    for said, name, total, depth in told["heard"]:
        assert said.startswith(name) and "row %d" % (depth + 1) in said
        assert abs(float(re.search(r"total ([\d.]+) %", said).group(1)) - 100 * total / everything) < 0.06
    zoomed = float(re.search(r"total ([\d.]+) %", told["zoomed"]).group(1))
    assert "Zoomed to main" in told["zoomed"] and abs(zoomed - 100 * told["total"] / everything) < 0.06


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_contrast(page, saved, dark):
    """On a canvas and over bars and heat, where axe does not look."""
    diff = saved / "contrast.html"
    before = html_page.report(saved / "report.pybpf", saved / "contrast.pybpf", "--ignore", "^inner ")
    run = html_page.harness.pybpf("diff", before, saved / "report.pybpf", "-o", diff)
    assert run.code == 0, run.err
    look = steps(
        CONTRAST
        + """
  const least = [];
  for (const hash of argument) {
    await page.goto("about:blank");
    await page.goto(address + "#" + hash);
    %s
    await calm();
    const pairs = await page.evaluate(() => {
      const { tree, look } = document.querySelector(".host").flame;
      const found = new Set();
      for (let i = 0; i < tree.count; i++) found.add(JSON.stringify([look.ink(i), look.fill(i)]));
      found.add(JSON.stringify([look.faint, look.ground]));
      return [...found].map(JSON.parse);
    });
    for (const pair of pairs) least.push([await page.evaluate(contrast, pair), hash, pair]);
  }
"""
        % READY
    )
    ending = """
  for (const hash of ["view=table&sort=total", "view=source&file=program.py"]) {
    await page.goto("about:blank");
    await page.goto(address + "#" + hash);
    await page.waitForSelector(".rows .cell.number, .rows .line");
    const pairs = await page.evaluate(() => {
      const root = getComputedStyle(document.documentElement);
      const ground = getComputedStyle(document.body).backgroundColor;
      const over = (ink, back) => {
        const c = new OffscreenCanvas(1, 1).getContext("2d");
        for (const colour of [ground, back]) { c.fillStyle = colour; c.fillRect(0, 0, 1, 1); }
        const [r, g, b] = c.getImageData(0, 0, 1, 1).data;
        return [ink, `rgb(${r} ${g} ${b})`];
      };
      const found = [];
      for (const part of document.querySelectorAll(".rows .cell.number *")) found.push(over(getComputedStyle(part).color, root.getPropertyValue("--bar")));
      for (const line of document.querySelectorAll(".rows .line"))
        for (const part of line.querySelectorAll("span, button, code")) found.push(over(getComputedStyle(part).color, getComputedStyle(line).backgroundColor));
      return [...new Set(found.map((pair) => JSON.stringify(pair)))].map(JSON.parse);
    });
    if (!pairs.length) throw new Error("nothing to look at in " + hash);
    for (const pair of pairs) least.push([await page.evaluate(contrast, pair), hash, pair]);
  }
"""
    back = "  return least;\n}"
    assert look.endswith("\n}")
    hashes = ["", "q=leaf", "color=kind", "fn=3"]
    told = browse(page, look[:-2] + ending + back, argument=hashes, dark=dark)
    told += browse(diff, look[:-2] + back, argument=["", "color=module", "q=inner"], dark=dark)
    assert len(told) > 30 and max(row[0] for row in told) < 21.1
    assert [row for row in told if row[0] < LEAST] == []


def test_paper_is_light_and_whole(deep, saved, tmp_path):
    paper = tmp_path / "paper.pdf"
    look = steps(
        """
  const shown = () => page.evaluate(() => ({
    theme: document.documentElement.dataset.theme,
    rows: document.querySelectorAll(".rows .row, .rows .line").length,
    sheets: [...document.querySelectorAll(".printed canvas")].map((c) => [c.getBoundingClientRect().width / c.width, c.height, new Set(new Uint32Array(c.getContext("2d").getImageData(0, 0, c.width, c.height).data.buffer)).size]),
    tabs: document.querySelector(".tabs").checkVisibility(),
    scrolled: [...document.querySelectorAll("main *")].filter((e) => e.checkVisibility() && e.scrollHeight > e.clientHeight + 2 && /auto|scroll|hidden/.test(getComputedStyle(e).overflowY) && e.clientHeight && e.localName !== "button").map((e) => e.className),
  }));
  const out = {};
  for (const view of ["graph", "table", "source&file=" + argument.file, "time"]) {
    await page.goto("about:blank");
    await page.goto(address + "#theme=dark&view=" + view);
    await page.waitForSelector("main > *");
    await calm(shown);
    const before = await shown();
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    const during = await shown();
    await page.evaluate(() => dispatchEvent(new Event("afterprint")));
    await page.emulateMedia({ media: null });
    await calm(shown);
    out[view.split("&")[0]] = { before, during, after: await shown() };
  }
  await page.goto("about:blank");
  await page.goto(address + "#theme=dark");
  %s
  await page.pdf({ path: argument.paper, preferCSSPageSize: true, printBackground: true });
  return out;
"""
        % READY
    )
    told = browse(deep / "deep.html", look, argument={"paper": str(paper), "file": "deep.py"}, height=500)
    rows = 1 + max(len(stack) for stack, _ in html_page.folded(deep / "deep.folded"))
    functions = {(f.name, f.file) for stack, _ in html_page.folded(deep / "deep.folded") for f in stack}
    lines = (deep / "deep.py").read_text(encoding="utf-8").split("\n")
    for view, state in told.items():
        assert state["before"]["theme"] == state["after"]["theme"] == "dark" and state["during"]["theme"] == "light", view
        assert state["after"] == state["before"] and not state["before"]["sheets"], view
        assert state["before"]["tabs"] and not state["during"]["tabs"]
        assert state["during"]["scrolled"] == [], view
    sheets = told["graph"]["during"]["sheets"]
    assert sum(height for _, height, _ in sheets) == rows * 20, "rows are missing on paper"
    assert all(colours > 3 for _, _, colours in sheets), "a sheet is empty"
    assert len(told["time"]["during"]["sheets"]) > 10
    assert told["table"]["during"]["rows"] == len(functions)
    assert told["source"]["during"]["rows"] == len(lines) > told["source"]["before"]["rows"]
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", paper.read_bytes()))
    assert pages >= len(sheets) > 100, "Chromium printed %d pages" % pages


def test_the_focus_stays_on_rows_that_scroll(page):
    """Rows come and go above the one that has the focus, with any number of them in sight."""
    told = browse(
        page,
        steps(
            """
  await page.goto(address + "#view=table");
  await page.waitForSelector(".rows .row");
  const count = Number(await page.getAttribute("[role=table]", "aria-rowcount")) - 1;
  const out = [];
  for (let height = 500; height < 1500; height += 100) {
    await page.setViewportSize({ width: 1280, height });
    await page.focus("[data-row='0']");
    for (const [key, row] of [["ArrowDown", 1], ["ArrowDown", 2], ["End", count - 1], ["Home", 0], ["End", count - 1], ["ArrowUp", count - 2], ["Home", 0]]) {
      await page.keyboard.press(key);
      for (let frames = 0; frames < 6; frames++) await page.evaluate(() => new Promise(requestAnimationFrame));
      const at = await page.evaluate(() => document.activeElement.dataset.row);
      if (at !== String(row)) out.push([height, key, at]);
    }
  }
  return [count, out];
"""
        ),
    )
    assert told[0] > 30 and told[1] == []
