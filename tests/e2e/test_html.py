# SPDX-License-Identifier: Apache-2.0
"""The HTML report of a real program, in a browser without network, held beside the folded stacks of the same profile."""
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

import harness
import pythons

sys.path.insert(0, str(harness.TOP / "tests"))

import node_peers  # noqa: E402  (needs the folder)
from browser import browse  # noqa: E402

SECONDS = 2
SHOTS = harness.TOP / "build" / "screenshots"

# Two threads; names of functions and files that would harm a page that took them for markup.
PROGRAM = (
    r"""
import threading, time

END = %d  # seconds of CPU time: as many samples on a machine that has little to give

def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def left():
    while time.process_time() < END:
        leaf(2000)

def inner():
    return leaf(3000)

def right():
    while time.process_time() < END:
        inner()
        leaf(1000)

def again(depth):
    return leaf(3000) if depth == 0 else again(depth - 1)

def renamed(name, file):
    code = (lambda: leaf(3000)).__code__.replace(co_name=name, co_filename=file)
    if hasattr(code, "co_qualname"):
        code = code.replace(co_qualname=name)
    return type(leaf)(code, globals())

HARM = [renamed(*names) for names in %r]

def main():
    other = threading.Thread(target=right)
    other.start()
    while time.process_time() < END:
        for harm in HARM:
            harm()
        again(6)
        left_part()
    other.join()

def left_part():
    leaf(2000)

main()
"""
)
HARM = [
    ("</script><script>window.pwned=1</script>", "a.py"),
    ("<img src=x onerror=window.pwned=2>", "</title><script>window.pwned=3</script>.py"),
    ("javascript:window.pwned=4", "javascript:window.pwned=5"),
    ("\u202egpj.exe\u2066", "\"'><svg onload=window.pwned=6>.py"),
    ("{{7*7}}${7*7}__proto__", "constructor"),
]

TREE = "document.querySelector('.host').flame.tree"
# Where the middle of the first node with that label is drawn, on the page.
PLACE = r"""
(label) => {
  const host = document.querySelector(".host");
  const flame = host.flame, { tree, view } = flame;
  const box = flame.canvas.getBoundingClientRect();
  for (let i = 1; i < tree.count; i++) {
    if (tree.key[i] < 0 || tree.keys.name[tree.key[i]] !== label) continue;
    const x = ((tree.start[i] + tree.size[i] / 2 - view.start) / view.size) * box.width;
    return { node: i, x: box.x + x, y: box.y + flame.top(tree.depth[i]) - flame.surface.scroller.scrollTop + 10 };
  }
  return null;
}
"""
READY = "await page.waitForFunction(() => window.pybpf && window.pybpf.drawn_ms > 0);"


def steps(body):
    return "async (page, { address, context, argument }) => {\nconst place = %s;\n%s\n}" % (PLACE, body)


@pytest.fixture(scope="module")
def chromium():
    try:
        node_peers.node_modules()
        return node_peers.chromium()
    except node_peers.Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def saved(tmp_path_factory, profiler, chromium):
    """A folder with one recording, report.pybpf, and what report made of it: report.html and report.folded."""
    folder = tmp_path_factory.mktemp("html")
    program = folder / "program.py"
    program.write_text(PROGRAM % (SECONDS, HARM), encoding="utf-8")
    profile = folder / "report.pybpf"
    run = harness.pybpf("-o", profile, "--timestamps", "-F", 999, "--", "/usr/bin/python3", program)
    assert run.code == 0, run.err
    report(profile, folder / "report.html")
    report(profile, folder / "report.folded")
    return folder


def report(profile, path, *options):
    run = harness.pybpf("report", profile, "-o", path, *options)
    assert run.code == 0, run.err
    return path


def plain(text):
    """A name whose bytes the folded stacks have as \\xNN, which the harness takes for characters."""
    return text.encode("latin-1").decode("utf-8")


def folded(path):
    stacks = harness.parse(path.read_text(encoding="utf-8"))
    return [([replace(f, name=plain(f.name), text=plain(f.text)) for f in stack], n) for stack, n in stacks]


@pytest.fixture(scope="module")
def stacks(saved):
    return folded(saved / "report.folded")


@pytest.fixture(scope="module")
def page(saved):
    return saved / "report.html"


def with_frame(stacks, pattern):
    """Samples of stacks with a frame in whose text the pattern is found."""
    return sum(count for stack, count in stacks if any(re.search(pattern, frame.text) for frame in stack))


def number(text):
    return int(re.search(r"([\d,]+)", text).group(1).replace(",", ""))


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
    await page.waitForTimeout(50);
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
    assert told[4] == "no regular expression"
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
  const still = () => page.waitForTimeout(400);
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
    await page.waitForTimeout(80);
    totals[text] = await total();
  }
  await page.selectOption("[aria-label=Frame]", "line");
  await page.selectOption("[aria-label=Order]", "by name");
  await page.selectOption("[aria-label=Shape]", "flame");
  await page.selectOption("[aria-label=Colour]", "kind");
  await page.fill("input[type=search]", "leaf");
  await page.waitForSelector("[data-testid=matched] b");
  const state = (p) => p.evaluate(() => {
    const { tree, upward } = document.querySelector(".host").flame;
    return { total: tree.total[0], byLine: tree.keys.byLine, upward, keys: Array.from(tree.key.slice(0, 40)),
             matched: document.querySelector("[data-testid=matched]").textContent,
             chosen: [...document.querySelectorAll("select")].map((s) => s.value) };
  });
  await page.waitForTimeout(200);
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
    place: row.querySelector(".place").textContent,
  })));
  const bySelf = await rows();
  await page.click("button.total");
  await page.waitForTimeout(80);
  const byTotal = await rows();
  await page.click(".row:has(b:text-is('again')) .callers-of");
  await page.waitForSelector("[data-testid=callers]");
  await page.waitForTimeout(200);
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
  await page.keyboard.press("5");
  await page.waitForSelector("[data-testid=code] .line");
  await page.click("[data-testid=sources] nav button:has-text('program.py')");
  await page.waitForSelector("[data-testid=code] .head code:has-text('program.py')");
  await page.waitForTimeout(100);
  const code = await page.$$eval("[data-testid=code] .rows .line", (all) => all.map((l) => [...l.children].map((c) => c.textContent)));
  await page.keyboard.press("6");
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
    assert len(lines) > 20
    for n, (_, code) in lines.items():
        assert code == text[n - 1].replace("\t", "    ")
    hot = {}
    for stack, count in stacks:
        leaf = stack[-1]
        if leaf.file.endswith("program.py"):
            hot[leaf.line] = hot.get(leaf.line, 0) + count
    n = max(hot, key=hot.get)
    assert abs(float(lines[n][0].split()[0]) - 100 * hot[n] / everything) < 0.06
    assert "999 Hz" in told["run"] and "With Python frames" in told["run"]


def test_names_made_to_harm_run_nothing(page, stacks):
    names = {frame.name for stack, _ in stacks for frame in stack}
    assert {name for name, _ in HARM} <= names, "the program was not seen at its worst"
    told = browse(
        page,
        steps(
            """
  const shown = [];
  for (const view of ["graph", "time", "callers", "table", "source", "run"]) {
    await page.goto("about:blank");
    await page.goto(address + "#view=" + view);
    await page.waitForSelector("main > *");
    await page.waitForTimeout(150);
    shown.push(await page.textContent("#app"));
    if (view === "graph") {
      const at = await page.evaluate(place, argument);
      await page.mouse.move(at.x, at.y);
      await page.waitForSelector("[role=tooltip]");
      shown.push(await page.textContent("[role=tooltip]"));
      await page.mouse.click(at.x, at.y);
      await page.click("[data-testid=details] >> text=Callers");
      await page.waitForTimeout(150);
      shown.push(await page.textContent("#app"));
    }
    if (await page.evaluate(() => "pwned" in window)) throw new Error("a name became a script in the view " + view);
  }
  const harmed = await page.evaluate(() => [...document.querySelectorAll("img, svg, iframe, #app script, a[href]")].length);
  return { shown, harmed, title: await page.title() };
"""
        ),
        argument=HARM[0][0],
    )
    assert told["harmed"] == 0
    everything = "\n".join(told["shown"])
    assert HARM[0][0] in everything and HARM[1][0] in everything, "names are not shown as they are"
    assert "\u202e" not in everything and "\\u202egpj.exe" in everything


def test_a_link_made_to_harm_shows_a_view_all_the_same(page):
    told = browse(
        page,
        steps(
            """
  const shown = [];
  for (const hash of argument) {
    await page.goto("about:blank");
    await page.goto(address + "#" + hash);
    await page.waitForSelector("main > *");
    await page.waitForTimeout(120);
    shown.push(await page.evaluate(() => [document.querySelector("main").dataset.view, "pwned" in window]));
  }
  return shown;
"""
        ),
        argument=[
            "view=<script>window.pwned=1</script>",
            "view=constructor&zoom=1e9.-1.NaN&fn=99999999&process=77&thread=-5&container=9",
            "q=%5B&fn=x&sort=toString&color=__proto__&width=valueOf&order=1&roots=process,evil&by=2",
            "view=time&t=1-1&thread=99999",
            "view=time&t=9e99-1e300",
            "view=callers&fn=999999&zoom=0.1.2",
            "view=callers&fn=-7",
            "view=source&file=..%2F..%2Fetc%2Fpasswd&process=12",
            "theme=%22onload%3D&view=table&sort=change&fn=1.5",
            "%00%ff&&&===#",
        ],
    )
    assert all(pwned is False for _, pwned in told)
    assert [view for view, _ in told][:2] == ["graph", "graph"]


def test_an_empty_profile_explains_itself(saved):
    path = report(saved / "report.pybpf", saved / "empty.html", "--focus", "^no function has this name$")
    told = browse(path, steps("""await page.goto(address); await page.waitForSelector("main"); return page.textContent("#app");"""))
    assert "No sample has Python frames" in told


def test_without_times_the_time_line_says_why(saved, tmp_path):
    twice = tmp_path / "program.py"
    twice.write_text("x = 0\nfor i in range(20000000):\n    x += i\n", encoding="utf-8")
    profile = tmp_path / "plain.pybpf"
    run = harness.pybpf("-o", profile, "-F", 999, "-d", 1, "--", "/usr/bin/python3", twice)
    assert run.code == 0, run.err
    path = report(profile, tmp_path / "plain.html", "--no-source")
    told = browse(
        path,
        steps(
            """
  await page.goto(address + "#view=time");
  await page.waitForSelector("main > *");
  const time = await page.textContent("main");
  await page.keyboard.press("5");
  await page.waitForSelector("[data-testid=code]");
  return { time, source: await page.textContent("main") };
"""
        ),
    )
    assert "No times were kept" in told["time"]
    assert "counts only" in told["source"] and "x += i" not in told["source"]


def test_a_comparison_is_red_blue_and_grey(saved, stacks):
    """The profile without `inner`, and with it: that grew, what is beside it shrank, the rest may be chance."""
    before = report(saved / "report.pybpf", saved / "before.pybpf", "--ignore", "^inner ")
    path = saved / "diff.html"
    run = harness.pybpf("diff", before, saved / "report.pybpf", "-o", path)
    assert run.code == 0, run.err
    told = browse(
        path,
        steps(
            """
  await page.goto(address);
  %s
  const colours = await page.evaluate(() => {
    const { tree, look } = document.querySelector(".host").flame;
    const c = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const found = {};
    for (let i = 0; i < tree.count; i++) {
      c.fillStyle = look.fill(i);
      c.fillRect(0, 0, 1, 1);
      const key = tree.key[i];
      found[key < 0 ? "all" : tree.keys.name[key] + " " + tree.keys.file[key]] = { colour: [...c.getImageData(0, 0, 1, 1).data], total: tree.total[i], was: tree.was[i] };
    }
    return found;
  });
  const at = await page.evaluate(place, "inner");
  await page.mouse.click(at.x, at.y);
  const details = await page.textContent("[data-testid=details]");
  await page.fill("input[type=search]", "^inner ");
  await page.waitForSelector("[data-testid=matched] b");
  const matched = await page.textContent("[data-testid=matched]");
  await page.fill("input[type=search]", "");
  await page.keyboard.press("Escape");
  await page.goto(address + "#view=table");
  await page.waitForSelector(".rows .row");
  const first = await page.$eval(".rows .row", (row) => [row.querySelector(".change").className, row.querySelector("b").textContent]);
  return { colours, details, matched, first, title: await page.title() };
"""
            % READY
        ),
    )
    inner = with_frame(stacks, "^inner ")
    red, green, blue, _ = told["colours"]["inner program.py"]["colour"]
    assert red > green + 40 and red > blue + 40
    assert (told["colours"]["inner program.py"]["was"], told["colours"]["inner program.py"]["total"]) == (0, inner)
    red, green, blue, _ = told["colours"]["main program.py"]["colour"]
    assert blue > red + 10
    grey = told["colours"]["all"]["colour"][:3]
    assert max(grey) - min(grey) < 12
    assert "grew" in told["details"] and "points" in told["details"]
    assert told["matched"].startswith("before 0 %") and number(told["matched"].split("samples, ")[1]) == inner
    assert "grew" in told["first"][0] or "shrank" in told["first"][0]
    assert "compared with" in told["title"]


@pytest.mark.parametrize("width,height", [(1280, 800), (390, 844)])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fits_its_window_in_both_themes(page, width, height, dark):
    """Leaves screenshots in build/screenshots to be looked at."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    told = browse(
        page,
        steps(
            """
  const ground = [];
  for (const view of ["graph", "time", "callers", "table", "source", "run"]) {
    await page.goto("about:blank");
    await page.goto(address + "#view=" + view);
    await page.waitForSelector("main > *");
    await page.waitForTimeout(200);
    await page.screenshot({ path: argument.replace("VIEW", view) });
    ground.push(await page.evaluate(() => ({
      wider: document.documentElement.scrollWidth - innerWidth,
      higher: document.documentElement.scrollHeight - innerHeight,
      ground: getComputedStyle(document.body).backgroundColor,
      main: document.querySelector("main").clientHeight,
    })));
  }
  return ground;
"""
        ),
        argument=str(SHOTS / ("VIEW-%d-%s.png" % (width, "dark" if dark else "light"))),
        width=width,
        height=height,
        dark=dark,
        hasTouch=width < 600,
        isMobile=width < 600,
    )
    for view in told:
        assert view["wider"] <= 0 and view["higher"] <= 0, "the page is larger than its window"
        assert view["main"] > height * 0.55
    brightness = {sum(map(int, re.findall(r"\d+", view["ground"])[:3])) for view in told}
    assert len(brightness) == 1
    assert (brightness.pop() < 200) == dark


def test_the_page_is_what_its_source_makes(tmp_path):
    """The asset that is checked in is what make html-app makes, and has the licences of what is in it."""
    made, source = tmp_path / "page", tmp_path / "html"
    shutil.copytree(harness.TOP / "tools" / "html", source, ignore=shutil.ignore_patterns("node_modules"))
    asset = (harness.TOP / "user" / "output" / "html.asset").read_bytes()
    try:
        npm = node_peers.program("npm")
    except node_peers.Missing as missing:
        pytest.skip(str(missing))
    cache = ["--cache", str(pythons.cache() / "npm-packages"), "--prefer-offline"]
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *cache],
        cwd=source,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.skip("npm ci failed, so the page cannot be made: " + done.stdout.strip().split("\n")[-1])
    subprocess.run([node_peers.program("node"), "build.mjs", made], cwd=source, check=True)
    assert made.read_bytes() == asset, "make html-app makes another user/output/html.asset of tools/html"

    text = asset.decode("utf-8")
    assert text.count("@PYBPF_DATA@") == 1
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    packages = dict(re.findall(r"^(\S+) [\d.]+ \(([\w.-]+)\)$", text, re.M))
    assert {"preact": "MIT", "d3-array": "ISC"}.items() <= packages.items()
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
