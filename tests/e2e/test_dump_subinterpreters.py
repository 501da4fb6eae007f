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
        snapshot = dump(target.pid, *options)
        says = target.says["stacks"]
    threads = by_name(snapshot)
    assert len(threads) == len(snapshot["threads"]) and set(threads) == set(says)
    for name, stack in says.items():
        assert functions(threads[name]) == expected(stack, python), name
        assert threads[name]["python"] and not threads[name]["moving"]
        assert threads[name]["cause"] == ("[lock]" if name.startswith("inner") else "[sleep]"), name
    assert threads["MainThread"]["tid"] == target.pid


lends = pytest.mark.parametrize(
    "python",
    [
        item
        for item in pythons.interpreters()
        if item.version >= (3, 8) and any(pythons.has_module(item, module) for module in MODULES[:2])
    ],
    ids=lambda item: item.name,
)


@lends
@pytest.mark.parametrize("options", [[], ["--freeze"]], ids=["running", "frozen"])
def test_a_thread_has_no_functions_of_another_one(python, options):
    """The C stack proves whose they are; to 3.9, where nothing does, they are marked as incomplete."""
    with harness.target(python, "lent.py") as target:
        harness.wait_for(lambda: stands(target.pid))
        threads = by_name(dump(target.pid, *options))
    main, lends = functions(threads["MainThread"]), functions(threads["lends"])
    if python.version < PROVED:
        assert main in (["<module>", "stands"], ["[incomplete]", "<module>", "inside"]), main
    else:
        assert main == ["<module>", "stands"]
    # The state of what it runs may say that it is the first thread's.
    assert lends in (["lends"], ["lends", MARK, "<module>", "inside"]), lends
    assert python.version < (3, 13) or len(lends) == 4


@lends
def test_nor_has_one_that_runs(python):
    """Its stack pointer is not known; where its stack is, is."""
    with harness.target(python, "lent.py", "runs") as target:
        found = [by_name(dump(target.pid))["MainThread"] for _ in range(10)]
    ran = [functions(thread) for thread in found if thread["state"] in ("on CPU", "waiting for a CPU", "running")]
    assert len(ran) >= 5
    for main in ran:
        assert python.version < PROVED or main == ["<module>", "runs"], main
        # Where nothing is proved, what is not the thread's own is marked.
        assert main[-1] == "runs" or main == ["[incomplete]", "<module>", "inside"], main


@lends
def test_whose_collection_it_is(python):
    """To 3.8 one flag is of all interpreters: of two threads none can be told."""
    with harness.target(python, "lent.py", "collects") as target:
        harness.wait_for(lambda: stands(target.pid))
        snapshot = dump(target.pid)
    collecting = {name: thread["collecting"] for name, thread in by_name(snapshot).items()}
    assert snapshot["collecting"] is True and collecting["lends"] is not True
    assert collecting["MainThread"] in ((None,) if python.version < (3, 9) else (None, True))
