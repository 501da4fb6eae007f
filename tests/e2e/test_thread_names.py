# SPDX-License-Identifier: Apache-2.0
"""Names of threads: Python's own, else the kernel's."""

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")
# Without those whose structs are another's: stripped ones, and further builds of the same version.
OTHERS = ("stripped", "built-python3.11", "built-python3.13-musl", "system-python3.11", "sid-python3.13")
PYTHONS = [item for item in pythons.interpreters() if not item.name.startswith(OTHERS)]
every_python = pytest.mark.parametrize("python", PYTHONS, ids=lambda item: item.name)


def names_by_function(stacks, functions):
    """{function: names of the threads that were in it}; a thread's frame is NAME (TID)."""
    found = {}
    for stack, _ in stacks:
        for frame in stack:
            if frame.name in functions:
                found.setdefault(frame.name, set()).add(stack[0].text.rpartition(" (")[0])
    return found


@every_python
def test_threads_have_the_names_that_python_knows(python):
    with harness.target(python, "named.py") as running:
        stacks = pybpf("-p", running.pid, "-d", 1.2, "-F", 999, "--threads").stacks()
        names = running.says["more"]["names"]
        with open("/proc/%d/comm" % running.pid) as file:
            comm = file.read().strip()
    found = names_by_function(stacks, set(names) | {"unknown"})
    assert found == {function: {name} for function, name in dict(names, unknown=comm).items()}


def test_a_thread_that_has_ended_keeps_its_name():
    """The second one gets the first one's pthread_self(), and the program ends with it."""
    command = harness.default_python().command("short_threads.py")
    done = pybpf("-q", "-F", 499, "--threads", "-o", "/dev/stderr", "--", *command)
    ids = dict(line.split() for line in done.out.split("\n") if line)
    assert ids["one"] == ids["two"]
    found = names_by_function(harness.parse(done.err), {"first", "second"})
    assert found == {"first": {"one"}, "second": {"two"}}


@pytest.mark.parametrize(
    "python, where",
    [(item, "python") for item in PYTHONS] + [(item, "kernel") for item in PYTHONS if item.version in ((3, 8), (3, 14))],
    ids=lambda item: getattr(item, "name", item),
)
def test_a_thread_that_changes_its_name_has_all_of_them(python, where):
    """No sample is told under a name that the thread did not have then."""
    with harness.target(python, "renames.py", where) as running:
        run = pybpf("-p", running.pid, "-d", 1, "-F", 499, "--threads")
    found = names_by_function(run.stacks(), {"renames", "stays"})
    assert found["stays"] == {"keeps-it"}
    (name,) = found["renames"]
    assert name.endswith(" and other names") and name.startswith("request-"), name
