# SPDX-License-Identifier: Apache-2.0
"""pybpf dump of programs with subinterpreters: stacks go through all of them, and threads have their own names."""

import pytest

import harness
import pythons
from test_dump import by_name, dump

MARK = "[another interpreter]"
# To 3.9 nothing proves how the thread states of one thread belong together: the callers are left out, and it is said.
PROVED = (3, 10)
MODULES = ("_interpreters", "_xxsubinterpreters", "_testcapi")


def has_subinterpreters(python):
    return python.version >= (3, 6) and any(pythons.has_module(python, module) for module in MODULES)


every_python = pytest.mark.parametrize(
    "python", [item for item in pythons.interpreters() if has_subinterpreters(item)], ids=lambda item: item.name
)


def stands(pid):
    return all(thread["state"] in ("sleep", "lock") for thread in dump(pid)["threads"])


def expected(stack, python):
    names = [MARK if name is None else name for name in stack]
    if python.version >= PROVED or MARK not in names:
        return names
    last = len(names) - names[::-1].index(MARK)
    return ["[incomplete]"] + names[last:]


def functions(thread):
    """Without those of threading.py."""
    return [frame["function"] for frame in thread["frames"] if not frame.get("file", "").endswith("/threading.py")]


@every_python
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=["running", "frozen"])
def test_threads_in_other_interpreters(python, options):
    """A thread that runs code of another interpreter has the name of the one that it began in, and all its callers."""
    with harness.target(python, "subinterpreting.py") as target:
        harness.wait_for(lambda: stands(target.pid))
        picture = dump(target.pid, *options)
        says = target.says["stacks"]
    threads = by_name(picture)
    assert len(threads) == len(picture["threads"]) and set(threads) == set(says)
    for name, stack in says.items():
        assert functions(threads[name]) == expected(stack, python), name
        assert threads[name]["python"] and not threads[name]["moving"]
        assert threads[name]["cause"] == ("[lock]" if name.startswith("inner") else "[sleep]"), name
    assert threads["MainThread"]["tid"] == target.pid
