# SPDX-License-Identifier: Apache-2.0
"""Native frames on stacks that are not the thread's own: all of the chain, or its end behind a mark, and never another one."""

import collections
import itertools
import os
import shutil

import pytest

import harness
from harness import pybpf
from native_lines import make, run

pytestmark = pytest.mark.usefixtures("profiler")

TARGETS = harness.TOP / "tests" / "targets"
MARK = "[native frames incomplete]"
SCRIPT = """
import ctypes, sys, time
lib = ctypes.CDLL(sys.argv[1])
def called(ms):
    end = time.thread_time() + ms / 1e3
    while time.thread_time() < end:
        sum(range(1000))
back = ctypes.CFUNCTYPE(None, ctypes.c_int)(called)
%s
def burns(): lib.%s(300)
def calls(): lib.%s(back, 300)
while time.process_time() < 2:
    burns()
    calls()
"""
PYTHON = (["<module>", "burns"], ["<module>", "calls"], ["<module>", "calls", "called"])


def stacks(library, burn, call, before=""):
    """[(Python's functions, whether marked, the library's functions by the Python function below them, samples)]."""
    script = SCRIPT % (before, burn, call)
    done = pybpf("--native", "-q", "-F", 499, "--", harness.default_python().argv[0], "-c", script, library)
    assert done.code == 0, done.err
    found = []
    for stack, count in done.stacks():
        python, native = [], collections.defaultdict(list)
        for frame in stack:
            if frame.file == "<string>":
                python.append(frame.name)
            elif frame.file == library.name and python:
                native[python[-1]].append(frame.name)
        # While modules are imported, namedtuple() runs code of a string, too.
        if python[:1] == ["<module>"] and len(python) > 1 and python[1] != "<module>":
            found.append((python, any(frame.text == MARK for frame in stack), native, count))
    return found


def check_python(found):
    """Python's functions are what they are, wherever the stack is that they run on."""
    counts = collections.Counter()
    for python, _, native, count in found:
        assert python in PYTHON, python
        assert not native["called"], native
        counts[python[-1]] += count
    assert counts["burns"] > 50 and counts["called"] > 50, counts


def is_part(shown, chain, is_marked):
    """From the start of the chain on, unless marked."""
    shown = [name for name in shown if not name.startswith("[")]
    return any(chain[begin : begin + len(shown)] == shown for begin in range(len(chain) if is_marked else 1))


# Each way of native_fibers.c to switch, and the functions on a fiber's stack.
WAYS = {
    "makecontext": ["nf_made_fiber", "nf_fiber"],
    "as libco": ["nf_fiber"],
    "as boost.context": ["nf_jump_begin", "nf_fiber"],
}


@pytest.mark.parametrize("way", WAYS)
def test_fibers(way, tmp_path):
    library = make(tmp_path / "fibers.so", "-fvisibility=default", source=TARGETS / "native_fibers.c")
    found = stacks(library, "nf_burns", "nf_switch", "lib.nf_choose(%d)" % list(WAYS).index(way))
    check_python(found)
    shown = 0
    for python, is_marked, native, count in found:
        assert is_part(native["burns"], ["nf_burns", "nf_switch", *WAYS[way], "nf_burn"], is_marked), native
        assert is_part(native["calls"], ["nf_switch", *WAYS[way]], is_marked), native
        shown += count if native["burns"][-2:] == ["nf_fiber", "nf_burn"] else 0
    assert shown > 20, found


# Who calls each function; any other one is of the runtime.
GO_CALLERS = {"main.spin": "main.ng_burn", "main.ng_burn": "_cgoexp_", "main.ng_call": "_cgoexp_"}


def test_go(tmp_path):
    go = shutil.which("go") or pytest.skip("there is no go")
    shutil.which("gcc") or pytest.skip("there is no gcc, which go needs for a shared library")
    library = tmp_path / "go.so"
    run(go, "build", "-buildmode=c-shared", "-o", library, TARGETS / "native_go.go", env={**os.environ, "CGO_ENABLED": "1"})
    found = stacks(library, "ng_burn", "ng_call")
    check_python(found)
    spins = 0
    for python, is_marked, native, count in found:
        assert not any("ng_call" in name for name in native["burns"]), native
        assert not any(name == "main.spin" or "ng_burn" in name for name in native["calls"]), native
        # Before and after the call ctypes is at work.
        assert is_marked or native["burns"][:1] in ([], ["ng_burn"]), native
        for caller, callee in itertools.chain(*(zip(names, names[1:]) for names in native.values())):
            assert caller.startswith(GO_CALLERS.get(callee, "")), (caller, callee)
        spins += count if "main.spin" in native["burns"] else 0
    assert spins > 20, found
