# SPDX-License-Identifier: Apache-2.0
"""The report: a range of time, hotspots, folded recursion, high graphs, long names, sources, beside the profile."""
import io
import json
import keyword
import os
import re
import subprocess
import tokenize
from collections import Counter

import html_page
from browser import browse
from html_page import DEPTH, LONG, READY, number, report, steps, timed

chromium, saved, stacks, page = html_page.chromium, html_page.saved, html_page.stacks, html_page.page  # fixtures
deep = html_page.deep

SELVES = r"""
const selves = (p = page) => p.evaluate(() => {
  const { tree } = document.querySelector(".host").flame;
  const found = {};
  for (let i = 1; i < tree.count; i++) if (tree.key[i] >= 0 && tree.self[i]) {
    const name = tree.keys.name[tree.key[i]];
    found[name] = (found[name] || 0) + tree.self[i];
  }
  return { found, depth: tree.maxDepth, total: tree.total[0] };
});
"""
ROWS = r"""
const rows = () => page.$$eval(".rows .row", (all) => all.map((row) => ({
  name: row.querySelector("b").textContent,
  self: row.querySelectorAll("small")[0].textContent,
  total: row.querySelectorAll("small")[1].textContent,
})));
"""


def spelled(name):
    """As the page shows control characters and marks of direction."""
    return re.sub(r"[\x00-\x1f\u202a-\u202e\u2066-\u2069]", lambda m: "\\u%04x" % ord(m.group()), name)


def test_a_range_of_time_filters_every_view(page, saved):
    samples = timed(saved / "report.pybpf", saved / "report.jsonl")
    times = sorted(time for time, _, _ in samples)
    # Ends that no sample has, between a third and two thirds of them.
    begin, end = times[len(times) // 3] - 1, times[2 * len(times) // 3] + 1
    inside = [(stack, tid) for time, stack, tid in samples if begin <= time < end]
    assert 50 < len(inside) < len(samples) - 50
    told = browse(
        page,
        steps(
            SELVES
            + ROWS
            + """
  const open = async (view) => {
    await page.goto("about:blank");
    await page.goto(address + "#t=" + argument + "&view=" + view);
    await page.waitForSelector("main > *");
    await calm();
  };
  const out = {};
  await open("graph");
  %s
  out.graph = await selves();
  out.scope = await page.textContent("[data-testid=scope]");
  out.legend = await page.$$eval(".legend small", (all) => all.map((s) => parseFloat(s.textContent)));
  out.hottest = await page.textContent("[data-testid=hottest] li");
  await page.fill("input[type=search]", "^leaf ");
  await page.waitForSelector("[data-testid=matched] b");
  out.matched = await page.textContent("[data-testid=matched]");
  await open("table");
  out.table = await rows();
  await open("callers");
  out.callers = await page.evaluate(() => document.querySelector(".host").flame.tree.total[0]);
  await open("hot");
  out.hot = await page.textContent("[data-testid=hotspots] li");
  await open("source&file=program.py");
  out.heat = await page.$$eval("[data-testid=code] .rows .line", (all) => all.map((l) => [l.children[2].textContent, l.title]));
  await open("run");
  out.threads = await page.$$eval("[data-testid=threads] tbody tr", (all) => all.map((r) => [r.cells[1].textContent, r.cells[2].textContent, r.cells[3].textContent]));
  await open("time");
  out.view = await page.evaluate(() => document.querySelector(".host").timeline.view);
  out.timed = await page.evaluate(() => document.querySelector(".host").timeline.tree.total[0]);
  return out;
"""
            % READY
        ),
        argument="%d-%d" % (begin, end),
        height=1400,
    )
    leaves = Counter(spelled(stack[-1][0]) for stack, _ in inside)
    assert told["graph"]["found"] == leaves
    assert told["graph"]["total"] == told["callers"] == told["timed"] == len(inside)
    assert number(told["scope"]) == len(inside) and "%s samples" % format(len(samples), ",") in told["scope"]
    assert told["view"] == [begin, end]
    assert abs(sum(told["legend"]) - 100) < 1.5
    hottest, most = leaves.most_common(1)[0]
    for words in (told["hottest"], told["hot"]):
        assert hottest in words and abs(float(re.search(r"([\d.]+) %", words).group(1)) - 100 * most / len(inside)) < 0.06
    found = sum(any(name == "leaf" for name, _, _ in stack) for stack, _ in inside)
    assert number(told["matched"].split("samples, ")[1]) == found and "filtered" in told["matched"]
    row = next(row for row in told["table"] if row["name"] == "leaf")
    assert [number(row["self"]), number(row["total"])] == [leaves["leaf"], found]
    lines = Counter(stack[-1][2] for stack, _ in inside if stack[-1][1] == "program.py")
    heat = {int(n): number(title.split(" self")[0]) for n, title in told["heat"] if title}
    assert {n: value for n, value in heat.items() if value} == lines
    threads = Counter(tid for _, tid in inside)
    assert {number(re.search(r"\((\d+)\)$", t).group(1)): number(n) for t, n, _ in told["threads"]} == threads
    assert abs(sum(float(share.split()[0]) for _, _, share in told["threads"]) - 100) < 0.2


def test_a_range_is_chosen_by_a_drag_and_by_its_ends(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const range = () => new URLSearchParams(new URL(page.url()).hash.slice(1)).get("t");
  const settled = (t) => page.waitForFunction((before) => new URLSearchParams(location.hash.slice(1)).get("t") !== before, t);
  const box = await (await page.$("[data-testid=range] canvas")).boundingBox();
  const out = { width: box.width };
  await page.mouse.move(box.x + box.width * 0.25, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 10);
  await page.mouse.move(box.x + box.width * 0.5, box.y + 10);
  await page.mouse.up();
  await settled(null);
  out.dragged = range();
  out.words = await page.textContent("[data-testid=scope]");
  await page.fill("[aria-label^=From]", "0.5");
  await page.keyboard.press("Enter");
  await settled(out.dragged);
  out.typed = range();
  out.said = await page.getAttribute("[data-testid=scope]", "role");
  await page.click("[data-testid=scope] button");
  await settled(out.typed);
  out.all = [range(), await page.textContent("[data-testid=scope]")];
  out.caption = await page.textContent(".caption");
  out.duration = await page.getAttribute("[aria-label^=To]", "placeholder");
  return out;
"""
            % READY
        ),
    )
    whole = float(told["duration"].split()[0]) * 1e6
    begin, end = map(int, told["dragged"].split("-"))
    assert abs(begin / whole - 0.25) < 0.01 and abs(end / whole - 0.5) < 0.01
    assert "shown" in told["words"] and "CPU time" in told["words"] and told["said"] == "status"
    assert told["typed"] == "500000-%d" % end
    assert told["all"] == [None, ""]
    used = float(re.fullmatch(r"CPU use over time ([\d.]+) CPUs on average", told["caption"])[1])
    assert 0 < used <= os.cpu_count(), told["caption"]


def test_the_header_and_run_tell_the_run(page, saved, deep):
    look = steps(
        """
  await page.goto(address + "#view=run");
  await page.waitForSelector("[data-testid=run]");
  const facts = await page.$$eval(".facts.tall > div", (all) => all.map((d) => [d.children[0].textContent, d.children[1].textContent]));
  const threads = await page.$$eval("[data-testid=threads] tbody tr", (all) => all.map((r) => [...r.cells].map((c) => c.textContent)));
  return { summary: await page.textContent("[data-testid=summary]"), facts: Object.fromEntries(facts), threads, all: await page.content() };
"""
    )
    told = browse(page, look)
    head = json.loads(report(saved / "report.pybpf", saved / "head.jsonl").read_text(encoding="utf-8").split("\n")[0])
    samples = timed(saved / "report.pybpf", saved / "threads.jsonl")
    cpu_s = len(samples) * head["measure"]["period_ns"] / 1e9
    time, share = re.search(r"CPU time ([\d.]+) s, ([\d.]+) % of the wall time", told["summary"]).groups()
    assert abs(float(time) - cpu_s) < 0.006
    assert abs(float(share) - 100 * cpu_s / float(head["facts"]["duration_s"])) < 0.06
    said = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=True).stdout
    assert told["facts"]["Python"] == re.search(r"Python (\d+\.\d+)", said).group(1)
    assert re.fullmatch(r"[\d.]+ (ms|s|min)", told["facts"]["CPU time of others"])
    assert set(head["facts"]) & set(told["facts"]) == {"pybpf"}
    assert "--cmdline" in told["facts"]["Command"] and "program.py" not in told["facts"]["Command"]
    threads = Counter(tid for _, _, tid in samples)
    assert {number(re.search(r"\((\d+)\)$", row[1]).group(1)): number(row[2]) for row in told["threads"]} == threads
    asked = browse(deep / "deep.html", look)
    assert asked["facts"]["Command"].endswith("deep.py --token=s3cret")
    hidden = report(deep / "deep.pybpf", deep / "hidden.html", "--anonymize")
    kept = browse(hidden, look)
    assert kept["facts"]["Python"] == told["facts"]["Python"] and "s3cret" not in kept["all"]
    assert "not recorded" in kept["facts"]["Command"]


def test_hotspots_are_told_in_words(page, saved, stacks):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const first = await page.$$eval("[data-testid=hottest] li", (all) => all.map((l) => l.textContent));
  await page.click("[data-testid=hottest] >> text=All hotspots");
  await page.waitForSelector("[data-testid=hotspots]");
  const all = await page.$$eval("[data-testid=hotspots] > ol > li", (all) => all.map((l) => l.textContent));
  await page.click("[data-testid=hotspots] li >> text=Source");
  await page.waitForSelector("[data-testid=around]");
  return { first, all, around: await page.textContent("[data-testid=around]") };
"""
            % READY
        ),
    )
    selves, lines, callers = Counter(), Counter(), Counter()
    for stack, count in stacks:
        selves[stack[-1].name, stack[-1].file] += count
        if stack[-1].name == "leaf":
            lines[stack[-1].line] += count
            callers[stack[-2].name] += count
    everything = sum(selves.values())
    assert len(told["first"]) == 3 and len(told["all"]) == min(20, len(selves))
    for words, ((name, _), count) in zip(told["first"], selves.most_common(1)):
        assert spelled(name) in words
        assert abs(float(words.split(" %")[0]) - 100 * count / everything) < 0.06
    shares = [float(words.split(" %")[0]) for words in told["all"]]
    assert shares == sorted(shares, reverse=True)
    words = next(words for words in told["all"] if "leaf" in words.split("program.py")[0])
    line, count = lines.most_common(1)[0]
    hottest = float(re.search(r"hottest line is %d, with ([\d.]+) %%" % line, words).group(1))
    assert abs(hottest - 100 * count / sum(lines.values())) < 0.06
    text = (saved / "program.py").read_text(encoding="utf-8").split("\n")
    assert text[line - 1].strip() in words
    name, count = callers.most_common(1)[0]
    assert re.search(r"Called by %s \(%.1f" % (re.escape(name), 100 * count / sum(callers.values())), words)
    assert "Line %d" % int(re.search(r"hottest line is (\d+)", told["all"][0]).group(1)) in told["around"]


def test_recursion_is_folded_on_request(deep):
    stacks = html_page.folded(deep / "deep.folded")
    told = browse(
        deep / "deep.html",
        steps(
            SELVES
            + """
  const totals = () => page.evaluate(() => {
    const { tree } = document.querySelector(".host").flame;
    const found = {}, pairs = new Set();
    for (let i = 1; i < tree.count; i++) {
      const name = tree.keys.name[tree.key[i]];
      const above = [];
      for (let p = tree.parent[i]; p > 0; p = tree.parent[p]) above.push(tree.key[p]);
      if (!above.includes(tree.key[i])) found[name] = (found[name] || 0) + tree.total[i];
      if (tree.parent[i] > 0) pairs.add(tree.keys.name[tree.key[tree.parent[i]]] + " > " + name);
    }
    return { found, pairs: [...pairs], repeats: [...new Set(tree.repeats.slice(0, tree.count))] };
  });
  await page.goto(address);
  %s
  const before = await selves();
  await page.click(".more");
  await page.selectOption("[aria-label='Recursive calls']", "shown once");
  await page.waitForFunction(() => document.querySelector(".host").flame.tree.maxDepth < 1000);
  return { before, after: await selves(), totals: await totals(), link: page.url() };
"""
            % READY
        ),
    )
    assert max(len(stack) for stack, _ in stacks) > DEPTH
    assert told["before"]["depth"] == max(len(stack) for stack, _ in stacks)
    assert told["after"]["depth"] < 40, "repeats are left"
    assert told["after"]["found"] == told["before"]["found"] and told["after"]["total"] == told["before"]["total"]
    totals, pairs = Counter(), set()
    for stack, count in stacks:
        for name in {(frame.name, frame.file) for frame in stack}:
            totals[spelled(name[0])] += count
        pairs.update("%s > %s" % (spelled(a.name), spelled(b.name)) for a, b in zip(stack, stack[1:]))
    for name in ("again", "even", "odd", "leaf"):
        assert told["totals"]["found"][name] == totals[name], "the samples of %s changed" % name
    assert set(told["totals"]["pairs"]) <= pairs, "a call that did not happen"
    assert told["totals"]["repeats"] == [0, 1] and "fold=yes" in told["link"]


def test_a_high_graph_tells_where_it_is_scrolled_to(page, deep):
    look = """
  await page.goto(address);
  %s
  const visible = await page.isVisible("[data-testid=minimap]");
  if (!visible) return { visible };
  const rows = () => page.evaluate(() => document.querySelector("[data-testid=position]").textContent.match(/[\\d,]+/g).map((n) => Number(n.replace(/,/g, ""))));
  const wait = () => calm();
  const out = { visible, top: await rows() };
  const box = await (await page.$("[data-testid=minimap]")).boundingBox();
  await page.mouse.click(box.x + 20, box.y + box.height / 2);
  await wait();
  out.middle = await rows();
  out.height = box.height;
  await page.keyboard.press("End");
  await wait();
  out.end = await rows();
  await page.keyboard.press("PageUp");
  await wait();
  out.before = await rows();
  await page.keyboard.press("Home");
  await wait();
  out.home = await rows();
  await page.click(".more");
  await page.selectOption("[aria-label='Graph grows']", "flame");
  await wait();
  out.root = await rows();
  return out;
"""
    told = browse(deep / "deep.html", steps(look % READY))
    rows = 1 + max(len(stack) for stack, _ in html_page.folded(deep / "deep.folded"))
    assert told["visible"] and told["top"][0] == 1 and told["top"][2] == told["end"][2] == rows
    seen = told["height"] / 20
    assert abs((told["middle"][0] + told["middle"][1]) / 2 - rows / 2) < seen
    assert told["end"][1] == rows and told["home"] == told["top"]
    assert told["before"][1] < rows and told["before"][0] < told["end"][0]
    assert told["root"][0] == 1, "a flame graph is shown from its root on"
    assert browse(page, steps(look % READY), height=1400) == {"visible": False}


def test_long_names_are_shortened_and_can_be_had_whole(deep):
    told = browse(
        deep / "deep.html",
        steps(
            """
  await page.goto(address);
  %s
  const out = {};
  const at = await page.evaluate(place, argument);
  await page.mouse.move(at.x, at.y);
  await page.waitForSelector("[role=tooltip]");
  out.tip = await page.textContent("[role=tooltip] b");
  await page.mouse.click(at.x, at.y);
  await page.waitForSelector("[data-testid=details]");
  out.details = await page.textContent("[data-testid=details] b");
  out.said = await page.textContent("[data-testid=said]");
  await page.click("[data-testid=details] >> text=Whole name");
  out.whole = await page.textContent("[data-testid=details] b");
  out.drawn = await page.evaluate((name) => {
    const { flame } = document.querySelector(".host");
    const node = flame.tree.keys.name.indexOf(name);
    return flame.surface.fit(flame.tree.keys.label(node), 90);
  }, argument);
  out.wider = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await page.goto(address + "#view=table&sort=total");
  await page.waitForSelector(".rows .row");
  out.table = await page.$$eval(".rows .row b", (all) => all.map((b) => b.textContent));
  return out;
"""
            % READY
        ),
        argument=LONG,
    )
    for key in ("tip", "details"):
        assert len(told[key]) <= 121 and told[key].startswith("long_xx") and told[key].endswith("xx_end") and "…" in told[key]
    assert len(told["said"]) < 400 and told["whole"] == LONG and told["wider"] <= 0
    assert 4 < len(told["drawn"]) < 30 and told["drawn"].startswith("long_")
    shown = {name.strip("\u2068\u2069") for name in told["table"]}
    assert {spelled(name) for name in html_page.NAMES[1:]} <= shown
    # What is written from right to left is kept apart from the numbers beside it.
    assert "\u2068" + html_page.NAMES[1] + "\u2069" in told["table"]


def tokens(text):
    """{line: [(kind, text)]} of strings, comments, numbers and keywords, as Python's own tokenizer sees them."""
    found = {}
    kinds = {tokenize.STRING: "string", tokenize.COMMENT: "comment", tokenize.NUMBER: "number"}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = kinds.get(token.type) or ("keyword" if keyword.iskeyword(token.string) else None)
        for i, part in enumerate(token.string.split("\n") if kind else []):
            if part:
                found.setdefault(token.start[0] + i, []).append((kind, part))
    return found


def test_sources_have_colours_a_search_and_links(page, saved, stacks):
    told = browse(
        page,
        steps(
            """
  await page.goto(address + "#view=source&file=program.py");
  await page.waitForSelector("[data-testid=code] .rows .line");
  const out = {};
  out.pieces = await page.$$eval("[data-testid=code] .rows .line", (all) => all.map((l) => [
    Number(l.children[2].textContent),
    [...l.querySelectorAll("code span")].map((s) => [s.className, s.textContent]),
  ]));
  out.heat = await page.$$eval("[data-testid=code] .rows .line", (all) => all.map((l) => [l.children[0].textContent, getComputedStyle(l).backgroundColor]));
  await page.fill("[data-testid=sources] input", "leaf\\\\(\\\\d+");
  await page.waitForSelector("mark");
  out.marks = await page.$$eval("mark", (all) => all.map((m) => m.textContent));
  out.found = await page.textContent("[data-testid=lines-found]");
  await page.press("[data-testid=sources] input", "Enter");
  await page.waitForSelector(".line.chosen");
  out.first = await page.textContent(".line.chosen .n");
  await page.press("[data-testid=sources] input", "Shift+Enter");
  await page.waitForFunction((n) => document.querySelector(".line.chosen .n").textContent !== n, out.first);
  out.last = await page.textContent(".line.chosen .n");
  await page.fill("[data-testid=sources] input", "leaf(");
  await page.waitForSelector(".error");
  out.error = await page.textContent("[data-testid=lines-found]");
  await page.fill("[data-testid=sources] input", "");
  await page.click(`[data-testid=code] [aria-label^="Line ${argument}:"]`);
  await page.waitForSelector("[data-testid=around]");
  out.around = await page.$$eval("[data-testid=around] .around > div, [data-testid=around] > div", (all) => all.map((d) => d.textContent));
  await page.click("[data-testid=around] button:text-is('leaf')");
  await page.waitForFunction((n) => document.querySelector(".line.chosen .n").textContent !== String(n), argument);
  out.went = await page.textContent(".line.chosen code");
  return out;
"""
        ),
        argument=next(
            n for n, text in enumerate((saved / "program.py").read_text("utf-8").split("\n"), 1) if "return leaf(3000)" in text
        ),
        height=2400,
    )
    text = (saved / "program.py").read_text(encoding="utf-8")
    expected = tokens(text)
    assert sum(map(len, expected.values())) > 50
    for n, pieces in told["pieces"]:
        kept = [(kind, part) for kind, part in pieces if kind in ("string", "comment", "number", "keyword")]
        assert [p for p in kept if p[1].strip()] == expected.get(n, []), text.split("\n")[n - 1]
    coloured = {colour for share, colour in told["heat"] if share}
    assert len(coloured) > 1, "all lines are as hot"
    hits = [n for n, line in enumerate(text.split("\n"), 1) if re.search(r"leaf\(\d+", line)]
    assert "".join(told["marks"]) == "".join(re.findall(r"leaf\(\d+", text))
    assert number(told["found"]) == len(hits)
    assert int(told["first"]) == hits[0] and int(told["last"]) == hits[-1]
    assert "unterminated group" in told["error"]
    inner = next(n for n, line in enumerate(text.split("\n"), 1) if "return leaf(3000)" in line)
    callers, calls = Counter(), 0
    for stack, count in stacks:
        for above, frame in zip(stack, stack[1:]):
            if (frame.file, frame.line) == ("program.py", inner):
                callers[above.name, above.line] += count
                calls += count
    (name, line), _ = callers.most_common(1)[0]
    around = "\n".join(told["around"])
    assert "%s program.py:%d" % (name, line) in around
    leaf = sum(n for stack, n in stacks if any((a.line, b.name) == (inner, "leaf") for a, b in zip(stack, stack[1:])))
    assert abs(float(re.search(r"leaf program.py:\d+ ([\d.]+)", around).group(1)) - 100 * leaf / calls) < 0.06
    assert told["went"].startswith("def leaf")


def test_the_table_is_beside_the_graph_on_wide_screens(page):
    look = steps(
        """
  await page.goto(address);
  %s
  const beside = await page.$$eval(".beside .rows .row b", (all) => all.map((b) => b.textContent));
  if (!beside.length) return { beside };
  await page.click(".beside .row:has(b:text-is('inner')) button.name");
  await page.waitForSelector("[data-testid=matched] b");
  const boxes = await page.evaluate(() => [".graph", ".beside"].map((s) => document.querySelector(s).getBoundingClientRect().toJSON()));
  return { beside, boxes, view: await page.getAttribute("main", "data-view"), matched: await page.textContent("[data-testid=matched]") };
"""
        % READY
    )
    wide = browse(page, look, width=1920, height=1080)
    assert "leaf" in wide["beside"] and wide["view"] == "graph" and number(wide["matched"].split("samples, ")[1]) > 0
    graph, table = wide["boxes"]
    assert graph["right"] <= table["left"] + 1 and graph["width"] > 1.5 * table["width"]
    assert browse(page, look, width=1280) == {"beside": []}


def test_a_wrong_expression_is_told_what_is_wrong(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const out = [];
  for (const pattern of argument) {
    await page.fill("input[type=search]", pattern);
    await page.waitForFunction((p) => new URLSearchParams(location.hash.slice(1)).get("q") === p, pattern);
    await calm();
    out.push([await page.textContent("[data-testid=matched]"), await page.getAttribute("input[type=search]", "aria-invalid")]);
  }
  return out;
"""
            % READY
        ),
        argument=["[a", "a**", "leaf(", "leaf"],
    )
    assert len({text for text, _ in told}) == 4
    for (text, invalid), word in zip(told, ("class", "repeat", "group")):
        assert text.startswith("Not a regular expression:") and word in text and invalid == "true"
    assert "leaf\\(" in told[2][0]
    assert "%" in told[3][0] and told[3][1] == "false"
