# SPDX-License-Identifier: Apache-2.0
"""State on CPU samples: --gil, --gc, --mode=exception."""

import collections

import pytest

import harness
import pythons
from harness import record

pytestmark = pytest.mark.usefixtures("profiler")


def some_of(*names):
    """Those that differ in what is read: by version, or in a kind of build."""
    found = [item for item in pythons.interpreters() if item.name in names and "dbg" not in item.name]
    return pytest.mark.parametrize("python", found, ids=lambda item: item.name)


OLD = "pyenv-2.7.18", "pyenv-3.6.15"
NEW = [item.name for item in pythons.interpreters() if item.version >= (3, 7) and (item.kind == "free-threaded" or item.name.startswith(("pyenv", "sid")))]


def counts(run, *functions):
    """Samples below each function, and those of them whose leaf is [gc]."""
    found, collecting = collections.Counter(), collections.Counter()
    for stack, count in run.stacks():
        for function in {frame.name for frame in stack} & set(functions):
            found[function] += count
            collecting[function] += count * (stack[-1].text == "[gc]")
    return found, collecting


@some_of(*OLD, *NEW)
def test_gil_keeps_threads_that_hold_it(python):
    with harness.target(python, "states.py", "gil") as running:
        every, _ = counts(record(running.pid, seconds=0.5), "with_gil", "without_gil")
        run = record(running.pid, "--gil", seconds=0.5)
    held, _ = counts(run, "with_gil", "without_gil")
    # 2.7's threads share a CPU unevenly.
    assert every["without_gil"] > 5 and every["with_gil"] > 0, every
    assert held["with_gil"] > 0, (held, every)
    # It holds the GIL for moments, when it calls the hash's constructor and when that returns: others may take the CPU there.
    assert held["without_gil"] <= max(3, 0.2 * every["without_gil"]), (held, every)
    assert run.stats["other_states"]["other_state"] > 3, run.stats


@some_of(*NEW)
def test_exception_mode_keeps_handlers(python):
    functions = "in_handler", "in_generator", "in_finally", "after_handler", "with_gil"
    with harness.target(python, "states.py", "exception") as running:
        every, _ = counts(record(running.pid, seconds=0.5), *functions)
        handling, _ = counts(record(running.pid, "--mode=exception", seconds=0.5), *functions)
    for function in "in_handler", "in_generator", "in_finally":
        assert handling[function] > 2, (function, handling, every)
    assert every["after_handler"] > 0 and handling["after_handler"] == 0, handling
    assert every["with_gil"] > 0 and handling["with_gil"] == 0, handling


@some_of(*NEW)
def test_gc_marks_collections(python):
    functions = "collects", "does_not_collect", "with_gil"
    with harness.target(python, "states.py", "gc") as running:
        every, collecting = counts(record(running.pid, "--gc", seconds=0.5), *functions)
    assert every["collects"] > 3
    if "free-threaded" in python.kind and python.version < (3, 15):
        assert not collecting["collects"], "nothing tells which thread collects"
    else:
        assert collecting["collects"] > 0.9 * every["collects"], (collecting, every)
    assert every["does_not_collect"] > 0 and not collecting["does_not_collect"], (collecting, every)
    assert every["with_gil"] > 0 and not collecting["with_gil"], (collecting, every)


@some_of(*OLD)
def test_pythons_that_do_not_tell_are_counted(python):
    with harness.target(python, "states.py", "exception") as running:
        run = record(running.pid, "--mode=exception", seconds=0.5)
    assert not run.stacks() and run.stats["other_states"]["state_unknown"] > 3, run.stats
    assert "of Pythons that do not tell" in run.err
