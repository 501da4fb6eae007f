# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import stat

import pytest

import harness
import pythons


def pytest_sessionstart():
    """Root file systems get copies of the targets: paths of this machine do not exist in them."""
    roots = {item.root for item in pythons.interpreters() if item.root}
    for root in roots:
        place = os.path.join(root, pythons.ROOT_TARGETS)
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(pythons.TARGETS, place, ignore=shutil.ignore_patterns("__pycache__"))


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("Pythons")
    names = ", ".join(item.name for item in pythons.interpreters())
    terminalreporter.write_line("tested with: " + (names or "none"))
    missing = pythons.missing()
    for name, why in missing:
        terminalreporter.write_line("not found on this machine: %s (%s)" % (name, why))
    if not missing:
        terminalreporter.write_line("every supported one was found")


@pytest.fixture(scope="session")
def profiler():
    """The binary under test, as root: without both nothing here can be shown."""
    if not os.path.exists(harness.PYBPF):
        pytest.fail("there is no %s: run make first" % harness.PYBPF)
    assert os.stat(harness.PYBPF).st_mode & stat.S_IXUSR
    if os.geteuid() != 0:
        pytest.skip("root is missing: BPF programs cannot be loaded")
    return harness.PYBPF


@pytest.fixture
def spinning():
    """A simple busy Python program."""
    with harness.target(harness.default_python(), "spin.py") as running:
        yield running
