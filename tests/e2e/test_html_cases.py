# SPDX-License-Identifier: Apache-2.0
"""The HTML report of what is unusual: names and links made to harm, nothing to show, two profiles, small windows."""
import re
import subprocess
import sys
import time

import pytest

import harness
import html_page
from browser import browse
from html_page import HARM, READY, number, report, steps, with_frame

chromium, saved, stacks, page = html_page.chromium, html_page.saved, html_page.stacks, html_page.page  # fixtures
SHOTS = harness.TOP / "build" / "screenshots"


def test_names_made_to_harm_run_nothing(page, stacks):
    names = {frame.name for stack, _ in stacks for frame in stack}
    assert {name for name, _ in HARM} <= names, "the program was not seen at its worst"
    told = browse(
        page,
        steps(
            """
  const shown = [];
  for (const view of ["graph", "hot", "time", "callers", "table", "source", "run"]) {
    await page.goto("about:blank");
    await page.goto(address + "#view=" + view);
    await page.waitForSelector("main > *");
    await calm();
    shown.push(await page.textContent("#app"));
    if (view === "graph") {
      const at = await page.evaluate(place, argument);
      await page.mouse.move(at.x, at.y);
      await page.waitForSelector("[role=tooltip]");
      shown.push(await page.textContent("[role=tooltip]"));
      await page.mouse.click(at.x, at.y);
      await page.click("[data-testid=details] >> text=Callers");
      await calm();
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
    await calm();
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


def test_an_empty_profile_says_what_to_do(saved, stacks, tmp_path):
    look = steps("""await page.goto(address); await page.waitForSelector("main"); return page.textContent("#app");""")
    filtered = browse(report(saved / "report.pybpf", saved / "empty.html", "--focus", "^no function has this name$"), look)
    assert "No sample has Python frames" in filtered
    assert "let none of %s samples pass" % format(harness.total(stacks), ",") in filtered and "pybpf report FILE" in filtered
    path = tmp_path / "idle.html"
    program = [sys.executable, "-c", "print(1, flush=True); import time; time.sleep(600)"]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as idle:
        idle.stdout.readline()
        time.sleep(0.5)  # until it sleeps
        harness.pybpf("-p", idle.pid, "-d", 1, "-o", path)
        idle.kill()
    asleep = browse(path, look)
    assert "No sample has Python frames" in asleep and "takes no CPU time" in asleep
    for word in ("-d 60", "--children", "pybpf ps", "pybpf doctor"):
        assert word in asleep
    assert "filters of this report" not in asleep


def test_without_times_the_time_line_says_why(saved, tmp_path):
    twice = tmp_path / "program.py"
    twice.write_text("x = 0\nfor i in range(20000000):\n    x += i\n", encoding="utf-8")
    profile = tmp_path / "plain.pybpf"
    run = harness.pybpf("-o", profile, "-F", 999, "-d", 1, "--no-timestamps", "--", "/usr/bin/python3", twice)
    assert run.code == 0, run.err
    path = report(profile, tmp_path / "plain.html", "--no-source")
    told = browse(
        path,
        steps(
            """
  await page.goto(address + "#view=time");
  await page.waitForSelector("main > *");
  const time = await page.textContent("main");
  await page.keyboard.press("6");
  await page.waitForSelector("[data-testid=code]");
  return { time, source: await page.textContent("main") };
"""
        ),
    )
    assert "No times were kept" in told["time"]
    assert "-o saved.pybpf" in told["time"] and "-o report.html" in told["time"]
    assert "without --no-timestamps" in told["time"] and "--mode=cpu" not in told["time"]
    assert "counts only" in told["source"] and "x += i" not in told["source"]


def test_a_wall_profile_without_times_has_no_time_line(tmp_path):
    profile = tmp_path / "wall.pybpf"
    run = harness.pybpf("-o", profile, "--mode=wall", "--no-timestamps", "--", "/usr/bin/python3", "-c", "import time; time.sleep(1)")
    assert run.code == 0, run.err
    path = report(profile, tmp_path / "wall.html")
    time = browse(path, steps("""
  await page.goto(address + "#view=time");
  await page.waitForSelector("main > *");
  return await page.textContent("main");
"""))
    assert "No times were kept" in time and "--no-timestamps" in time and "saved.pybpf" not in time


def test_a_comparison_has_both_sides(saved, stacks):
    """The profile without `inner`, and with it: own samples are nearly all `leaf`'s, so that no change is named."""
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
    assert (told["colours"]["inner program.py"]["was"], told["colours"]["inner program.py"]["total"]) == (0, inner)
    for name in ("all", "main program.py", "inner program.py"):
        grey = told["colours"][name]["colour"][:3]
        assert max(grey) - min(grey) < 12
    assert "points" in told["details"] and "too few samples to judge" in told["details"]
    assert told["matched"].startswith("before 0 %") and number(told["matched"].split("samples, ")[1]) == inner
    assert "noise" in told["first"][0]
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
  for (const view of ["graph", "hot", "time", "callers", "table", "source", "run"]) {
    await page.goto("about:blank");
    await page.goto(address + "#view=" + view);
    await page.waitForSelector("main > *");
    await calm();
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
