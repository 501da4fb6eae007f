# SPDX-License-Identifier: Apache-2.0
"""--native: no native frame seems to have called one that its instructions cannot have called (tests/judge/edges.py)."""

import random
import shutil
import sys

import pytest

import harness
import pythons

sys.path.append(str(harness.TOP / "tests" / "judge"))

import edges  # noqa: E402
import rules  # noqa: E402
import stacks  # noqa: E402

pytestmark = pytest.mark.skipif(not shutil.which("objdump"), reason="objdump is not installed (Debian's binutils)")

SAMPLES = 1500
PAIRS = 500
# Calls of many kinds; greenlets change stacks, and their C++ throws.
PROGRAMS = ("callbacks", "greenlets", "objects", "threads")
FOUND = [pythons.one(version=version) for version in ((3, 8), (3, 12), pythons.NEWEST)]
ITEMS = [item for item in FOUND if item]


@pytest.fixture(scope="module", autouse=True)
def copies(profiler):
    pythons.copy_targets(rules.PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_calls_are_possible(item, name):
    program = rules.Program(name)
    why = rules.missing(program, item)
    if why:
        pytest.skip(why)
    result = stacks.measure(program, item, SAMPLES, native=True)
    assert result.good(), result.why()
    assert result.calls > result.samples / 2, "calls are held against the files' instructions"


def test_calls_that_nobody_has_made(tmp_path):
    """The judge refuses a good part of pairs of functions at random, and of those that are two calls apart."""
    item, path = harness.default_python(), tmp_path / "calls.pb.gz"
    with stacks.started(rules.Program("objects"), item) as process:
        stacks.read_names(process)
        harness.record(process.pid, "--native=all", "-f", "pprof", "-o", path, seconds=2, rate=stacks.RATE)
    made, apart = set(), set()
    for stack, _ in edges.stacks(path):
        calls = list(edges.edges(stack))
        made.update(calls)
        apart.update((a, c) for (a, b), (again, c) in zip(calls, calls[1:]) if b == again)
    functions = sorted({function for call in made for function in call})
    paths = tuple({function[0] for function in functions})
    chance = random.Random(1)
    pairs = {(chance.choice(functions), chance.choice(functions)) for _ in range(PAIRS)}
    for wrong in pairs - made, apart - made:
        refused = sum(edges.may_call(a[0], a[1], b[0], b[1], paths) is False for a, b in wrong)
        assert refused > len(wrong) / 5 > 2, (refused, len(wrong))
