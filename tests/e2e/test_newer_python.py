# SPDX-License-Identifier: Apache-2.0
"""A Python that is newer than those that pybpf knows: the newest known one, in whose file the version is raised."""

import re

import pytest

import harness
import pythons
import suite
from altered_python import NEWER, NEWEST, altered, move_field, raise_version
from harness import one_sentence, pybpf

pytestmark = pytest.mark.usefixtures("profiler")

WARNING = re.compile(r"Python %d\.%d\S* \(\S+\) is newer than those that this pybpf knows; left out: (.+); use a newer" % NEWER)
# Fields of 3.15's debug offsets that no other field contradicts (test_debug_offsets.c).
FIELDS = {"status": 264, "datastack_chunk": 256, "ceval_gil": 120}


def warnings(err):
    return [found.group(1) for found in map(WARNING.search, err.split("\n")) if found]


@pytest.mark.parametrize("name", ["calls", "coroutines", "threads"])
def test_its_stacks_are_right(name):
    """And the run says once what it leaves out."""
    program = next(program for program in suite.PROGRAMS if program.name == name)
    with altered(raise_version) as interpreter, harness.target(interpreter, program.file, *program.args) as running:
        run = harness.record_busy(running.pid, fewest=program.samples * 2 // 3, seconds=program.samples / program.rate, rate=program.rate)
        harness.check_account(run)
        suite.hold(program, running.says, run.stacks())
        left_out = warnings(run.err)
        assert len(left_out) == 1, run.err
        assert "exceptions" in left_out[0] and "JIT" in left_out[0]


def test_two_processes_are_one_warning(tmp_path):
    with altered(raise_version) as interpreter, harness.target(interpreter, "calls.py") as one, harness.target(
        interpreter, "calls.py"
    ) as two:
        run = pybpf("record", "-p", one.pid, "-p", two.pid, "-d", 1, "-o", tmp_path / "out.folded")
        assert run.code == 0 and len(warnings(run.err)) == 1, run
        run = pybpf("dump", "-p", one.pid, "-p", two.pid)
        assert run.code == 0 and len(warnings(run.err)) == 1, run
        assert "calls.py" in run.out


def test_a_known_python_has_no_warning(tmp_path):
    interpreter = pythons.one(version=NEWEST)
    with harness.target(interpreter, "calls.py") as running:
        run = pybpf("record", "-p", running.pid, "-d", 0.3, "-o", tmp_path / "out.folded")
        assert run.code == 0 and "newer" not in run.err, run


@pytest.mark.parametrize("by", [-8, 8])
@pytest.mark.parametrize("field", sorted(FIELDS))
def test_a_field_that_is_elsewhere_is_refused(field, by, tmp_path):
    """By what the process has in its place."""
    with altered(move_field(FIELDS[field], by)) as interpreter, harness.target(interpreter, "threads.py") as running:
        run = pybpf("record", "-p", running.pid, "-d", 0.3, "-o", tmp_path / "out.folded")
        assert run.code != 0 and "does not look like Python" in one_sentence(run.err), run
