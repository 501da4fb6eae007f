# SPDX-License-Identifier: Apache-2.0
"""Native frames of functions that are hard to see through: all of the chain, or its end behind a mark, and never another one."""

import collections
import shutil
import subprocess

import pytest

import harness
from harness import pybpf
from native_lines import make, run

pytestmark = pytest.mark.usefixtures("profiler")

SOURCE = harness.TOP / "tests" / "targets" / "native_unusual.c"
CALLED = ["aligned_one", "aligned_two", "aligned_three", "plain"]
GOES = "import ctypes, sys\nlib = ctypes.CDLL(sys.argv[1])\n" + "".join("def %s(): lib.nu_go(%d, 150)\n" % ("py_" + name, which) for which, name in enumerate(CALLED)) + "".join("py_%s()\n" % name for name in CALLED)
MARK = "[native frames incomplete]"
# No rule: what is shown ends there. The library's functions have none but for what can be told of their instructions.
WITHOUT = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer"]


def chains(library, tmp_path):
    """Python's function -> (the library's functions, marked or not) -> samples."""
    saved = tmp_path / "p.pybpf"
    done = pybpf("--native", "-F", 499, "-o", saved, "--", harness.default_python().argv[0], "-c", GOES, library)
    assert done.code == 0, done.err
    found = collections.defaultdict(collections.Counter)
    for stack, count in pybpf("report", saved, "-f", "folded").stacks():
        names = [frame.name for frame in stack]
        begins = [i for i, name in enumerate(names) if name.startswith("py_")]
        if begins:
            shown = tuple(frame.name for frame in stack[begins[0] + 1 :] if frame.file == library.name)
            found[names[begins[0]][3:]][shown, MARK in names] += count
    return found


@pytest.mark.parametrize("options", [["-O2"], ["-O2", "-mstackrealign"], ["-O3", "-mavx2"]], ids=" ".join)
def test_aligned_stacks_are_whole(options, tmp_path):
    found = chains(make(tmp_path / "unusual.so", *options, source=SOURCE), tmp_path)
    for name in CALLED:
        whole = found[name][("nu_go", name, "leaf"), False]
        assert whole > 0.8 * found[name].total() > 20, found


@pytest.mark.parametrize("options", [["-O2"], ["-O3", "-mavx2", "-mstackrealign"]], ids=" ".join)
def test_nothing_is_false_without_information(options, tmp_path):
    """The names come from the file for debuggers, by the addresses of frames: a row without a rule has several functions in it."""
    whole = make(tmp_path / "whole.so", *options, *WITHOUT, source=SOURCE)
    run("objcopy", "--only-keep-debug", whole, tmp_path / "unusual.debug")
    library = tmp_path / "unusual.so"
    run("objcopy", "--strip-all", "--add-gnu-debuglink=%s" % (tmp_path / "unusual.debug"), whole, library)
    found = chains(library, tmp_path)
    for name in CALLED:
        truth = ("nu_go", name, "leaf")
        for shown, marked in found[name]:
            # Samples of each of the three, and of the clock, which is in another library.
            possible = [truth[begin:end] for end in range(1, 4) for begin in range(end if marked else 1)] + [()]
            # Calls go by the PLT, whose entries have no names.
            called = shown[:-1] if shown and shown[-1].startswith("[unusual.so+") else shown
            assert called in possible, (shown, marked, found)
        assert sum(count for (shown, _), count in found[name].items() if shown[-1:] == ("leaf",)) > 0.8 * found[name].total() > 20, found


KEEPS_NOTHING = "__attribute__((preserve_none)) void f(int i) { __attribute__((musttail)) return f(i); }\n"
# Its instructions: 0 and 1 work themselves, 2 has a function work, 3 calls Python, 4 is the end.
EVALUATES = """
import ctypes, sys, time
run, turns = ctypes.CDLL(sys.argv[1]).nt_run, ctypes.c_long(20000)
Back = ctypes.CFUNCTYPE(None)
def py_inner(): run(bytes([0, 1, 0, 2, 4]), None, turns)
inner = Back(py_inner)
def py_outer(): run(bytes([0, 1, 0, 3, 0, 4]), inner, turns)
end = time.time() + 1.5
while time.time() < end: py_outer()
"""


def compiler_of_tail_calls():
    """That of Python's own evaluation by tail calls: clang 19 and later."""
    for name in ("clang", *("clang-%d" % version for version in range(19, 30))):
        argv = [name, "-Werror", "-fsyntax-only", "-x", "c", "-"]
        if shutil.which(name) and not subprocess.run(argv, input=KEEPS_NOTHING, text=True, capture_output=True).returncode:
            return name
    return pytest.skip("there is no clang 19")


@pytest.mark.parametrize("options", [[], WITHOUT, ["-fno-omit-frame-pointer"]], ids=["", "without information", "frame pointers"])
def test_evaluation_by_tail_calls(options, tmp_path):
    library = tmp_path / "tail.so"
    run(compiler_of_tail_calls(), "-O2", "-shared", "-fPIC", *options, "-o", library, SOURCE.with_name("native_tail.c"))
    done = pybpf("--native", "-q", "-F", 499, "--", harness.default_python().argv[0], "-c", EVALUATES, library)
    assert done.code == 0, done.err
    shown, marked = collections.Counter(), 0
    for stack, count in done.stacks():
        names = [frame.name for frame in stack if frame.name in ("py_outer", "py_inner") or frame.file == library.name]
        if MARK in [frame.name for frame in stack]:
            marked += count
        elif names:
            shown[tuple(names)] += count
    inside = ("py_outer", "nt_run", "op_call", "py_inner")
    allowed = {inside[:i] for i in range(1, 5)} | {("py_outer", "nt_run", work) for work in ("op_add", "op_burn", "op_end")}
    allowed |= {(*inside, "nt_run", *work) for work in [(), ("op_add",), ("op_burn",), ("op_leaf",), ("op_leaf", "leaf"), ("op_end",)]}
    assert set(shown) <= allowed, set(shown) - allowed
    assert shown["py_outer", "nt_run", "op_burn"] > 20 and shown[(*inside, "nt_run", "op_burn")] > 20, shown
    assert shown[(*inside, "nt_run", "op_leaf", "leaf")] > 20 and marked < 0.1 * shown.total(), (shown, marked)


def test_a_frame_pointer_that_is_not_kept(tmp_path):
    """Its callee says so: nl_go() is found by its frame pointer, which leads to what seems to be a frame of nl_decoy()."""
    library = make(tmp_path / "lost.so", "-fvisibility=default", "-fno-omit-frame-pointer", source=SOURCE.with_name("native_lost.c"))
    script = "import ctypes, sys\nctypes.CDLL(sys.argv[1]).nl_outer(600)"
    done = pybpf("--native", "-q", "-F", 499, "--", harness.default_python().argv[0], "-c", script, library)
    assert done.code == 0, done.err
    shown = collections.Counter()
    for stack, count in done.stacks():
        names = tuple(frame.name for frame in stack if frame.file == library.name)
        assert "nl_decoy" not in names, harness.show(stack)
        if "nl_lost" in names:
            assert MARK in [frame.name for frame in stack], harness.show(stack)
            shown[names[:3]] += count
    assert shown["nl_go", "nl_lost", "nl_burn"] > 20, shown
