# SPDX-License-Identifier: Apache-2.0
"""tests/truth in short: make truth takes more samples, on every Python."""

import sys

import pytest

import harness
import pythons

sys.path.append(str(harness.TOP / "tests" / "judge"))

import cpu_time  # noqa: E402
import rules  # noqa: E402
import stacks  # noqa: E402

SAMPLES = 900
SECONDS = 5  # 500 samples in step with the timer
# One of each way in which CPython has kept its frames, the newest, and one without a GIL.
WANTED = [{"version": version} for version in ((3, 8), (3, 11), (3, 12), pythons.NEWEST)]
FOUND = [pythons.one(**wanted) for wanted in [*WANTED, {"kind": "free-threaded"}]]
ITEMS = [item for item in FOUND if item]  # what a machine lacks is named at the end of the run
PROGRAMS = [rules.Program(name) for name in rules.names()]
PAIRS = [(item, program) for item in ITEMS for program in PROGRAMS]
# What was read of a code object is kept, for as long as a counter proves that it was not freed: 3.13 counts otherwise
# than 3.14 and later.
KEPT = [pythons.one(version=version) for version in ((3, 13), (3, 14))]
PAIRS += [(item, program) for item in KEPT if item not in ITEMS + [None] for program in PROGRAMS if program.made]


@pytest.fixture(scope="module", autouse=True)
def copies(profiler):
    pythons.copy_targets(rules.PROGRAMS)


@pytest.mark.parametrize("item, program", PAIRS, ids=["%s-%s" % (i.name, p.name) for i, p in PAIRS])
def test_stacks_are_possible(item, program):
    why = rules.missing(program, item)
    if why:
        pytest.skip(why)
    result = stacks.measure(program, item, SAMPLES)
    assert result.good(), result.why()


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_shares_are_those_of_the_cpu_time(item):
    result = cpu_time.measure(item, 1, stacks.RATE)
    assert result.good(), result.why()


def test_shares_of_a_program_in_step_with_the_timer():
    result = cpu_time.measure_in_step(harness.default_python(), SECONDS)
    assert result.good(), result.why()
