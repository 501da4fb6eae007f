# SPDX-License-Identifier: Apache-2.0
"""A page in headless Chromium that has no network."""
import contextlib
import json
import os
import signal
import subprocess
import threading

import node_peers

# One Chromium for all pages of a process of tests: its start takes a second. Each page has a context of its own (nothing
# is kept from one to the next). An order is a line; what it says is a line, too. What a test does there is an async
# function of the page, the context and an argument. What the page asks for or complains about is told beside its result.
SCRIPT = r"""
const { chromium } = require("playwright-core");

async function show(browser, { path, options, steps, argument, timeout }) {
  const context = await browser.newContext(options);
  try {
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
    const result = await eval("(" + steps + ")")(page, { address, context, argument });
    return { result: result ?? null, asked, complaints };
  } finally {
    await context.close();
  }
}

(async () => {
  const browser = await chromium.launch({ executablePath: process.argv[1], args: ["--no-sandbox"] });
  for await (const order of require("readline").createInterface({ input: process.stdin })) {
    const told = await show(browser, JSON.parse(order)).catch((error) => ({ error: String(error.stack) }));
    console.log(JSON.stringify(told));
  }
  await browser.close();
})().catch((error) => {
  console.error(error);
  process.exit(1);
});
"""
PATIENCE_MS = 30000
LIMIT_S = 120  # of a page, from its opening to its end
LIMIT_OF_END_S = 10


class Browser:
    started = None

    def __init__(self):
        self.process = subprocess.Popen(
            [node_peers.program("node"), "-e", SCRIPT, "--", node_peers.chromium()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "NODE_PATH": str(node_peers.node_modules())},
            start_new_session=True,
            text=True,
        )

    def end(self):
        """Node closes the browser at the end of its input, which a killed test process makes, too."""
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LIMIT_OF_END_S)
        self.kill()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def show(self, order):
        limit = threading.Timer(LIMIT_S, self.kill)
        limit.start()
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            told = self.process.stdout.readline()
        finally:
            limit.cancel()
        assert told, "the browser ended, or took more than %d s" % LIMIT_S
        return json.loads(told)


def started():
    if not Browser.started or Browser.started.process.poll() is not None:
        Browser.started = Browser()
    return Browser.started


def end():
    """After all tests (conftest.py)."""
    if Browser.started:
        Browser.started.end()
        Browser.started = None


def browse(path, steps, argument=None, width=1280, height=800, dark=False, **options):
    """Runs steps and returns what they return. Nothing may be asked of a network, and nothing complained about."""
    options.update(viewport={"width": width, "height": height}, colorScheme="dark" if dark else "light")
    order = {"path": str(path), "options": options, "steps": steps, "argument": argument, "timeout": PATIENCE_MS}
    told = started().show(order)
    assert "error" not in told, told["error"]
    assert told["asked"] == [], "the page asked for %s" % told["asked"]
    assert told["complaints"] == [], told["complaints"]
    return told["result"]
