# SPDX-License-Identifier: Apache-2.0
"""pybpf dump: greenlets that do not run, compared with what the program knows of them."""

import json
import re
import subprocess
import sys

import pytest

import harness
import pythons
from harness import pybpf
from test_dump_core import gcore

sys.path[:0] = [str(harness.TOP / "tests/judge")]

import wheels  # noqa: E402

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)


def folder_of(python, library="greenlet"):
    folder, why = wheels.find(python, library)
    if why:
        pytest.skip("%s has no %s: %s" % (python.name, library, why))
    return folder


def dump(*args):
    run = pybpf("dump", "--json", "--no-source", *args)
    assert run.code == 0 and not run.err, run
    return json.loads(run.out)


def functions(frames):
    return [re.sub(r".*\.", "", frame["function"]) for frame in frames]


def check(snapshot, says):
    threads = {thread["name"]: thread for thread in snapshot["threads"]}
    for name, wanted in says.items():
        found = {str(each["id"]): each for each in threads[name]["greenlets"]}
        assert set(found) == set(wanted), name
        for address, chain in wanted.items():
            if chain:
                assert functions(found[address]["frames"]) == chain and not found[address]["main"]
            else:
                assert found[address]["main"] and functions(found[address]["frames"])[-1] in ("thread", "stand", "begin")
            assert found[address]["class"] in ("greenlet.greenlet", "Mine")
    assert not snapshot["greenlets_left_out"] and not snapshot["greenlets_beyond"]


@every_python
@pytest.mark.parametrize("what", ["stand", "exposed"])
def test_greenlets_that_stand(python, what):
    with harness.target(python, "greenlets.py", folder_of(python), what) as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        named = {"MainThread" if name == "MainThread" else name: stacks for name, stacks in target.says["greenlets"].items()}
        check(dump("-p", target.pid), named)
        check(dump("-p", target.pid, "--freeze"), named)


@every_python
@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
def test_greenlets_that_switch_show_no_stack_that_they_never_had(python, frozen):
    met = 0
    with harness.target(python, "greenlets.py", folder_of(python), "busy") as target:
        for _ in range(10):
            snapshot = dump("-p", target.pid, *(["--freeze"] if frozen else []))
            for greenlet in snapshot["threads"][0]["greenlets"]:
                names = functions(greenlet["frames"])
                if greenlet["main"]:
                    assert names == ["<module>", "busy"]
                    continue
                met += 1
                assert len({name[2:] for name in names}) == 1 and [name[0] for name in names] == ["a", "b", "c"], names
    assert met or not frozen


def test_greenlets_of_gevent():
    python = harness.default_python()
    program = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "import gevent\n"
        "def inner(n):\n    gevent.sleep(n)\n"
        "def outer(n):\n    inner(n)\n"
        "made = [gevent.spawn(outer, 1000) for _ in range(100)]\n"
        "gevent.sleep(0)\n"
        "print('[]', flush=True)\n"
        "gevent.joinall(made)\n"
    )
    argv = [*python.argv, "-c", program, folder_of(python, "gevent")]
    with harness.started(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        snapshot = dump("-p", process.pid)
        text = pybpf("dump", "-p", process.pid, "--short").out
    (thread,) = snapshot["threads"]
    spawned = [functions(each["frames"]) for each in thread["greenlets"] if not each["main"]]
    assert len(spawned) == 100 and all(names[-3:] == ["outer", "inner", "sleep"] for names in spawned)
    assert re.search(r"\n  100 greenlets of class \S+ at 0x\w+, 0x\w+, 0x\w+, 0x\w+, \.\.\.\n    sleep \(gevent/hub\.py:\d+\)\n    inner", text)
    assert re.search(r"\n  Main greenlet of class greenlet\.greenlet at 0x\w+\n", text)


def test_greenlets_of_a_core(tmp_path):
    python = harness.default_python()
    with harness.target(python, "greenlets.py", folder_of(python), "stand") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        path, _ = gcore(target.pid, str(tmp_path))
        says = target.says["greenlets"]
    check(dump("--core", path), says)
