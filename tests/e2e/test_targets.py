# SPDX-License-Identifier: Apache-2.0
"""What the targets expect is right: each samples itself, without a profiler, and must see that."""

import json
import os
import subprocess

import pytest

import harness
import pythons
import suite

SECONDS = "0.3"
PAIRS = suite.matrix(self_check=True)


def sample_itself(command):
    env = dict(os.environ, PYBPF_SELF_CHECK=SECONDS)
    options = {"stdout": subprocess.PIPE, "env": env, "timeout": 20}
    try:
        return subprocess.run(command, **options)
    except subprocess.TimeoutExpired:
        # On a loaded machine the sampling thread may starve for the GIL.
        return subprocess.run(command, **options)


@pytest.mark.parametrize(
    "interpreter, program", PAIRS, ids=["%s-%s" % (i.name, p.name) for i, p in PAIRS]
)
def test_target_agrees_with_itself(interpreter, program):
    if program.needs and not pythons.has_module(interpreter, program.needs):
        pytest.skip("%s is missing from %s" % (program.needs, interpreter.name))
    done = sample_itself(interpreter.command(program.file, *program.args))
    said, _, seen = done.stdout.decode("utf-8", "surrogateescape").partition("\n")
    stacks = harness.parse(seen)
    assert harness.total(stacks) >= 1
    suite.hold(program, json.loads(said), stacks, sampled=False)
