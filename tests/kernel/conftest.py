# SPDX-License-Identifier: Apache-2.0
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

import harness  # noqa: E402


def pytest_sessionstart():
    harness.take_interrupts()


@pytest.fixture(scope="session", autouse=True)
def profiler():
    """The binary under test, as root: without both nothing here can be shown."""
    if not os.path.exists(harness.PYBPF):
        pytest.fail("there is no %s: run make first" % harness.PYBPF)
    if os.geteuid() != 0:
        pytest.skip("root is missing: BPF programs cannot be loaded")
    return harness.PYBPF
