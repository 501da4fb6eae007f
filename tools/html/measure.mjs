// SPDX-License-Identifier: Apache-2.0
// How long flame graph libraries take for 50,000 stacks of 40 frames in Chromium: the figures in tools/html/README.md.
// Usage: npm install --no-save d3-flame-graph@5 flame-chart-js@3 speedscope@1 playwright-core@1
//        node measure.mjs [STACKS [REPORT.html]]
// REPORT.html is one of ours, which is measured in their place.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import path from "node:path";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const REPORT = process.argv[3] && path.resolve(process.argv[3]);
const STACKS = Number(process.argv[2] ?? 50000);
const DEPTH = 40;
const SAMPLES = 20; // of each stack on average: a million in all
const FUNCTIONS = 2000;
const PATIENCE_MS = 120000;
const require = createRequire(import.meta.url);
const modules = path.dirname(path.dirname(require.resolve("playwright-core/package.json")));

// Each stack shares a random part of the one before it, as stacks of a real program do.
function* stacks() {
  let seed = 1;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647; // minimal standard generator
  const stack = Array.from({ length: DEPTH }, (_, i) => i);
  for (let n = 0; n < STACKS; n++) {
    for (let i = Math.floor(random() * DEPTH); i < DEPTH; i++) stack[i] = Math.floor(random() * FUNCTIONS);
    yield { frames: stack, value: 1 + Math.floor(random() * 2 * SAMPLES) };
  }
}

const label = (f) => `function_${f} (package_${f % 30}/module_${f % 200}.py:${f})`;

function tree() {
  let nodes = 1;
  const root = { name: "all", value: 0, children: new Map() };
  for (const { frames, value } of stacks()) {
    let at = root;
    at.value += value;
    for (const f of frames) {
      let next = at.children.get(f);
      if (!next) {
        at.children.set(f, (next = { name: label(f), value: 0, children: new Map() }));
        nodes++;
      }
      next.value += value;
      at = next;
    }
  }
  const plain = (n) => ({ name: n.name, value: n.value, children: [...n.children.values()].map(plain) });
  return { root: plain(root), nodes };
}

const timed = (root) => {
  const place = (n, start) => {
    n.start = start;
    n.duration = n.value;
    for (const child of n.children) {
      place(child, start);
      start += child.value;
    }
    delete n.value;
    return n;
  };
  return [place(root, 0)];
};

function folded() {
  const rows = [];
  for (const { frames, value } of stacks()) rows.push(`${frames.map(label).join(";")} ${value}`);
  return rows.join("\n") + "\n";
}

async function bundled(contents) {
  const stdin = { contents, resolveDir: path.dirname(modules) };
  const done = await build({ stdin, bundle: true, format: "esm", write: false, loader: { ".css": "empty" } });
  return done.outputFiles[0].text;
}

const page = (script) => `<!doctype html><meta charset=utf-8><body style="margin:0">${script}`;
const painted = `const painted = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
  const clock = async (f) => { const t = performance.now(); await f(); await painted(); return performance.now() - t; };`;

const { root, nodes } = tree();
const files = {
  "/tree.json": () => JSON.stringify(root),
  "/d3.js": () => bundled('export { default as flamegraph } from "d3-flame-graph"; export { select } from "d3-selection";'),
  "/chart.js": () => bundled('export { FlameChart } from "flame-chart-js";'),
  "/d3": () =>
    page(`<div id=chart></div><script type=module>
  import { flamegraph, select } from "./d3.js";
  ${painted}
  window.run = async () => {
    const data = await (await fetch("tree.json")).json(), out = {};
    const chart = flamegraph().width(1280).transitionDuration(0).minFrameSize(0.5);
    chart.setSearchMatch((d, term) => new RegExp(term).test(d.data.name));
    out.draw = await clock(() => select("#chart").datum(data).call(chart));
    out.elements = document.querySelectorAll("#chart g").length;
    out.search = await clock(() => chart.search("function_77"));
    out.zoom = await clock(() => { const g = document.querySelectorAll("#chart g.frame"); chart.zoomTo(select(g[5]).datum()); });
    out.reset = await clock(() => chart.resetZoom());
    return out;
  };
  window.ready = true;</script>`),
  "/chart": () =>
    page(`<canvas id=c width=1280 height=800></canvas><script type=module>
  import * as lib from "./chart.js";
  ${painted}
  window.run = async () => {
    const data = (${timed})(await (await fetch("tree.json")).json()), out = {};
    let chart;
    out.draw = await clock(() => { chart = new lib.FlameChart({ canvas: document.getElementById("c"), data }); });
    out.zoom = await clock(() => chart.setZoom(0, data[0].duration / 50));
    out.reset = await clock(() => chart.setZoom(0, data[0].duration));
    return out;
  };
  window.ready = true;</script>`),
  "/stacks.txt": folded,
};
const server = createServer(async (request, response) => {
  const url = decodeURIComponent(request.url.split("?")[0]);
  try {
    const own = files[url];
    const body = own ? await own() : await readFile(path.join(modules, "speedscope/dist/release", url.replace(/^\/ss/, "")));
    const type = url.endsWith(".js") ? "text/javascript" : url.endsWith(".css") ? "text/css" : own && !url.includes(".") ? "text/html" : url.endsWith("html") ? "text/html" : "text/plain";
    response.writeHead(200, { "content-type": type }).end(body);
  } catch {
    response.writeHead(404).end();
  }
}).listen(0, "127.0.0.1");
await new Promise((r) => server.once("listening", r));
const base = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

async function measure(name, work) {
  const tab = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  const errors = [];
  tab.on("pageerror", (e) => errors.push(String(e).slice(0, 200)));
  try {
    const late = new Promise((_, no) => setTimeout(() => no(new Error(`not done after ${PATIENCE_MS / 1000} s`)), PATIENCE_MS).unref());
    const result = await Promise.race([work(tab), late]);
    const heap = await tab.evaluate(() => performance.memory?.usedJSHeapSize >> 20);
    console.log(name, JSON.stringify({ ...result, heap_mb: heap }), errors.join("; "));
  } catch (e) {
    console.log(name, "FAILED", String(e).slice(0, 300), errors.join("; "));
  }
  await Promise.race([tab.close(), new Promise((r) => setTimeout(r, 5000))]);
}

async function ourReport(tab) {
  const out = {};
  const clock = async (name, act, done) => {
    await tab.evaluate(() => (window.longest = 0));
    const start = performance.now();
    await act();
    await tab.waitForFunction(done, null, { polling: "raf", timeout: PATIENCE_MS });
    out[name] = Math.round(performance.now() - start);
    out[name + "_longest_task"] = await tab.evaluate(() => new Promise((r) => setTimeout(() => r(window.longest), 100)));
  };
  const drawn = () => [...document.querySelectorAll(".host")].some((h) => h.flame?.drawn > 1);
  await tab.addInitScript(() => {
    new PerformanceObserver((list) => list.getEntries().forEach((e) => (window.longest = Math.max(window.longest ?? 0, e.duration)))).observe({ type: "longtask" });
  });
  await clock("open", () => tab.goto("file://" + REPORT), drawn);
  await clock("search", () => tab.fill("input[type=search]", "function_77"), () => /%/.test(document.querySelector("[data-testid=matched]").textContent));
  await clock("zoom", () => tab.mouse.click(300, 300), () => /zoom=/.test(location.hash));
  await clock("table", () => tab.keyboard.press("4"), () => document.querySelectorAll(".rows .row").length > 0);
  await clock("callers", () => tab.click(".rows .callers-of"), drawn);
  await clock("time", () => tab.click("text=By time"), () => document.querySelector(".host")?.timeline?.boxes.length > 0);
  return out;
}

console.log(`${STACKS} stacks, ${nodes} nodes; ${browser.version()}`);
if (REPORT) {
  await measure("report", ourReport);
} else {
  await measure("d3-flame-graph", async (tab) => {
    await tab.goto(base + "/d3");
    await tab.waitForFunction("window.ready");
    return tab.evaluate("run()");
  });
  await measure("flame-chart-js", async (tab) => {
    await tab.goto(base + "/chart");
    await tab.waitForFunction("window.ready");
    return tab.evaluate("run()");
  });
  await measure("speedscope", async (tab) => {
    const start = performance.now();
    await tab.goto(`${base}/ss/index.html#profileURL=${encodeURIComponent(base + "/stacks.txt")}`);
    await tab.waitForFunction(() => /Left Heavy/i.test(document.body.innerText), null, { timeout: PATIENCE_MS });
    const draw = performance.now() - start;
    const t = performance.now();
    await tab.keyboard.press("Control+f");
    await tab.keyboard.type("function_77");
    await tab.waitForFunction(() => /\/\s*\d+/.test(document.body.innerText), null, { timeout: 20000 }).catch(() => 0);
    return { open: draw, search: performance.now() - t };
  });
}
await Promise.race([browser.close(), new Promise((r) => setTimeout(r, 5000))]);
server.close();
process.exit(0);
