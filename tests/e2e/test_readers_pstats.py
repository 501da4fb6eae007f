# SPDX-License-Identifier: Apache-2.0
"""What snakeviz and tuna show of a pstats file: the functions, with their seconds."""

import json
import subprocess
from collections import Counter

import pytest

import harness
import known as knowledge
from known import hot


def asked(script, path):
    """What a script prints that runs where the readers are installed, about a file."""
    python = knowledge.needs(knowledge.peers.readers) / "python"
    done = subprocess.run([str(python), "-c", script, str(path)], capture_output=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode())


def seconds(samples, known, digits=6):
    return pytest.approx(samples * known.period_ns / 1e9, rel=10**-digits)


SNAKEVIZ = """
import json, pstats, sys
from snakeviz.stats import json_stats, table_rows
stats = pstats.Stats(sys.argv[1])
print(json.dumps({"table": table_rows(stats), "tree": json_stats(stats)}))
"""


def test_snakeviz(known):
    """Its table, whose numbers have four digits, and what it draws its calls from."""
    shown = asked(SNAKEVIZ, known.path(".prof"))
    rows = {harness.unescape(row[-1]): row for row in shown["table"]}
    wanted = {}
    for (name, path, line), both in known.definitions().items():
        wanted["%s:%d(%s)" % (path or "~", line or 0, name)] = both
    assert set(rows) == set(wanted)
    for name, (own, whole) in wanted.items():
        calls, own_s, _, whole_s, _, _, _ = rows[name]
        assert calls[1] == whole
        assert float(own_s) == seconds(own, known, 3) and float(whole_s) == seconds(whole, known, 3)
    tree = {harness.unescape(name): node for name, node in shown["tree"].items()}
    (spend,) = [node for name, node in tree.items() if name.endswith("(spend)")]
    children = {harness.unescape(name): call for name, call in spend["children"].items()}
    for name, (own, whole) in wanted.items():
        if own >= 50:
            assert tree[name]["stats"][2:4] == [seconds(own, known), seconds(whole, known)]
            assert children[name][1] == whole


TUNA = """
import json, sys
from tuna.main import read
print(json.dumps(read(sys.argv[1])))
"""


def test_tuna(known):
    """The widths of its boxes. It cannot share a function with several callers out, and says so in the box."""
    drawn = Counter()

    def walk(node):
        for child in node.get("children", ()):
            walk(child)
        if "value" in node:
            drawn[harness.unescape(node["text"][0])] += node["value"]

    walk(asked(TUNA, known.path(".prof")))
    own = {key: both[0] for key, both in known.definitions().items()}
    wanted = {"%s::%d::%s::self" % (path, line, name): count for (name, path, line), count in hot(own).items()}
    assert len(wanted) >= 9
    for name, samples in wanted.items():
        assert drawn[name] == seconds(samples, known)
