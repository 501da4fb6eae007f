# SPDX-License-Identifier: Apache-2.0
"""For tests of the kernel side and from end to end: which of them run, and a journal of what they said.

tests/run-tests says what it wants by the environment; pytest alone runs everything.

    PYBPF_TIER=gate       without what tiers.py leaves to make test-all
    PYBPF_PYTHONS=...     of tests that profile a Python, those with one of these (tiers.chosen())
    PYBPF_JOURNAL=FILE    a line of JSON for each test that ended is added to it
    PYBPF_PASSED=FILE     a journal whose passed and skipped tests are left out
    PYBPF_WITHOUT_STATIC  there is no static binary
    PYBPF=PROGRAM         the tested program, in a build folder, in which compiled tests are kept
"""
import contextlib
import json
import os
import resource
import sys

import pytest

sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.path.join(os.path.dirname(os.path.abspath(__file__)), "e2e")]

import pythons  # noqa: E402
import tiers  # noqa: E402

# pytest takes longer to compile all tests than to collect them, and each of its processes does. Set here, as the Pythons
# that tests start would inherit a variable. Root leaves nothing in the tree.
if os.environ.get("PYBPF"):
    sys.pycache_prefix = os.path.join(os.path.dirname(os.path.abspath(os.environ["PYBPF"])), "pycache")
    sys.dont_write_bytecode = False

CPU_BEFORE = pytest.StashKey()


def pytest_configure(config):
    config.addinivalue_line("markers", "timed: runs when no other test does (tiers.TIMED)")


def interpreters(item):
    callspec = getattr(item, "callspec", None)
    found = []
    for value in callspec.params.values() if callspec else ():
        # A parameter may be a tuple that has one.
        for part in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(part, pythons.Interpreter):
                found.append(part)
    return found


def names_of(item):
    """test_file::test, which tiers.py uses, and the parameters' names."""
    name, _, parameters = item.name.partition("[")
    return "%s::%s" % (item.path.stem, name), parameters.rstrip("]")


def passed_before():
    path = os.environ.get("PYBPF_PASSED")
    if not path or not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {row["test"] for row in rows if row["outcome"] in ("passed", "skipped")} - {
        row["test"] for row in rows if row["outcome"] == "failed"
    }


@pytest.hookimpl(tryfirst=True)  # before -m is looked at
def pytest_collection_modifyitems(config, items):
    rows = [(item, *names_of(item), interpreters(item)) for item in items]
    for item, name, _, _ in rows:
        if tiers.is_timed(name):
            item.add_marker("timed")
    keep = {item.nodeid for item in items}
    if os.environ.get("PYBPF_TIER") == "gate":
        keep &= tiers.gate([(item.nodeid, name, parameters, found) for item, name, parameters, found in rows])
    if os.environ.get("PYBPF_PYTHONS"):
        wanted = tiers.chosen(os.environ["PYBPF_PYTHONS"])
        keep &= {item.nodeid for item, _, _, found in rows if found and all(one in wanted for one in found)}
    keep -= passed_before()
    left = [item for item in items if item.nodeid not in keep]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.nodeid in keep]


def children_cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test's CPU time is that of the programs that it started, as far as it waited for them."""
    item.stash[CPU_BEFORE] = children_cpu_s()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "teardown":
        outcome.get_result().user_properties.append(("cpu_s", children_cpu_s() - item.stash[CPU_BEFORE]))


class Journal:
    """Kept in one process: the one that xdist's workers report to."""

    def __init__(self, path):
        self.path = path
        self.begun = {}

    def pytest_runtest_logreport(self, report):
        row = self.begun.setdefault(report.nodeid, {"test": report.nodeid, "outcome": "passed", "seconds": 0, "why": ""})
        row["seconds"] += report.duration
        if report.failed:
            row["outcome"] = "failed"
            row["why"] += report.longreprtext
        elif report.skipped and row["outcome"] == "passed":
            row["outcome"] = "skipped"
            row["why"] = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        if report.when == "teardown":
            row["cpu_s"] = round(dict(report.user_properties).get("cpu_s", 0), 3)
            with open(self.path, "a", encoding="utf-8") as out:
                out.write(json.dumps(self.begun.pop(report.nodeid)) + "\n")


def pytest_sessionstart(session):
    # What tests start is not (harness.niceness_of).
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    path = os.environ.get("PYBPF_JOURNAL")
    if path and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Journal(path))
