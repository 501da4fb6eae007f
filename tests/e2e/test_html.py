# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a real program, in a browser without network, held beside the folded stacks of the same profile."""
import re

import harness
import html_page
from browser import browse
from html_page import READY, folded, number, report, steps, with_frame

chromium, saved, stacks, page = html_page.chromium, html_page.saved, html_page.stacks, html_page.page  # fixtures


def test_draws_what_the_folded_stacks_say(page, stacks):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  return page.evaluate(() => {
    const { canvas, tree } = document.querySelector(".host").flame;
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    const byFunction = {};
    for (let i = 1; i < tree.count; i++) {
      const name = tree.keys.name[tree.key[i]];
      byFunction[name] = (byFunction[name] || 0) + tree.self[i];
    }
    return { colours: new Set(pixels).size, total: tree.total[0], byFunction,
             summary: document.querySelector("[data-testid=summary]").textContent, title: document.title };
  });
"""
            % READY
        ),
    )
    assert told["colours"] > 10
    assert told["total"] == harness.total(stacks) > 200
    assert "%s samples" % format(harness.total(stacks), ",") in told["summary"]
    assert "999 Hz" in told["summary"] and "python3" in told["title"]
    leaves = {}
    for stack, count in stacks:
        leaves[stack[-1].name] = leaves.get(stack[-1].name, 0) + count
    shown = {name: count for name, count in told["byFunction"].items() if count}
    # Misleading marks are spelt out in the page.
    assert {re.sub(r"\\u([0-9a-f]{4})", lambda m: chr(int(m.group(1), 16)), name): n for name, n in shown.items()} == leaves


def test_search_tells_the_matched_share(page, stacks):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const out = [];
  for (const pattern of argument) {
    await page.keyboard.press("/");
    await page.fill("input[type=search]", pattern);
    await page.waitForFunction((p) => new URLSearchParams(location.hash.slice(1)).get("q") === p, pattern);
    await calm();
    out.push(await page.textContent("[data-testid=matched]"));
  }
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("q="));
  out.push(await page.textContent("[data-testid=matched]"));
  return out;
"""
            % READY
        ),
        argument=[r"^leaf ", r"inner|again", "AGAIN", "nothing_is_called_so", "("],
    )
    everything = harness.total(stacks)
    for text, pattern in zip(told, ("^leaf ", "inner|again")):
        found = with_frame(stacks, pattern)
        assert 0 < found
        assert number(text.split("samples, ")[1]) == found
        assert abs(float(re.match(r"([\d.]+) %", text).group(1)) - 100 * found / everything) < 0.06
    assert number(told[2].split("samples, ")[1]) == number(told[3].split("samples, ")[1]) == 0
    assert told[4].startswith("Not a regular expression: unterminated group") and told[4].endswith(r"\(")
    assert told[5] == ""


def test_zoom_by_click_keys_and_link(page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const label = () => page.evaluate(() => {
    const { tree, zoomed, view } = document.querySelector(".host").flame;
    return [zoomed ? tree.keys.name[tree.key[zoomed]] : "all", view.size, tree.size[zoomed]];
  });
  const size = () => page.evaluate(() => document.querySelector(".host").flame.view.size);
  const still = () => calm(size);
  const at = await page.evaluate(place, "main");
  await page.mouse.move(at.x, at.y);
  await page.waitForSelector("[role=tooltip]");
  const tip = await page.textContent("[role=tooltip]");
  await page.mouse.click(at.x, at.y);
  await still();
  const clicked = await label();
  const details = await page.textContent("[data-testid=details]");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await still();
  const below = await label();
  const link = page.url();
  await page.goBack();
  await still();
  const back = await label();
  await page.keyboard.press("Escape");
  await still();
  const reset = await label();
  const other = await context.newPage();
  await other.goto(link);
  await other.waitForFunction(() => window.pybpf && window.pybpf.drawn_ms > 0);
  const linked = await other.evaluate(() => {
    const { tree, zoomed } = document.querySelector(".host").flame;
    return tree.keys.name[tree.key[zoomed]];
  });
  return { tip, clicked, details, below, back, reset, linked, link };
"""
            % READY
        ),
    )
    assert told["clicked"][0] == told["back"][0] == "main"
    assert abs(told["clicked"][1] - told["clicked"][2]) < 1e-6, "the view is not what was zoomed to"
    assert "main" in told["tip"] and "total" in told["tip"] and "program.py" in told["tip"]
    assert "self" in told["details"] and "program.py:" in told["details"]
    assert told["below"][0] not in ("all", "main")
    assert told["linked"] == told["below"][0]
    assert told["reset"][0] == "all"


def test_filters_and_link_restore_everything(saved, page):
    told = browse(
        page,
        steps(
            """
  await page.goto(address);
  %s
  const total = () => page.evaluate(() => document.querySelector(".host").flame.tree.total[0]);
  const choices = await page.$$eval("[aria-label=Thread] option", (all) => all.map((o) => [o.value, o.textContent]));
  const totals = {};
  for (const [value, text] of choices) {
    await page.selectOption("[aria-label=Thread]", value);
    await calm();
    totals[text] = await total();
  }
  await page.click(".more");
  await page.selectOption("[aria-label=Detail]", "line");
  await page.selectOption("[aria-label=Order]", "by name");
  await page.selectOption("[aria-label='Graph grows']", "flame");
  await page.selectOption("[aria-label=Colours]", "kind");
  await page.fill("input[type=search]", "leaf");
  await page.waitForSelector("[data-testid=matched] b");
  const state = (p) => p.evaluate(() => {
    const { tree, upward } = document.querySelector(".host").flame;
    return { total: tree.total[0], byLine: tree.keys.byLine, upward, keys: Array.from(tree.key.slice(0, 40)),
             matched: document.querySelector("[data-testid=matched]").textContent,
             chosen: [...document.querySelectorAll("select")].map((s) => s.value) };
  });
  await calm();
  const before = await state(page);
  const other = await context.newPage();
  await other.goto(page.url());
  await other.waitForFunction(() => window.pybpf && window.pybpf.drawn_ms > 0);
  return { totals, before, after: await state(other) };
"""
            % READY
        ),
    )
    assert told["before"] == told["after"]
    assert told["before"]["byLine"] and told["before"]["upward"]
    totals = told["totals"]
    assert len(totals) == 3 and totals.pop("all") == sum(totals.values())
    for thread, total in totals.items():
        tid = re.search(r"\((\d+)\)$", thread).group(1)
        only = report(saved / "report.pybpf", saved / "thread.folded", "--thread", tid)
        assert total == harness.total(folded(only)) > 0


def test_table_and_callers(page, stacks):
    told = browse(
        page,
        steps(
            """
  await page.goto(address + "#view=table");
  await page.waitForSelector(".rows .row");
  const rows = () => page.$$eval(".rows .row", (all) => all.map((row) => ({
    name: row.querySelector("b").textContent,
    self: row.querySelectorAll("small")[0].textContent,
    total: row.querySelectorAll("small")[1].textContent,
    place: row.querySelector(".place")?.textContent ?? "",
  })));
  const bySelf = await rows();
  await page.click("button.total");
  await calm();
  const byTotal = await rows();
  await page.click(".row:has(b:text-is('again')) .callers-of");
  await page.waitForSelector("[data-testid=callers]");
  await calm();
  const callers = await page.evaluate(() => {
    const [above, below] = [...document.querySelectorAll(".host")].map((host) => host.flame.tree);
    const names = (tree, depth) => {
      const found = {};
      for (let i = 1; i < tree.count; i++) if (tree.depth[i] === depth) {
        const name = tree.keys.name[tree.key[i]];
        found[name] = (found[name] || 0) + tree.total[i];
      }
      return found;
    };
    return { total: above.total[0], first: names(above, 1), second: names(above, 2), below: below.total[0] };
  });
  await page.goto(address + "#view=table&sort=total");
  await page.waitForSelector(".rows .row");
  await page.click(".row:has(b:text-is('inner')) button.name");
  await page.waitForFunction(() => document.querySelector(".host")?.flame?.drawn > 0);
  const chosen = await page.textContent("[data-testid=matched]");
  return { bySelf, byTotal, callers, chosen };
"""
        ),
    )
    functions = {}
    for stack, count in stacks:
        own = [frame.name if frame.file == "program.py" else None for frame in stack]
        for name in set(own):
            functions.setdefault(name, [0, 0])[1] += count
        functions[own[-1]][0] += count
    for rows in (told["bySelf"], told["byTotal"]):
        for name in ("leaf", "again", "inner", "right", "main"):
            row = next(row for row in rows if row["name"] == name and row["place"].startswith("program.py"))
            assert [number(row["self"]), number(row["total"])] == functions[name], name
    selfs = [number(row["self"]) for row in told["bySelf"]]
    totals = [number(row["total"]) for row in told["byTotal"]]
    assert selfs == sorted(selfs, reverse=True) and totals == sorted(totals, reverse=True)
    # Recursion counts once, and its caller is who called it from outside.
    again = functions["again"][1]
    assert told["callers"] == {"total": again, "first": {"again": again}, "second": {"main": again}, "below": again}
    assert number(told["chosen"].split("samples, ")[1]) == functions["inner"][1]


def test_time_line_and_sources(page, stacks, saved):
    told = browse(
        page,
        steps(
            """
  await page.goto(address + "#view=time");
  await page.waitForFunction(() => document.querySelector(".host")?.timeline?.boxes.length > 10);
  const line = () => page.evaluate(() => {
    const { lanes, boxes, view, tree } = document.querySelector(".host").timeline;
    const names = new Set(boxes.map((b) => tree.keys.name[tree.key[b.node]]));
    return { lanes: lanes.map((l) => [l.label, l.times.length]), names: [...names], view };
  });
  const whole = await line();
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowRight");
  // The address follows when no key has come for a moment; where that passes between the two, it has the first alone.
  await page.waitForFunction(() => {
    const view = document.querySelector(".host").timeline.view.map(Math.round).join("-");
    return new URLSearchParams(location.hash.slice(1)).get("t") === view;
  });
  const zoomed = await line();
  const link = page.url();
  const other = await context.newPage();
  await other.goto(link);
  await other.waitForFunction(() => document.querySelector(".host")?.timeline?.boxes.length > 0);
  const linked = await other.evaluate(() => document.querySelector(".host").timeline.view);
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !location.hash.includes("t="));
  await page.keyboard.press("6");
  await page.waitForSelector("[data-testid=code] .line");
  await page.click("[data-testid=sources] nav button:has-text('program.py')");
  await page.waitForSelector("[data-testid=code] .head code:has-text('program.py')");
  await calm();
  const code = await page.$$eval("[data-testid=code] .rows .line", (all) => all.map((l) => [...l.children].map((c) => c.textContent)));
  await page.keyboard.press("7");
  const run = await page.textContent("[data-testid=run]");
  return { whole, zoomed, linked, code, run };
"""
        ),
        # A thread's rows are as many as its deepest stack has frames, which may be one of many imports; what is below
        # the window's edge is not drawn.
        height=2400,
    )
    everything = harness.total(stacks)
    assert len(told["whole"]["lanes"]) == 2
    assert sum(n for _, n in told["whole"]["lanes"]) == everything, "a sample lacks its time"
    assert {"main", "right", "leaf"} <= set(told["whole"]["names"])
    begin, end = told["zoomed"]["view"]
    assert end - begin < told["whole"]["view"][1] * 0.7
    assert all(abs(x - y) < 2 for x, y in zip(told["zoomed"]["view"], told["linked"]))
    text = (saved / "program.py").read_text(encoding="utf-8").split("\n")
    lines = {int(n): (self_share, code) for self_share, _, n, code in told["code"]}
    for n, (_, code) in lines.items():
        assert code == text[n - 1].replace("\t", "    ")
    hot = {}
    for stack, count in stacks:
        leaf = stack[-1]
        if leaf.file.endswith("program.py"):
            hot[leaf.line] = hot.get(leaf.line, 0) + count
    assert set(hot) <= set(lines) and len(hot) > 3, (hot, lines)
    n = max(hot, key=hot.get)
    assert abs(float(lines[n][0].split()[0]) - 100 * hot[n] / everything) < 0.06
    assert "999 Hz" in told["run"] and "With Python frames" in told["run"]
