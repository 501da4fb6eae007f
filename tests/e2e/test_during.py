# SPDX-License-Identifier: Apache-2.0
"""--focus and --ignore of a function: what happens while it is under way, also in tasks that it awaits."""

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

PYTHONS = [item for item in map(pythons.one, ((3, 8), (3, 13), pythons.NEWEST)) if item]
every_python = pytest.mark.parametrize("python", PYTHONS, ids=lambda item: item.name)

# handle() and page() await tasks that do the same; "tidier" is in handle() at times.
TASKS = """
import asyncio, time

def burn():
    end = time.thread_time() + 0.01
    while time.thread_time() < end:
        pass

async def fetch():
    burn()
    await asyncio.sleep(0.02)

async def gathers(name):
    await asyncio.gather(*[asyncio.create_task(fetch(), name=name + str(i)) for i in range(2)])

async def handle(name):
    await gathers(name)

async def page():
    while True:
        await gathers("p")

async def handles():
    await handle("h")

async def tidies():
    while True:
        await handle("t")
        await gathers("t")

async def server():
    while True:
        await asyncio.create_task(handles(), name="handler")

async def main():
    print("{}", flush=True)
    await asyncio.gather(*[asyncio.create_task(task, name=name) for name, task in
                           [("server", server()), ("pager", page()), ("tidier", tidies())]])

asyncio.run(main())
"""


def name_of(frame):
    return frame.text.rpartition(" (")[0] or frame.text


def tasks_of(stack):
    return [frame.text for frame in stack if frame.text.startswith("[task: ")]


@pytest.fixture(scope="module")
def saved(request, tmp_path_factory, profiler):
    path = tmp_path_factory.mktemp("during") / "all.pybpf"
    with harness.started([*request.param.argv, "-c", TASKS], stdout=-1) as process:
        assert harness.read_ready_line(process) == {}
        run = pybpf("-p", process.pid, "-d", 2, "--mode=wall", "--async=all", "-o", path)
    assert run.code == 0, run.err
    return path


def stacks(path, *options):
    run = pybpf("report", path, "-f", "folded", *options)
    assert run.code == 0, run.err
    return harness.parse(run.out)


def in_handle(stack):
    """As the program says it of each of its tasks; what tidier awaits is not known to be."""
    names = [name_of(frame) for frame in stack]
    return "handle" in names or "[task: handler]" in tasks_of(stack)[:-1]


@pytest.mark.parametrize("saved", PYTHONS, indirect=True, ids=lambda item: item.name)
def test_tasks_that_a_function_awaits_are_with_it(saved):
    everything, focused = stacks(saved), stacks(saved, "--focus", "^handle ")
    assert focused == [pair for pair in everything if in_handle(pair[0])]
    assert stacks(saved, "--ignore", "^handle ") == [pair for pair in everything if not in_handle(pair[0])]
    # Both running and suspended, and not those of others that do the same.
    leaves = {(tasks_of(stack)[-1][:-2], stack[0].text == "[suspended tasks]") for stack, _ in focused if tasks_of(stack)}
    assert {("[task: h", False), ("[task: h", True)} <= leaves, leaves
    assert not [task for task, _ in leaves if task in ("[task: p", "[task: t")], leaves
    assert {"[task: p", "[task: t"} <= {tasks_of(stack)[-1][:-2] for stack, _ in everything if tasks_of(stack)}


THREADS = """
import threading, time

def query():
    time.sleep(0.01)

def handle():
    query()

def idles():
    while True:
        query()

print("{}", flush=True)
threading.Thread(target=idles, daemon=True).start()
while True:
    handle()
    time.sleep(0.03)
"""


@every_python
def test_a_run_keeps_what_is_in_a_function(python, tmp_path):
    path = tmp_path / "handle.pybpf"
    with harness.started([*python.argv, "-c", THREADS], stdout=-1) as process:
        assert harness.read_ready_line(process) == {}
        runs = [
            pybpf("-p", process.pid, "-d", 0.5, "--mode=wall", *options)
            for options in [("--focus", "^handle ", "-f", "folded"), ("--ignore", "^query ", "-f", "folded"),
                            ("--focus", "^handle ", "-o", path), ("--focus", "^nothing ",)]
        ]
    assert not [run.err for run in runs if run.code]
    names = [[{name_of(frame) for frame in stack} for stack, _ in harness.parse(run.out)] for run in runs]
    assert names[0] and all("handle" in stack for stack in names[0])
    assert names[1] and not any("query" in stack for stack in names[1])
    assert stacks(path) and all("handle" in {name_of(frame) for frame in stack} for stack, _ in stacks(path))
    assert "pybpf: left out: " in runs[0].err
    assert not names[3] and "nothing that was sampled passes --focus and --ignore" in runs[3].err


def test_a_wrong_expression_is_refused_before_the_run():
    run = pybpf("-p", 1, "--focus", "(")
    assert run.code == 2 and "--focus (: not a POSIX extended regular expression" in run.err
