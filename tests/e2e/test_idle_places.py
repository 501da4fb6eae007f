# SPDX-License-Identifier: Apache-2.0
"""Waiting for work is told from work: the pools, servers and loops of Python's own library, and programs that look like them."""

import re
import subprocess
import sys

import pytest

import harness
import pythons
from harness import pybpf

sys.path.insert(0, str(harness.TOP / "tests"))

import peers  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")

SOME = [item for item in map(pythons.one, ((2, 7), (3, 6), (3, 8), (3, 13), pythons.NEWEST)) if item]
some_pythons = pytest.mark.parametrize("python", SOME, ids=lambda item: item.name)

IDLE = "[waiting for work] in idle pools and loops (--idle shows each)"
TASKS = "[waiting for work] of suspended tasks (--idle shows each)"
SLEEPS = "[sleep] in nudge (idle_places.py)"
ROW = re.compile(r"^ *([\d.,]+ (?:s|ms|us)) +([\d.]+)%(?: +(?:\d+|-) +(?:[\d.,]+ \w+|-))?(?: +[\d.,]+ \w+)? +(\[.*)$")

# An application whose lifespan task waits for the server's end.
LIFESPAN = """
async def app(scope, receive, send):
    while scope["type"] == "lifespan":
        kind = (await receive())["type"]
        await send({"type": kind + ".complete"})
        if kind == "lifespan.shutdown":
            return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body"})
"""
# The first Python that has each, and a function that waits in it. Threads are woken now and then, which takes time on a busy machine.
IDLES = {
    "executor": ((3, 2), "_worker"),
    "process_executor": ((3, 2), "_feed"),
    "pool": ((2, 7), "_handle_tasks"),
    "thread_pool": ((2, 7), "_handle_tasks"),
    "server": ((2, 7), "serve_forever"),
    "keep_alive": ((2, 7), "handle_one_request"),
    "loop": ((3, 6), "_run_once"),
    "shutdown": ((2, 7), "_shutdown"),
}
LEAST = 20  # percent


def waits(text):
    """The table of waits, as (share, what is waited for)."""
    rows = [ROW.match(line) for line in text.splitlines()]
    return [(float(row.group(2)), row.group(3)) for row in rows if row]


def idle_share(rows):
    return sum(share for share, wait in rows if wait == IDLE)


def total_share(text, name):
    """In how much of the time it is on the stack: the first function of that name; 2.7 ends in another one than 3."""
    found = re.search(r"([\d.]+)%  (?:\w+\.)*" + name.replace("_shutdown", "(?:_shutdown|_exitfunc|__exitfunc)") + r" \(", text)
    return float(found.group(1)) if found else 0


def report(path, *options):
    run = pybpf("report", path, "-f", "text", "--limit", 10000, *options)
    assert run.code == 0, run.err
    return run


@pytest.fixture
def record(tmp_path):
    def recorded(python, kind):
        path = tmp_path / "out.pybpf"
        with harness.started(python.command("idle_places.py", kind), stdout=-1) as process:
            pid = harness.read_ready_line(process)["pid"]
            run = pybpf("-p", pid, "--children", "--mode=wall", "--idle", "-d", 1, "-o", path)
        assert run.code == 0, run.err
        return path

    return recorded


CASES = [(python, kind) for python in SOME for kind, (since, _) in IDLES.items() if python.version >= since]


@pytest.mark.parametrize("python, kind", CASES, ids=["%s-%s" % (python.name, kind) for python, kind in CASES])
def test_pools_and_loops_wait_for_work(python, kind, record):
    path = record(python, kind)
    folded, unfolded = report(path), report(path, "--idle")
    rows = waits(folded.out)
    assert idle_share(rows) > LEAST, folded.out
    assert rows[-1][1] == IDLE
    assert not idle_share(waits(unfolded.out))
    # All else is as it was, and so are the sums.
    assert folded.out.splitlines()[0] == unfolded.out.splitlines()[0]
    assert folded.err == unfolded.err
    assert [row for row in rows if row[1] == SLEEPS] == [row for row in waits(unfolded.out) if row[1] == SLEEPS] != []
    # The functions that wait have only what they do when they are woken.
    name = IDLES[kind][1]
    assert total_share(folded.out, name) < total_share(unfolded.out, name) - LEAST / 4, folded.out


@some_pythons
@pytest.mark.parametrize("kind", ["consumers", "accepts"])
def test_waits_of_the_programs_own_functions_stay(python, kind, record):
    text = report(record(python, kind)).out
    assert not idle_share(waits(text)), text
    assert any("consumer (" in wait or "acceptor (" in wait for share, wait in waits(text) if share > LEAST), text


@some_pythons
def test_a_request_that_has_begun_is_work(python, record):
    """The thread that serves it waits for its headers; it has no more than the moments between two requests elsewhere."""
    path = record(python, "slow_headers")
    folded, unfolded = (total_share(report(path, *options).out, "handle_one_request") for options in ((), ("--idle",)))
    assert folded > max(LEAST, unfolded - LEAST / 4), (folded, unfolded)


def test_tasks_of_uvicorn_that_wait_for_its_end(tmp_path):
    try:
        uvicorn = peers.services() / "uvicorn"
    except peers.Missing as missing:
        pytest.skip(str(missing))
    (tmp_path / "app.py").write_text(LIFESPAN)
    port, path = harness.free_port(), tmp_path / "out.pybpf"
    argv = [uvicorn, "--port", str(port), "--log-level", "critical", "app:app"]
    with harness.started(argv, cwd=tmp_path, stdin=subprocess.DEVNULL) as server:
        harness.wait_for(lambda: harness.answers(port))
        run = pybpf("-p", server.pid, "--mode=wall", "--async=all", "-d", 1, "-o", path)
    assert run.code == 0, run.err
    folded, unfolded = report(path).out, report(path, "--idle").out
    assert {wait for share, wait in waits(unfolded) if share > LEAST} == {
        "[awaits: Future] in app (app.py), via Queue.get (asyncio/queues.py)",
        "[awaits: Future] in Server.main_loop (uvicorn/server.py), via sleep (asyncio/tasks.py)",
        next(wait for _, wait in waits(unfolded) if wait.startswith("[poll: epoll")),
    }, unfolded
    assert [wait for share, wait in waits(folded) if share > LEAST] == [TASKS, IDLE], folded


@pytest.mark.parametrize("python", [item for item in SOME if item.version >= (3, 8)], ids=lambda item: item.name)
def test_a_loop_that_waits_for_an_answer_is_busy(python, record):
    text = report(record(python, "asking_loop")).out
    assert idle_share(waits(text)) < 5, text
    assert any("[poll: epoll until tcp 127.0.0.1:" in wait for share, wait in waits(text) if share > LEAST), text


def test_tables_of_a_run_fold_it_and_other_formats_do_not():
    python = pythons.one((3, 13))
    with harness.started(python.command("idle_places.py", "executor"), stdout=-1) as process:
        pid = harness.read_ready_line(process)["pid"]
        runs = {
            options: pybpf("-p", pid, "--mode=wall", "-d", 0.5, *options)
            for options in [("-f", "text"), ("-f", "text", "--idle"), ("-f", "text", "--by=state"), ("-f", "folded")]
        }
    assert not [run.err for run in runs.values() if run.code]
    assert [IDLE in run.out for run in runs.values()] == [True, False, False, False]
    assert runs["-f", "text", "--by=state"].out.endswith("  [waiting for work]\n")
    assert re.search(r"_worker \(concurrent/futures/thread.py:\d+\);\[lock\] \d", runs["-f", "folded"].out)
