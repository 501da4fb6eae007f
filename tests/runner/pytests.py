# SPDX-License-Identifier: Apache-2.0
"""Tests of the kernel side and from end to end, by pytest: many at a time, then those that need the machine for themselves."""
import glob
import json
import os

import tiers
from runner.commands import TOP, environment, run, say

PYTHON = "/usr/bin/python3"  # Debian's: the one that python3-pytest is for
LIMIT_S = 5400
MOST_AGAIN = 10  # failures: no load makes more
EARLIER = ", which failed in an earlier run"
LANES = 5  # on two CPUs: tests wait most of their time


def seconds_of_files():
    """What each file of tests takes (tests/seconds)."""
    with open(os.path.join(TOP, "tests/seconds"), encoding="ascii") as rows:
        return {name: float(seconds) for seconds, name in (row.split() for row in rows if not row.startswith("#"))}


def files(*folders):
    """The files of tests, those first that take longest: one that begins last has a lane for itself."""
    seconds = seconds_of_files()
    found = [path for folder in folders for path in sorted(glob.glob(folder + "/test_*.py", root_dir=TOP))]
    return sorted(found, key=lambda path: -seconds.get(path, 0))


def files_of_timed():
    """The files with tests that run alone. To collect all of them takes as long as some of these tests."""
    names = {name.partition("::")[0] + ".py" for name in tiers.TIMED}
    return [path for path in files("tests/kernel", "tests/e2e") if os.path.basename(path) in names]


def rows_of(journal):
    if not os.path.exists(journal):
        return []
    with open(journal, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def add_rows(journal, rows):
    with open(journal, "a", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)


class Suite:
    """One binary's tests. Its journal: a row for each test that ended, as tests/conftest.py writes it.

    passed: a journal of earlier runs. What passed there is left out; what failed there is in a file beside it, and has needed
    a second try if it ever passes.
    """

    def __init__(self, build, journal, tier, binary="pybpf", pythons="", expression="", passed=None):
        self.build, self.journal, self.binary, self.expression = build, journal, binary, expression
        self.variables = {"PYBPF_TIER": tier, "PYBPF_PYTHONS": pythons, "PYBPF_PASSED": passed or "",
                          "PYBPF": os.path.abspath(os.path.join(TOP, build, binary))}
        self.failures = passed + ".failed" if passed else None
        # test -> what its name is followed by, and why it failed
        self.failed = {row["test"]: (EARLIER, row["why"]) for row in rows_of(self.failures)} if passed else {}

    def count_passed(self, row, count):
        count.passed += 1
        if row["test"] in self.failed:
            when, why = self.failed[row["test"]]
            count.second_tries.append((self.name(row) + when, why))

    def run(self, arguments, count):
        """Runs pytest, shows what failed, counts what did not. Returns the rows of what failed."""
        journal = self.journal + ".now"
        if os.path.exists(journal):
            os.unlink(journal)
        # -p no:cacheprovider: root leaves nothing of its own in the tree.
        command = [PYTHON, "-B", "-m", "pytest", "-q", "-rsR", "--tb=no", "-p", "no:cacheprovider",
                   *(["-k", self.expression] if self.expression else []), *arguments]
        status = run(command, LIMIT_S, env=environment(PYBPF_JOURNAL=journal, **self.variables))
        rows = rows_of(journal)
        for row in rows:
            row["binary"] = self.binary
        bad = [row for row in rows if row["outcome"] == "failed"]
        for row in rows:
            count.times.append((row["seconds"], self.name(row)))
            if row["outcome"] == "skipped":
                count.skipped += 1
            elif row["outcome"] == "passed":
                self.count_passed(row, count)
        for row in bad:
            say("---- %s\n%s" % (self.name(row), row["why"].strip()))
            self.failed[row["test"]] = ("", row["why"])
        if status is None:
            count.fail("pytest took more than %d s" % LIMIT_S)
        elif status not in (0, 1, 5) or (status == 1 and not bad):
            count.fail("pytest ended with status %d" % status)
        # pytest-xdist ends as if there were nothing to do when one of the names is that of no test.
        told = {row["test"].partition("[")[0] for row in rows}
        for name in sorted({one.partition("[")[0] for one in arguments if "::" in one} - told):
            if not self.variables["PYBPF_PASSED"]:
                count.fail("%s did not run" % name)
        add_rows(self.journal, [row for row in rows if row not in bad])
        if self.failures:
            add_rows(self.failures, bad)
        return bad

    def name(self, row):
        return row["test"] + ("" if self.binary == "pybpf" else " (%s)" % self.binary)

    def beside_others(self, tests, count, lanes=LANES):
        return self.run(["-m", "not timed", "-n", str(lanes), "--dist", "loadfile", *tests], count)

    def alone(self, tests, count):
        """Two at a time: they wait most of it, and they have to be true beside a load, too."""
        return self.run(["-m", "timed", "-n", "2", "--dist", "loadfile", *tests], count)

    def second_try(self, bad, count):
        """Runs what failed, when nothing else runs. What fails again has failed."""
        again = bad
        if 0 < len(bad) <= MOST_AGAIN:
            say("-- again, alone: %d" % len(bad))
            again = self.run([row["test"] for row in bad], count)
            told = {row["test"] for row in rows_of(self.journal + ".now")}
            again += [row for row in bad if row["test"] not in told]  # pytest ended before
        for row in again:
            count.fail(self.name(row))
