# SPDX-License-Identifier: Apache-2.0
"""Firefox Profiler's own code, which takes a file as its page does: sessions of its command line."""

import contextlib
import json
import os
import subprocess
import time
from collections import Counter

import harness
from known import needs, node_peers

SESSION = "tests"
TRIES = 6  # now and then the daemon and the first question miss each other, and it never answers
PAUSE_S = 0.3  # between questions, each of which starts Node.js


class Firefox:
    """A session of the command line, whose daemon the caller runs."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.environment = {**os.environ, "PROFILER_CLI_SESSION_DIR": str(folder)}
        program = node_peers.package("@firefox-devtools/profiler-cli") / "dist" / "profiler-cli.js"
        self.argv = [node_peers.program("node"), str(program)]

    def daemon(self, path, *options):
        """As the command "load" starts it, which gives it 500 ms to be ready: too little for a busy machine."""
        argv = [*self.argv, "--daemon", str(path), "--session", SESSION, *options]
        silent = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return harness.started(argv, env=self.environment, **silent)

    def run(self, *args):
        done = subprocess.run(
            [*self.argv, *map(str, args), "--session", SESSION],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.environment,
            timeout=harness.PATIENCE,
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def ask(self, *args):
        code, out, err = self.run(*args, "--json")
        assert code == 0, err or out
        return json.loads(out)

    def threads(self):
        """TID as it is written -> (name, process's name, Counter of self samples by function, handle)."""
        found = {}
        for thread in self.ask("thread", "list", "--limit", 0)["threads"]:
            functions = self.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", 0)
            leaves = Counter()
            for function in functions["functions"]:
                leaves[function["name"]] += function["selfSamples"]
            found[str(thread["tid"])] = (thread["name"], thread["processName"], +leaves, thread["threadHandle"])
        return found


@contextlib.contextmanager
def firefox(path, folder, *options):
    needs(node_peers.node_modules)
    for attempt in range(TRIES):
        session = Firefox(folder / str(attempt))
        with session.daemon(path, *options) as daemon:
            end = time.monotonic() + harness.PATIENCE / TRIES
            while daemon.poll() is None and time.monotonic() < end:
                if session.run("status")[0] == 0:
                    yield session
                    return
                time.sleep(PAUSE_S)
            assert daemon.poll() is None, "Firefox Profiler cannot read %s" % path
    raise AssertionError("Firefox Profiler does not answer: %d times in vain" % TRIES)
