# SPDX-License-Identifier: Apache-2.0
"""A recording of tests/targets/readers.py, and what is known of it: from the program itself, and from the JSON format.

Readers of the other formats are held against this.
"""

import json
import sys
from collections import defaultdict

import pytest

import formats
import harness
import pythons

sys.path.insert(0, str(harness.TOP / "tests"))

import node_peers  # noqa: E402
import peers  # noqa: E402

TARGET = pythons.TARGETS / "readers.py"
RATE = 999
THREADS = ("heavy worker", "light;<worker>")  # the program's own; beside them there is the main thread


class Known:
    def __init__(self, folder):
        self.folder, self.saved = folder, folder / "run.pybpf"
        command = harness.default_python().command(TARGET.name, str(folder))
        options = ("-F", RATE, "--timestamps", "--python-only", "--full-filenames", "-o", self.saved)
        run = harness.pybpf(*options, "--", *command)
        assert run.code == 0, run.err
        self.truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
        self.document = json.loads(self.path(".json").read_text(encoding="utf-8"))
        self.period_ns = self.document["measure"]["period_ns"]
        self.stacks = defaultdict(list)  # TID -> [([Frame, root first], samples)]
        for sample in self.document["samples"]:
            tid = self.document["threads"][sample["thread"]]["tid"]
            stack = [harness.Frame(f["name"], f["file"], f["line"]) for f in self.frames_of(sample)]
            self.stacks[tid].append((stack, sample["value"]))
        self.names = {thread["tid"]: thread["name"] for thread in self.document["threads"]}

    def frames_of(self, sample):
        """The frames of a sample of the JSON format, root first."""
        stack, found = sample["stack"], []
        while stack is not None:
            entry = self.document["stacks"][stack]
            found.insert(0, self.document["frames"][entry["frame"]])
            stack = entry["parent"]
        return found

    def definitions(self):
        """{(name, file, first line): [own samples, samples]}: two functions of one name in one file are two."""
        found = defaultdict(lambda: [0, 0])
        for sample in self.document["samples"]:
            keys = [(frame["name"], frame["file"], frame["first_line"]) for frame in self.frames_of(sample)]
            found[keys[-1]][0] += sample["value"]
            for key in set(keys):
                found[key][1] += sample["value"]
        return found

    def path(self, suffix, *options):
        return formats.report(self.saved, suffix, *options)

    def totals(self, tid=None):
        """formats.Totals of one thread, or of all."""
        return formats.totals(sum(self.stacks.values(), []) if tid is None else self.stacks[tid])

    def samples(self, tid=None):
        return self.totals(tid).all

    def close(self, samples, seconds):
        """What is sampled at random spreads by the root of its number."""
        wanted = seconds * 1e9 / self.period_ns
        return abs(samples - wanted) <= 5 * wanted**0.5

    def tid(self, name):
        (found,) = [tid for tid, called in self.names.items() if called == name]
        return found


def hot(functions, least=50):
    """Without what start-up spent."""
    return {name: count for name, count in functions.items() if count >= least}


def needs(reader):
    """What a reader's function returns; where it cannot be had, the test is skipped with the reason."""
    try:
        return reader()
    except (node_peers.Missing, peers.Missing) as missing:
        pytest.skip(str(missing))
