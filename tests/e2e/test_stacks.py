# SPDX-License-Identifier: Apache-2.0
"""Every target program on every Python: stacks and lines are as the program itself states them."""

import pytest

import harness
import pythons
import suite

PAIRS = suite.matrix()


@pytest.mark.parametrize(
    "interpreter, program", PAIRS, ids=["%s-%s" % (i.name, p.name) for i, p in PAIRS]
)
def test_stacks(profiler, interpreter, program):
    if program.needs and not pythons.has_module(interpreter, program.needs):
        pytest.skip("%s is missing from %s" % (program.needs, interpreter.name))
    with harness.target(interpreter, program.file, *program.args) as running:
        run = harness.record_busy(running.pid, fewest=program.samples * 2 // 3, seconds=program.samples / program.rate, rate=program.rate)
        harness.check_account(run)
        suite.hold(program, running.says, run.stacks())
