# SPDX-License-Identifier: Apache-2.0
"""Every target program on every Python: stacks and lines are as the program itself states them."""

import pytest

import harness
import suite

PAIRS = suite.matrix()


@pytest.mark.parametrize(
    "interpreter, program", PAIRS, ids=["%s-%s" % (i.name, p.name) for i, p in PAIRS]
)
def test_stacks(profiler, interpreter, program):
    with harness.target(interpreter, program.file, *program.args) as running:
        run = harness.record(running.pid, seconds=program.seconds)
        harness.check_account(run)
        suite.hold(program, running.says, run.stacks())
