# SPDX-License-Identifier: Apache-2.0
"""Readers of our formats that come from npm, and what drives Chromium: one node_modules folder in the tests' cache.

Fetched once, in these versions, into the cache folder of tests/e2e/pythons.py, which work trees share. Each list of
packages has its own folder, so that work trees with different lists do not take them from each other.
"""
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess

import pythons

# Exact versions; npm chooses those of their few dependencies.
PACKAGES = (
    "speedscope@1.25.0",
    "d3-flame-graph@5.0.0",
    "@firefox-devtools/profiler-cli@0.10.0",  # Firefox Profiler's own processing code
    "ajv@8.20.0",  # JSON schemas
    "playwright-core@1.65.1",  # drives the system's Chromium
    "axe-core@4.14.1",  # faults of a page for who does not see it, or has no mouse
)
CHROMIUM = "/usr/bin/chromium-headless-shell"


class Missing(Exception):
    """Why a package, or a program, is not there."""


def program(name):
    """Its path, or Missing."""
    found = shutil.which(name)
    if not found:
        raise Missing("%s is not installed; tools/install-deps --test installs it" % name)
    return found


@functools.lru_cache(maxsize=None)
def node_modules():
    """The folder that holds the packages."""
    npm, listed = program("npm"), hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()
    home = pythons.cache() / ("npm-" + listed[:12])
    home.mkdir(parents=True, exist_ok=True)
    whole = home / "packages.txt"  # written last
    with open(home / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not whole.exists() or whole.read_text(encoding="utf-8").split() != list(PACKAGES):
            whole.unlink(missing_ok=True)
            shutil.rmtree(home / "node_modules", ignore_errors=True)
            argv = [npm, "install", "--prefix", str(home), "--no-save", "--no-package-lock", "--no-audit", "--no-fund"]
            # No package needs its scripts, so none gets to run any.
            argv += ["--ignore-scripts", "--loglevel=error", *PACKAGES]
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            if done.returncode:
                raise Missing("npm install failed: " + done.stdout.strip().split("\n")[-1])
            whole.write_text("\n".join(PACKAGES) + "\n", encoding="utf-8")
    return home / "node_modules"


def package(name):
    """The folder of one of them."""
    return node_modules() / name


def chromium():
    """The path of Chromium, which playwright-core drives."""
    if not os.access(CHROMIUM, os.X_OK):
        raise Missing("%s is not installed; tools/install-deps --test installs it" % CHROMIUM)
    return CHROMIUM


def node(script, *args, stdin=None, timeout=120):
    """Runs a script (its text, CommonJS) that finds the packages; returns what it prints."""
    done = subprocess.run(
        [program("node"), "-e", script, "--", *map(str, args)],
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "NODE_PATH": str(node_modules())},
        timeout=timeout,
        text=True,
    )
    assert done.returncode == 0, "node ended with %d: %s" % (done.returncode, done.stderr[-2000:])
    return done.stdout
