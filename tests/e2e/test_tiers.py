# SPDX-License-Identifier: Apache-2.0
"""tests/tiers.py names tests that there are, and leaves none to make test-all that it does not name."""
import fnmatch
import os
import pathlib
import subprocess
import sys

import pytest

import core
import harness
import pythons
import tiers


def collected(tier):
    """{test_file::test: its parameters' names}"""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "tests/kernel", "tests/e2e"]
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYBPF_PASSED", "PYBPF_PYTHONS", "PYBPF_JOURNAL")}
    done = subprocess.run(command, cwd=harness.TOP, env=dict(inherited, PYBPF_TIER=tier), capture_output=True, text=True)
    found = {}
    for row in done.stdout.splitlines():
        path, separator, name = row.partition("::")
        if separator:
            name, _, parameters = name.partition("[")
            found.setdefault("%s::%s" % (os.path.basename(path)[: -len(".py")], name), []).append(parameters[:-1])
    return found


@pytest.fixture(scope="module")
def every():
    return collected("all")


def test_what_is_named_is_there(every):
    known = set(every) | {name.partition("::")[0] for name in every}
    for table in (tiers.EACH_VERSION, tiers.EACH_BUILD, tiers.TIMED, tiers.THOROUGH):
        assert {entry.partition(" ")[0] for entry in table} <= known


def test_the_core_is_there_and_runs_beside_others(every):
    names = {name.rpartition("/")[2].replace(".py", "") for name in core.names()}
    assert names <= set(every) and not [name for name in names if tiers.is_timed(name)]


def is_missing(pattern):
    """Does it name a Python that this machine does not have?"""
    python = pattern.partition("*")[0].rstrip("-")
    return python.startswith(("pyenv-", "sid-", "built-")) and not any(one.name.startswith(python) for one in pythons.interpreters())


def test_what_is_kept_is_there(every):
    """A pattern without a test would leave all of that name to make test-all."""
    lost = []
    for key, patterns in tiers.THOROUGH.items():
        parameters = [one for name, some in every.items() if key in (name, name.partition("::")[0]) for one in some]
        lost += [(key, one, parameters) for one in patterns or () if not fnmatch.filter(parameters, one) and not is_missing(one)]
    assert not lost


def test_the_newest_python_is_not_named():
    """By its number a row would be left to make test-all once there is a newer one."""
    assert "%d.%d" % pythons.NEWEST not in pathlib.Path(tiers.__file__).read_text()


def test_no_other_is_left_out(every):
    gate = collected("gate")
    left = {name for name in every if name not in gate}
    assert {name for name in left if not {name, name.partition("::")[0]} & set(tiers.THOROUGH)} == set()
