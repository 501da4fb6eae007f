# SPDX-License-Identifier: Apache-2.0
"""Profiles to make formats from, and what their folded stacks add up to: what every reader is held against."""

import base64
import gzip
import json
import os
import re
import subprocess
import xml.etree.ElementTree
from collections import Counter
from dataclasses import dataclass, field

import pytest

import harness
import native
import pythons

FLAMEGRAPH = "/usr/share/perl5/Devel/NYTProf/flamegraph.pl"  # Brendan Gregg's, in Debian's libdevel-nytprof-perl
SVG = "{http://www.w3.org/2000/svg}"
MADE = harness.TOP / "build" / "made-profiles"
TARGET = pythons.TARGETS / "formats.py"


def report(saved, suffix, *options):
    """A format of a saved profile, beside it, with all functions that the folded stacks have; returns its path."""
    path = saved.with_suffix(suffix)
    whole = ["--importlib"] if suffix in (".txt", ".html", ".svg") else []
    done = harness.pybpf("report", saved, "-q", "-o", path, *whole, *options)
    assert done.code == 0, done.err
    return path


def made(folder):
    """What tests/unit/made_profiles.c makes: hostile.pybpf, empty.pybpf, recursive.pybpf."""
    assert MADE.exists(), "there is no %s: run make test-programs first" % MADE
    subprocess.run([str(MADE), str(folder)], check=True)
    return folder


def recorded(folder, seconds=2):
    """The profile of tests/targets/formats.py, with whole paths, and the account of its recording."""
    saved, stats = folder / "recorded.pybpf", folder / "stats.json"
    python = harness.default_python()
    command = python.command(TARGET.name, str(seconds), native.library(python))
    run = harness.pybpf("-F", 999, "--full-filenames", "--json-stats", stats, "-o", saved, "--", *command)
    assert run.code == 0, run.err
    return saved, stats


@dataclass
class Totals:
    """The samples of folded stacks: by (name, file), by (name, file, line), and all."""

    self: Counter = field(default_factory=Counter)
    total: Counter = field(default_factory=Counter)
    line_self: Counter = field(default_factory=Counter)
    line_total: Counter = field(default_factory=Counter)
    calls: Counter = field(default_factory=Counter)  # samples in which one function stood on another
    all: int = 0

    def functions(self):
        """(name, file) -> (self, total)"""
        return {key: (self.self[key], total) for key, total in self.total.items()}

    def lines(self):
        return {key: (self.line_self[key], total) for key, total in self.line_total.items()}


def totals(stacks):
    """Each sample counts once for a function, a line and a call, however often they are on its stack."""
    sums = Totals()
    for stack, count in stacks:
        names = [(frame.name, frame.file) for frame in stack]
        lines = [(frame.name, frame.file, frame.line) for frame in stack]
        sums.all += count
        sums.self[names[-1]] += count
        sums.line_self[lines[-1]] += count
        for key in set(names):
            sums.total[key] += count
        for key in set(lines):
            sums.line_total[key] += count
        for key in set(zip(names, names[1:])):
            sums.calls[key] += count
    return sums


def folded(saved, *options):
    """The stacks of a saved profile as folded text; processes of one name are one, so that there are no roots."""
    return harness.parse_all(report(saved, ".folded", "--merge", *options).read_text(encoding="utf-8"))


def html_data(path):
    """What an HTML report hands to its program: see user/output/formats/html.c."""
    scripts = re.findall(r'<script[^>]*id="data"[^>]*>([^<]*)</script>', path.read_text(encoding="utf-8"))
    assert len(scripts) == 1
    return json.loads(gzip.decompress(base64.b64decode(scripts[0])))


def flamegraph(path):
    """(title, colour) of each box that flamegraph.pl draws of a folded file."""
    if not os.path.exists(FLAMEGRAPH):
        pytest.skip("Debian's libdevel-nytprof-perl, which has flamegraph.pl, is missing")
    argv = ["perl", FLAMEGRAPH, str(path)]
    drawn = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    assert drawn.stderr == ""
    for group in xml.etree.ElementTree.fromstring(drawn.stdout).iter(SVG + "g"):
        title = group.findtext(SVG + "title")
        if title:
            yield title, group.find(SVG + "rect").get("fill")
