# SPDX-License-Identifier: Apache-2.0
"""pysym_line() equals what each interpreter says, for every instruction of a part of its standard library.

PYBPF_LINES_EVERY=1 takes every file; the default takes every tenth.
"""
import os
import pathlib
import subprocess

import pytest

import pythons

ROOT = pathlib.Path(__file__).resolve().parents[2]
EVERY = os.environ.get("PYBPF_LINES_EVERY", "10")


@pytest.fixture(scope="module")
def linecheck():
    # Tests build in their own way: somebody else's half-built tree must not matter.
    subprocess.run(["make", "-s", "-C", str(ROOT), "build/linecheck"], check=True)
    return ROOT / "build" / "linecheck"


def has_ctypes(python):
    probe = [*python.argv, "-c", "import ctypes"]
    return subprocess.run(probe, stderr=subprocess.DEVNULL).returncode == 0


EVERY_PYTHON = pythons.interpreters()
TRUTHS = [(python, "dis") for python in EVERY_PYTHON] + [(python, "addr2line") for python in pythons.of_each_version(EVERY_PYTHON)]


@pytest.mark.parametrize("python, truth", TRUTHS, ids=["%s-%s" % (python.name, truth) for python, truth in TRUTHS])
def test_lines(linecheck, python, truth):
    if truth == "addr2line" and not has_ctypes(python):
        pytest.skip(python.name + " is built without ctypes")
    # The script comes on stdin, so that an interpreter behind a chroot need not see this tree.
    with open(ROOT / "tests" / "e2e" / "dump_lines.py", "rb") as script:
        argv = [*python.argv, "-", "--every", EVERY, "--truth", truth]
        dump = subprocess.Popen(argv, stdin=script, stdout=subprocess.PIPE)
    with dump.stdout:
        check = subprocess.run([str(linecheck)], stdin=dump.stdout, stdout=subprocess.PIPE, text=True)
    assert dump.wait() == 0, "dump_lines.py failed under " + python.name
    assert check.returncode == 0, check.stdout
    print(check.stdout)
