# SPDX-License-Identifier: Apache-2.0
"""A page in headless Chromium that has no network."""
import json

import node_peers

# What a test does there is an async function of the page, the context and an argument. What the page asks for or
# complains about is told beside its result.
SCRIPT = r"""
const { chromium } = require("playwright-core");
const { executable, path, options, argument, timeout } = JSON.parse(require("fs").readFileSync(0, "utf8"));
(async () => {
  const browser = await chromium.launch({ executablePath: executable, args: ["--no-sandbox"] });
  const context = await browser.newContext(options);
  context.setDefaultTimeout(timeout);
  await context.setOffline(true);
  const address = "file://" + path;
  const asked = [], complaints = [];
  const watch = (page) => {
    page.on("request", (r) => r.url().startsWith(address) || /^(data|about):/.test(r.url()) || asked.push(r.url()));
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && complaints.push(m.text()));
    page.on("pageerror", (e) => complaints.push(String(e.stack)));
  };
  context.on("page", watch);
  const page = await context.newPage();
  const result = await (STEPS)(page, { address, context, argument });
  await browser.close();
  console.log(JSON.stringify({ result: result ?? null, asked, complaints }));
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
"""
PATIENCE_MS = 30000


def browse(path, steps, argument=None, width=1280, height=800, dark=False, **options):
    """Runs steps and returns what they return. Nothing may be asked of a network, and nothing complained about."""
    options.update(viewport={"width": width, "height": height}, colorScheme="dark" if dark else "light")
    order = {
        "executable": node_peers.chromium(),
        "path": str(path),
        "options": options,
        "argument": argument,
        "timeout": PATIENCE_MS,
    }
    told = json.loads(node_peers.node(SCRIPT.replace("STEPS", steps), stdin=json.dumps(order)))
    assert told["asked"] == [], "the page asked for %s" % told["asked"]
    assert told["complaints"] == [], told["complaints"]
    return told["result"]
