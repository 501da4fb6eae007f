# SPDX-License-Identifier: Apache-2.0
"""What make soak concludes from its readings, and what it does not take. (The soak itself is no part of make test.)"""

import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader

import pytest

import harness

TOOL = harness.TOP / "tests" / "soak" / "run-soak"


@pytest.fixture(scope="module")
def soak():
    loader = SourceFileLoader("run_soak", str(TOOL))
    module = module_from_spec(spec_from_loader("run_soak", loader))
    sys.modules["run_soak"] = module  # its dataclasses look there for their own
    loader.exec_module(module)
    return module


def readings(soak, kib_per_min, descriptors=40):
    return [soak.Reading(at, int(14000 + kib_per_min * at / 60), descriptors, {"procs": 10}) for at in range(0, 601, 5)]


@pytest.mark.parametrize(
    "kib_per_min, last, left, faults",
    [
        (0, 40, {"procs": 0, "codes": 0}, []),
        (500, 40, {"procs": 0}, []),
        (5000, 40, {"procs": 0}, ["memory grows by 5000 KiB per minute"]),
        (0, 42, {"procs": 0}, ["2 descriptors are left"]),
        (0, 40, {"procs": 3, "codes": 0}, ["3 entries of ended processes are left in map procs"]),
    ],
)
def test_what_is_not_flat_is_named(soak, kib_per_min, last, left, faults):
    taken = readings(soak, kib_per_min)
    end = soak.Reading(610, taken[-1].rss_kib, last, {"procs": 10})
    assert soak.judge(taken, end, taken[0], left) == faults


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--seconds", "5"], "--seconds 5: fewer than 20 tell nothing"),
        (["--seconds", "-1"], "--seconds"),
        (["--seconds", "ten"], "--seconds: ten: it takes a whole number of seconds"),
        (["--every", "0"], "--every 0: it takes a number from 1 to a sixth of the time"),
        (["--pybpf", "/nonexistent/pybpf"], "--pybpf /nonexistent/pybpf: there is no such program"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, words):
    done = subprocess.run(
        ["/usr/bin/python3", str(TOOL), *arguments], capture_output=True, text=True, timeout=harness.PATIENCE
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("run-soak: ")
    assert words in done.stderr and done.stderr.count("\n") == 1
