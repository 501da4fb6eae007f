# SPDX-License-Identifier: Apache-2.0
"""Threads that are looked at before they have told Python that they are there."""

import subprocess
from pathlib import Path

import pytest

import harness
import pythons

pytestmark = pytest.mark.usefixtures("profiler")
# Those whose C library is the shim's, in this root file system.
PYTHONS = [item for item in pythons.of_each_version(pythons.interpreters()) if not item.root]
THREADS, NAPS = 6, 30


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    made = tmp_path_factory.mktemp("slow") / "slow_start.so"
    source = Path(__file__).parents[1] / "targets" / "slow_start.c"
    command = ["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", made, source]
    subprocess.run(command, check=True)
    return made


@pytest.mark.parametrize("python", PYTHONS, ids=lambda item: item.name)
def test_each_nap_has_its_stack(python, shim):
    """Each thread sleeps twice before that: then it is no Python thread yet, which must not be believed for long."""
    command = ["/usr/bin/env", "LD_PRELOAD=%s" % shim, *python.command("slow_start.py", str(THREADS), str(NAPS))]
    run = harness.pybpf("--mode=wall", "--threads", "--no-children", "-F", "99", "--", *command)
    assert run.code == 0, run.err
    slept = {}
    for stack, us in harness.parse(run.out):
        if stack[-1].text == "[sleep]" and any(frame.name == "nap" for frame in stack):
            slept[stack[0].text] = us / 1e6
    assert len(slept) == THREADS, slept
    assert min(slept.values()) >= 0.009 * NAPS, slept
