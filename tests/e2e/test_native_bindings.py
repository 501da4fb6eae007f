# SPDX-License-Identifier: Apache-2.0
"""--native: extensions as Cython, pybind11, cffi and PyO3 make them, whose two chains are known: one computes, one calls back."""

import collections
import os
import shutil
import subprocess
import sys

import pytest

import harness
import peers
import pythons

sys.path.append(str(harness.TOP / "tests" / "judge"))

import wheels  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 499
ENOUGH = 600
INCOMPLETE = "[native frames incomplete]"
PACKAGES = ("cython==3.1.4", "pybind11==3.1.0", "cffi==2.1.1", "setuptools==80.9.0")
NEWER = (3, 9)  # what these are for
OLDER_PACKAGES = ("cython==3.0.12", "pybind11==2.9.2", "cffi==1.15.1")
PYO3 = "0.25.1"
PYO3_OLDEST = (3, 7)
HEADERS = "import os, sys, sysconfig; path = sysconfig.get_paths()['include']; sys.stdout.write(path if os.path.exists(path + '/Python.h') else '')"

PROGRAM = """
import sys, time
sys.path.insert(0, sys.argv[1])
import bound
def leaf():
    for _ in range(100000): pass
def computes(): bound.compute(3000000)
def calls(): bound.through(leaf)
sys.stdout.write("{}\\n")
sys.stdout.flush()
end = time.time() + 300
while time.time() < end:
    computes()
    calls()
"""

COMPUTING = """
static __attribute__((noinline)) long inner_computes(long turns)
{
	volatile long sum = 0;

	for (long i = 0; i < turns; i++)
		sum += i * i;
	return sum;
}

static __attribute__((noinline)) long outer_computes(long turns)
{
	return inner_computes(turns) + 1;
}
"""

CYTHON = """
# cython: language_level=3
cdef extern from "computing.h":
    long outer_computes(long turns)

cdef object inner_calls(object function):
    return [function()]

cdef object outer_calls(object function):
    return [inner_calls(function)]

def compute(long turns):
    return outer_computes(turns)

def through(function):
    return outer_calls(function)
"""

PYBIND11 = """
#include <pybind11/pybind11.h>
#include "computing.h"

static __attribute__((noinline)) int inner_calls(pybind11::function function)
{
	function();
	return 1;
}

static __attribute__((noinline)) int outer_calls(pybind11::function function)
{
	return inner_calls(function) + 1;
}

PYBIND11_MODULE(bound, module)
{
	module.def("compute", &outer_computes);
	module.def("through", &outer_calls);
}
"""

CFFI = """
import cffi
made = cffi.FFI()
made.cdef('''
long outer_computes(long turns);
int outer_calls(void *function);
extern "Python" int call_back(void *function);
''')
made.set_source("_bound", '''
#include "computing.h"
static int call_back(void *function);
static __attribute__((noinline)) int inner_calls(void *function) { return call_back(function) + 1; }
static __attribute__((noinline)) int outer_calls(void *function) { return inner_calls(function) + 1; }
''', include_dirs=["."])
made.emit_c_code("_bound.c")
"""
CFFI_MODULE = """
from _bound import ffi, lib

@ffi.def_extern()
def call_back(function):
    ffi.from_handle(function)()
    return 0

compute = lib.outer_computes

def through(function):
    lib.outer_calls(ffi.new_handle(function))
"""

RUST = """
use pyo3::prelude::*;
use std::hint::black_box;

#[inline(never)]
fn inner_computes(turns: i64) -> i64 {
    let mut sum = 0i64;
    for i in 0..turns {
        sum = black_box(sum.wrapping_add(i * i));
    }
    sum
}

#[inline(never)]
fn outer_computes(turns: i64) -> i64 {
    black_box(inner_computes(turns)) + 1
}

#[inline(never)]
fn inner_calls(function: &Bound<'_, PyAny>) -> PyResult<i64> {
    function.call0()?;
    Ok(black_box(1))
}

#[inline(never)]
fn outer_calls(function: &Bound<'_, PyAny>) -> PyResult<i64> {
    Ok(black_box(inner_calls(function)?) + 1)
}

#[pyfunction]
fn compute(turns: i64) -> i64 {
    outer_computes(turns)
}

#[pyfunction]
fn through(function: &Bound<'_, PyAny>) -> PyResult<i64> {
    outer_calls(function)
}

#[pymodule]
fn bound(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(compute, module)?)?;
    module.add_function(wrap_pyfunction!(through, module)?)
}
"""
CARGO = """
[package]
name = "bound"
version = "0.1.0"
edition = "2021"
[lib]
crate-type = ["cdylib"]
[dependencies]
pyo3 = { version = "=%s", features = ["extension-module"] }
[profile.release]
lto = "off"
"""


def run(argv, **options):
    done = peers.run([str(word) for word in argv], **options)
    assert not done.returncode, done.stdout


def headers(python):
    """The folder of its headers; empty if there are none."""
    return pythons.answer(python.argv, HEADERS)[1]


# 3.14 and 3.15 are without headers here, in a root file system of their own.
USABLE = [item for item in pythons.interpreters() if item.kind != "stripped" and item.runs_here() and headers(item)]
PYTHONS = pythons.of_each_version(USABLE)


def packages_for(python):
    return ("bindings", PACKAGES) if python.version >= NEWER else ("older-bindings", OLDER_PACKAGES)


def compile_module(python, compiler, source, *options):
    """Makes the module beside its source, optimized as extensions are. All Pythons take one whose name says no version."""
    include = ["-I", headers(python), "-I", source.parent]
    run([compiler, "-O2", "-g", "-fPIC", "-shared", *include, "-o", source.with_suffix(".so"), source, *options])


def make_cython(python, folder, programs, *options):
    source = folder / "bound.pyx"
    source.write_text(CYTHON)
    run([programs / "cython", "-X", "linetrace=%s" % bool(options), source])
    compile_module(python, "gcc", folder / "bound.c", "-fno-inline", *options)


def make_traced_cython(python, folder, programs):
    make_cython(python, folder, programs, "-DCYTHON_TRACE=1")


def make_pybind11(python, folder, programs):
    source = folder / "bound.cc"
    source.write_text(PYBIND11)
    include = next((programs.parent / "lib").glob("python3.*/site-packages/pybind11/include"))
    compile_module(python, "g++", source, "-std=c++17", "-fvisibility=hidden", "-I", include)


def make_cffi(python, folder, programs):
    backend, why = wheels.find(python, "cffi")
    if not backend:
        pytest.skip(why)
    (folder / "make.py").write_text(CFFI)
    run([programs / "python", "make.py"], cwd=folder)
    compile_module(python, "gcc", folder / "_bound.c")
    (folder / "bound.py").write_text("import sys\nsys.path.append(%r)\n%s" % (backend, CFFI_MODULE))


def make_rust(python, folder, _):
    if not shutil.which("cargo"):
        pytest.skip("there is no cargo")
    if python.version < PYO3_OLDEST:
        pytest.skip("PyO3 is for 3.7 and later")
    (folder / "src").mkdir()
    (folder / "src" / "lib.rs").write_text(RUST)
    (folder / "Cargo.toml").write_text(CARGO % PYO3)
    target = pythons.cache() / "cargo" / python.name
    environment = dict(os.environ, CARGO_TARGET_DIR=str(target), PYO3_PYTHON=python.argv[0])
    run(["cargo", "build", "--release", "--quiet"], cwd=folder, env=environment)
    shutil.copy(target / "release" / "libbound.so", folder / "bound.so")


MAKERS = {
    "cython": make_cython,
    "cython with linetrace": make_traced_cython,
    "pybind11": make_pybind11,
    "cffi": make_cffi,
    "pyo3": make_rust,
}
# In the order in which they call each other.
CHAINS = {"computes": ("outer_computes", "inner_computes"), "calls": ("outer_calls", "inner_calls")}


def named(frame):
    """The function's own name: without its namespace, its parameters, and what Cython puts before it."""
    return frame.name.partition("(")[0].rpartition("::")[2].replace("__pyx_f_5bound_", "")


@pytest.mark.parametrize("how", MAKERS)
@pytest.mark.parametrize("python", PYTHONS, ids=lambda item: item.name)
def test_chains_that_are_known(python, how, tmp_path):
    try:
        programs = peers.virtual_environment(*packages_for(python))
    except peers.Missing as why:
        pytest.skip(str(why))
    (tmp_path / "computing.h").write_text(COMPUTING)
    MAKERS[how](python, tmp_path, programs)
    with harness.started([*python.argv, "-c", PROGRAM, tmp_path], stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.record(process.pid, "--native").stats["native"]["whole"] > 0)
        run_ = harness.record_busy(process.pid, "--native", fewest=ENOUGH, seconds=3, rate=RATE)
    ends, met = run_.stats["native"], collections.Counter()
    for stack, count in run_.stacks():
        names = [named(frame) for frame in stack]
        if INCOMPLETE in [frame.text for frame in stack]:
            continue
        assert names[0] == "<module>", harness.show(stack)
        own = [name for name in names[1:] if name in ("leaf", *CHAINS, *CHAINS["computes"], *CHAINS["calls"])]
        if not own:
            continue
        whole = (own[0], *CHAINS[own[0]], *(["leaf"] if own[0] == "calls" else []))
        assert tuple(own) == whole[: len(own)], harness.show(stack)
        met[whole[len(own) - 1]] += count
    assert min(met["inner_computes"], met["leaf"]) > 50 and met["inner_computes"] + met["leaf"] > 0.9 * met.total(), met
    assert ends["whole"] > 0.98 * run_.stats["samples"]["python"] and not ends["not_joined"], ends
