# SPDX-License-Identifier: Apache-2.0
"""tests/runner: what make test-all keeps of earlier runs. Each run of pytest, and each part, is played."""
import json
import sys

import pytest

import harness

sys.path.append(str(harness.TOP / "tests"))

from runner import memory, pytests, whole  # noqa: E402
from runner.count import MOST_SECOND_TRIES, Count  # noqa: E402

FILE = "tests/e2e/test_played.py"


class Played:
    """In place of pytest: each run has the next of the outcomes of a test, and leaves out what passed, as tests/conftest.py does."""

    def __init__(self, outcomes):
        self.outcomes = {FILE + "::" + name: list(each) for name, each in outcomes.items()}

    def run(self, command, limit_s, env):
        if "timed" in command:
            return 5
        done = {row["test"] for row in pytests.rows_of(env["PYBPF_PASSED"])}
        named = [word for word in command if "::" in word]
        rows = []
        for test in set(named or self.outcomes) - done:
            outcome = self.outcomes[test].pop(0)
            rows.append({"test": test, "outcome": outcome, "seconds": 1, "why": "why" if outcome == "failed" else ""})
        with open(env["PYBPF_JOURNAL"], "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row) + "\n" for row in rows)
        return int(any(row["outcome"] == "failed" for row in rows))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setattr(whole, "tree", lambda: "the same")
    return lambda: whole.Kept(str(tmp_path), False)


def run_suite(kept):
    count = Count()
    whole.run_suite("build", kept(), count, "pybpf", [FILE])
    return count


def test_what_passes_in_a_later_run_alone_has_needed_a_second_try(kept, monkeypatch):
    played = Played({"good": ["passed"], "left_out": ["skipped"], "bad": ["failed", "failed", "passed"], "once": ["failed", "passed"]})
    monkeypatch.setattr(pytests, "run", played.run)
    first = run_suite(kept)
    assert first.failures == [FILE + "::bad"]
    assert first.second_tries == [(FILE + "::once", "why")]
    later = [(FILE + "::%s, which failed in an earlier run" % name, "why") for name in ("bad", "once")]
    for _ in range(2):  # the run in which it passes, and one that runs nothing
        again = run_suite(kept)
        assert (again.passed, again.skipped, again.failed) == (3, 1, 0)
        assert sorted(again.second_tries) == later


def test_more_of_them_than_a_run_may_have_fail_it(kept, monkeypatch):
    names = ["test_%d" % number for number in range(MOST_SECOND_TRIES + 1)]
    monkeypatch.setattr(pytests, "run", Played({name: ["failed", "failed", "passed"] for name in names}).run)
    run_suite(kept)
    assert run_suite(kept).tell(0, 0) == 1


def test_a_part_that_passes_in_a_later_run_has_needed_a_second_try(kept):
    outcomes = [["this", "that"], [], None]  # what fails; the third run must not be

    def do(count):
        failures = outcomes.pop(0)
        for name in failures:
            count.fail(name)
        count.passed += not failures

    told = []
    for _ in range(3):
        count = Count()
        whole.run_part(whole.Part("a part 1/2", 1, do), kept(), count)
        told.append((count.passed, count.failures, count.second_tries))
    later = [("a part 1/2, which failed in an earlier run", "this\nthat")]
    assert told == [(0, ["this", "that"], []), (1, [], later), (1, [], later)]


def test_each_mutant_is_in_one_part_of_some_minutes(monkeypatch):
    monkeypatch.setattr(whole, "command", lambda name, program, *mutants: mutants)
    parts = whole.mutants()
    assert max(part.seconds for part in parts) < whole.SECONDS_OF_MUTANTS + whole.SECONDS_OF_SLOW_MUTANT
    assert len({part.name for part in parts}) == len(parts)
    folder = harness.TOP / "tests/mutants"
    there = sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.glob("*/*.patch"))
    assert sorted(name for part in parts for name in part.do) == there


def test_the_most_memory_of_a_run_is_what_was_missing_from_the_begin():
    gib = memory.KIB_PER_GIB
    available = [9 * gib, 8 * gib, 5 * gib, 7 * gib]
    watch = memory.Watch(lambda: available.pop(0), period_s=harness.PATIENCE)
    for _ in range(2):
        watch.look()
    assert watch.most_gib() == 4
