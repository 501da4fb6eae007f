# SPDX-License-Identifier: Apache-2.0
"""Flame graphs of real readers: flamegraph.pl, stackcollapse-perf.pl, inferno."""

import os
import re
import subprocess
import xml.etree.ElementTree
from collections import Counter

import pytest

import formats
import harness
import known as knowledge
from known import hot

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def flame_graph():
    return knowledge.needs(knowledge.peers.flame_graph)


@pytest.fixture(scope="module")
def inferno():
    """cargo flamegraph, which has inferno in it."""
    return knowledge.needs(knowledge.peers.readers) / "flamegraph"


# ------------------------------------------------------------------------------------------------ what is known


def test_the_record_is_true(known):
    """Each thread's CPU time, and that of each line, is what the program itself measured."""
    assert {each["name"] for each in known.truth} == set(knowledge.THREADS)
    for thread in known.truth:
        sums = known.totals(thread["tid"])
        assert known.names[thread["tid"]] == thread["name"]
        assert known.close(sums.all, thread["cpu_s"])
        for name, path, lines in thread["spent"]:
            assert known.close(sums.self[name, path], sum(spent for _, spent in lines)), name
            for line, spent in lines:
                assert known.close(sums.line_self[name, path, line], spent), (name, line)


# ------------------------------------------------------------------------------------------------ folded stacks


def boxes(svg):
    """Counter of (title without its numbers) -> samples, and what the whole has."""
    found, whole = Counter(), None
    for group in xml.etree.ElementTree.fromstring(svg).iter(SVG + "g"):
        title = group.findtext(SVG + "title") or ""
        match = re.fullmatch(r"(.*) \(([\d,]+) samples?, [\d.]+%\)", title, re.S)
        if match:
            name, count = match[1], int(match[2].replace(",", ""))
            if name == "all":
                whole = count
            else:
                found[name] += count
    return found, whole


def assert_folded(svg, known, spell=str):
    """Every function with its file and line that has a share to see, and every thread."""
    found, whole = boxes(svg)
    assert whole == known.samples()
    wanted = Counter()
    for (name, path, line), count in known.totals().line_self.items():
        wanted[spell("%s (%s:%s)" % (name, path, line))] += count
    shown = {harness.unescape(name): count for name, count in found.items()}
    assert hot(wanted).items() <= shown.items()
    assert len(hot(wanted)) > 10
    for tid, name in known.names.items():
        assert shown[spell("%s (%d)" % (name, tid))] == known.samples(tid)


def perl(script, *args):
    done = subprocess.run(["perl", str(script), *map(str, args)], capture_output=True, timeout=harness.PATIENCE)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
    return done.stdout


def test_flamegraph_pl(known, flame_graph):
    svg = perl(flame_graph / "flamegraph.pl", known.path(".folded", "--threads"))
    assert_folded(svg.decode(), known)


def test_flamegraph_pl_of_debian(known):
    """It is of 2014: it shows <> as (), and cuts labels (not titles) between the bytes of a character."""
    if not os.path.exists(formats.FLAMEGRAPH):
        pytest.skip("Debian's libdevel-nytprof-perl, which has flamegraph.pl, is missing")
    svg = perl(formats.FLAMEGRAPH, known.path(".folded", "--threads")).decode(errors="replace")
    assert_folded(svg, known, lambda text: text.replace("<", "(").replace(">", ")"))


def through_inferno(inferno, text, folder, *post):
    """What inferno collapses perf script's text to, or what is taken instead of it; and its flame graph."""
    script = folder / "perf"  # it asks perf for the text
    script.write_text('#!/bin/sh\nexec cat "$PERF_TEXT"\n', encoding="utf-8")
    script.chmod(0o755)
    environment = {**os.environ, "PERF": str(script), "PERF_TEXT": str(text)}
    argv = [inferno, "--perfdata", text, "-o", folder / "inferno.svg"]
    argv += ["--post-process", " ".join(post or ("tee", str(folder / "collapsed")))]
    done = subprocess.run(list(map(str, argv)), capture_output=True, timeout=harness.PATIENCE, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "collapsed", (folder / "inferno.svg").read_text(encoding="utf-8")


def test_inferno_flamegraph(known, inferno, tmp_path):
    folded = known.path(".folded", "--threads")
    instead = tmp_path / "instead"  # of the stacks that it gets, which it must read
    instead.write_text('#!/bin/sh\ncat >/dev/null\nexec cat "$1"\n', encoding="utf-8")
    _, svg = through_inferno(inferno, known.path(".perf"), tmp_path, "sh", str(instead), str(folded))
    assert_folded(svg, known)


# ------------------------------------------------------------------------------------------------ perf script's text


def tidied(name):
    """As stackcollapse-perf.pl and inferno-collapse-perf spell a function: C++'s arguments are cut, and no name has a
    separator."""
    return re.sub(r"\(.*", "", name.replace(";", ":"))


def collapsed(text):
    """{thread: {leaf: nanoseconds}} of collapsed stacks."""
    found = {}
    for row in text.splitlines():
        stack, count = row.rsplit(" ", 1)
        thread, *frames = stack.split(";")
        functions = found.setdefault(thread, Counter())
        functions[frames[-1]] += int(count)
    return found


def assert_collapsed(found, known, spell, thread):
    """The CPU time of each function in each thread."""
    wanted = {}
    for tid, name in known.names.items():
        functions = Counter()
        for (function, _), count in known.totals(tid).self.items():
            functions[spell(function)] += count * int(known.period_ns)
        wanted[thread(tid, name)] = +functions
    # Functions of one name have their file behind it.
    plain = {thread: Counter() for thread in found}
    for thread, functions in found.items():
        for function, count in functions.items():
            plain[thread][re.sub(r" \[[^ ]*\]$", "", function)] += count
    assert plain == wanted


def test_stackcollapse_perf(known, flame_graph):
    text = perl(flame_graph / "stackcollapse-perf.pl", "--tid", known.path(".perf")).decode()
    pid = known.document["processes"][0]["pid"]

    def thread(tid, name):
        return "%s-%d/%d" % (tidied(name).replace(" ", "_"), pid, tid)

    # The script takes quotes away, too.
    assert_collapsed(collapsed(text), known, lambda name: re.sub("[\"']", "", tidied(name)), thread)


def test_inferno_collapse_perf(known, inferno, tmp_path):
    path, svg = through_inferno(inferno, known.path(".perf"), tmp_path)
    text = path.read_text(encoding="utf-8")
    assert_collapsed(collapsed(text), known, tidied, lambda _, name: tidied(name).replace(" ", "_"))
    _, whole = boxes(svg)
    assert whole == known.samples() * int(known.period_ns)


def test_functions_of_one_name(known, inferno, tmp_path):
    path, _ = through_inferno(inferno, known.path(".perf"), tmp_path)
    values = collapsed(path.read_text(encoding="utf-8")).values()
    counts = sorted(count for functions in values for name, count in functions.items() if name.startswith("same"))
    same = [count for (name, _), count in known.totals().self.items() if name == "same"]
    assert counts == sorted(count * int(known.period_ns) for count in same) and len(same) == 2
