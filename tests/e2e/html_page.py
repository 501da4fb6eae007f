# SPDX-License-Identifier: Apache-2.0
"""A program whose report is looked at in a browser, and what tests of that page share."""
import json
import re
import sys
import time
from dataclasses import replace

import pytest

import harness

sys.path.insert(0, str(harness.TOP / "tests"))

import node_peers  # noqa: E402  (needs the folder)

SECONDS = 2
# Two threads; names of functions and files that would harm a page that took them for markup.
PROGRAM = (
    r"""
import threading, time

END = %d  # seconds of CPU time: as many samples on a machine that has little to give

def leaf(n):
    '''Adds up squares: "i" by "i".

    def is no keyword here, and # begins no comment.'''
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

# Recursion, of one function and of two in turn; names that are long, or not of Latin letters.
DEPTH = 5000
LONG = "long_" + "x" * 4000 + "_end"
NAMES = [LONG, "حساب_المجموع", "計算する関数_合計", "control\x01\x1b[31m\u202eevil"]
DEEP = r"""
import sys, time

sys.setrecursionlimit(20000)
END = %d

def leaf(n):
    total = 0
    for i in range(n):
        total += i * i
    return total

def again(depth):
    return leaf(30000) if depth == 0 else again(depth - 1)

def even(depth):
    return leaf(30000) if depth == 0 else odd(depth - 1)

def odd(depth):
    return even(depth - 1)

def renamed(name):
    code = (lambda: leaf(30000)).__code__.replace(co_name=name, co_filename="made.py")
    if hasattr(code, "co_qualname"):
        code = code.replace(co_qualname=name)
    return type(leaf)(code, globals())

NAMED = [renamed(name) for name in %r]

while time.process_time() < END:
    again(%d)
    even(400)
    for function in NAMED:
        function()
"""

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


# Waits until nothing moves any more, and what look() finds stays as it is.
CALM = """
async (look = () => null) => {
  await page.evaluate(() => {
    const ends = document.getAnimations().filter((one) => one.effect?.getComputedTiming().endTime < Infinity);
    return Promise.allSettled(ends.map((one) => one.finished)).then(() => null);
  });
  for (let last, same = 0; same < 5; ) {
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0))));
    const now = JSON.stringify(await look());
    same = now === last ? same + 1 : 0;
    last = now;
  }
}
"""


def steps(body):
    return "async (page, { address, context, argument }) => {\nconst place = %s;\nconst calm = %s;\n%s\n}" % (PLACE, CALM, body)


def report(profile, path, *options):
    """Writes the profile in the format of the path's suffix; html with all functions that the folded stacks have."""
    whole = ["--importlib"] if path.suffix == ".html" else []
    run = harness.pybpf("report", profile, "-o", path, *whole, *options)
    assert run.code == 0, run.err
    return path


def plain(text):
    """A name whose bytes the folded stacks have as \\xNN, which the harness takes for characters."""
    return re.sub("[\x80-\xff]+", lambda m: m.group().encode("latin-1").decode("utf-8"), text)


def folded(path):
    stacks = harness.parse_all(path.read_text(encoding="utf-8"))
    return [([replace(f, name=plain(f.name), text=plain(f.text)) for f in stack], n) for stack, n in stacks]


def with_frame(stacks, pattern):
    """Samples of stacks with a frame in whose text the pattern is found."""
    return sum(count for stack, count in stacks if any(re.search(pattern, frame.text) for frame in stack))


def number(text):
    return int(re.search(r"([\d,]+)", text).group(1).replace(",", ""))


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
    time.sleep(0.05)  # that it is older than the process, whose start is told in hundredths of a second
    profile = folder / "report.pybpf"
    # Samples from before the interpreter ran have neither time nor thread.
    options = ("-v", "--timestamps", "--python-only", "-F", 999)
    run = harness.pybpf("-o", profile, *options, "--", "/usr/bin/python3", program)
    assert run.code == 0, run.err
    assert "program.py: its source is left out" not in run.err, run.err
    report(profile, folder / "report.html")
    report(profile, folder / "report.folded")
    return folder


@pytest.fixture(scope="module")
def deep(tmp_path_factory, profiler, chromium):
    """A folder with a recording of DEEP with its command line, deep.pybpf, and deep.html and deep.folded of it."""
    folder = tmp_path_factory.mktemp("deep")
    program = folder / "deep.py"
    program.write_text(DEEP % (SECONDS, NAMES, DEPTH), encoding="utf-8")
    profile = folder / "deep.pybpf"
    run = harness.pybpf(
        "-o", profile, "--timestamps", "--cmdline", "-F", 499, "--", "/usr/bin/python3", program, "--token=s3cret"
    )
    assert run.code == 0, run.err
    report(profile, folder / "deep.html")
    report(profile, folder / "deep.folded")
    return folder


def timed(profile, path):
    """[(microseconds, stack as [(name, file, line)], thread)] of each sample, as the JSON lines of the profile say."""
    found = []
    for text in report(profile, path).read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        if line["type"] != "sample":
            continue
        stack = [(f["name"], f["file"], f["line"]) for f in line["stack"]]
        for time_ns, value in line["events"]:
            found += [(time_ns // 1000, stack, line["thread"]["tid"])] * value
    return found


@pytest.fixture(scope="module")
def stacks(saved):
    return folded(saved / "report.folded")


@pytest.fixture(scope="module")
def page(saved):
    return saved / "report.html"
