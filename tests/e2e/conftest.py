# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import shutil
import signal
import stat
import tempfile
import time
import warnings
from pathlib import Path

import pytest

import artefacts
import browser
import harness
import known as knowledge
import pythons
import tiers



def pytest_sessionstart():
    harness.take_interrupts()
    # Paths of this machine do not exist in another root file system.
    pythons.copy_targets()


def pytest_sessionfinish():
    browser.end()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.section("Pythons")
    names = tiers.used(os.environ.get("PYBPF_TIER"), os.environ.get("PYBPF_PYTHONS"))
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


def marked(mark):
    """Command lines by PID of the processes that have the mark in their environment, but for this one."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(pid) != os.getpid() and mark in Path("/proc", pid, "environ").read_bytes().split(b"\0"):
                found[int(pid)] = Path("/proc", pid, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    return found


@pytest.fixture(scope="session", autouse=True)
def open_folders(tmp_path_factory):
    """
    Everybody may go through those above the tests' own. It is done at once: source text below a folder that was changed
    in another way than by its entries, after the program began, is not shown.
    """
    base = tmp_path_factory.getbasetemp()
    for folder in base, *base.parents:
        if folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(folder.stat().st_mode | 0o055)


@pytest.fixture(scope="module", autouse=True)
def nothing_goes_on(request):
    """What a file of tests started ends with it, and is named else: the tests after it would share their CPUs with it."""
    name, value = "PYBPF_TESTS_OF", "%s-%d" % (request.module.__name__, os.getpid())
    os.environ[name] = value
    yield
    del os.environ[name]
    mark = ("%s=%s" % (name, value)).encode()
    end = time.monotonic() + 5
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.1)
    left = marked(mark)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if left:
        warnings.warn("%s left running, and they were killed: %s" % (request.module.__name__, left))


@pytest.fixture
def spinning():
    """A simple busy Python program."""
    with harness.target(harness.default_python(), "spin.py", "--nap=0.0003") as running:
        yield running


@pytest.fixture
def folder():
    """A folder that every user may go through, unlike pytest's."""
    path = Path(tempfile.mkdtemp(prefix="pybpf-foreign-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def known(profiler, tmp_path_factory):
    """A recording that readers of all formats are held against."""
    return knowledge.Known(tmp_path_factory.mktemp("known"))


@pytest.fixture(scope="session")
def dist(tmp_path_factory):
    """What make dist makes."""
    folder = tmp_path_factory.mktemp("dist")
    artefacts.pack(folder)
    return folder


@pytest.fixture(scope="session")
def busy():
    """A program that artefacts.check_profile() knows."""
    with harness.target(harness.default_python(), "shares.py") as target:
        yield target


@pytest.fixture(scope="module")
def tracefs():
    """Mounted for tests of tracepoints."""
    harness.mount_tracefs()
