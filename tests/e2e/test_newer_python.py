# SPDX-License-Identifier: Apache-2.0
"""A Python that is newer than those that pybpf knows: the newest known one, in whose file the version is raised."""

import contextlib
import dataclasses
import os
import re
import struct
import tempfile
from pathlib import Path

import pytest

import harness
import pythons
import suite
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

NEWEST = max(pythons.SUPPORTED)
NEWER = (NEWEST[0], NEWEST[1] + 1)
WARNING = re.compile(r"Python %d\.%d\S* \(\S+\) is newer than those that this pybpf knows; left out: (.+); use a newer" % NEWER)


def raised(data):
    """The file with another PY_VERSION_HEX in its debug offsets and in Py_Version, each an unsigned long.

    In PyABIInfo, which says what a built-in module was compiled for, it stands twice: it stays there.
    """
    cookies = [place.end() for place in re.finditer(b"xdebugpy", data)]
    versions = [struct.unpack_from("<Q", data, at)[0] for at in cookies]
    version = next(value for value in versions if value >> 16 == NEWEST[0] << 8 | NEWEST[1])
    old, new = struct.pack("<Q", version), struct.pack("<Q", version + (1 << 16))
    return re.sub(b"(?<!%s)%s" % (re.escape(old[:4]), re.escape(old)), lambda found: new, data)


@contextlib.contextmanager
def newer_python():
    interpreter = pythons.one(version=NEWEST, kind="static") or pytest.skip("there is no static Python %d.%d" % NEWEST)
    own = Path(pythons.file_of(interpreter.argv))
    root = interpreter.root or ""
    with tempfile.TemporaryDirectory(dir=root + "/tmp") as folder:
        os.chmod(folder, 0o755)
        copy = Path(folder) / own.name
        copy.write_bytes(raised(own.read_bytes()))
        copy.chmod(0o755)
        argv = (*interpreter.argv[:-1], str(copy)[len(root) :])
        yield dataclasses.replace(interpreter, argv=argv)


def warnings(err):
    return [found.group(1) for found in map(WARNING.search, err.split("\n")) if found]


@pytest.mark.parametrize("name", ["calls", "coroutines", "threads"])
def test_its_stacks_are_right(name):
    """And the run says once what it leaves out."""
    program = next(program for program in suite.PROGRAMS if program.name == name)
    with newer_python() as interpreter, harness.target(interpreter, program.file, *program.args) as running:
        run = harness.record_busy(running.pid, fewest=300, seconds=program.samples / program.rate, rate=program.rate)
        harness.check_account(run)
        suite.hold(program, running.says, run.stacks())
        left_out = warnings(run.err)
        assert len(left_out) == 1, run.err
        assert "exceptions" in left_out[0] and "JIT" in left_out[0]


def test_two_processes_are_one_warning(tmp_path):
    with newer_python() as interpreter, harness.target(interpreter, "calls.py") as one, harness.target(
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
