# SPDX-License-Identifier: Apache-2.0
"""Names of native functions: demangled, and those of stripped files from where the names of their functions are kept."""

import collections
import json
import lzma
import os
import re
import shutil
import subprocess
import zlib
from pathlib import Path

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 499
SOURCE = harness.TOP / "tests" / "targets" / "native_names.cc"
# The leaf's callers, the first one called by Python.
CHAIN = [
    "nn_go",
    "clone",
    "shop::clone",
    "shop::Price::operator<",
    "shop::Store<std::string, long>::sum",
    "shop::Store<std::string, long>::sum::{lambda(int)#1}::operator()",
    "shop::(anonymous namespace)::burn",
]
GOES = "import ctypes, sys\ngo = ctypes.CDLL(sys.argv[1]).nn_go\nfor _ in range(int(sys.argv[2]) // 50): go(50)\n"


def run(*argv, **options):
    return subprocess.run(list(map(str, argv)), check=True, **options)


def compiler(*names):
    found = next(filter(None, map(shutil.which, names)), None)
    return found or pytest.skip("there is none of %s" % ", ".join(names))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """With all its symbols, and a build-id."""
    path = tmp_path_factory.mktemp("names") / "names.so"
    run(compiler("g++", "clang++"), "-O1", "-g", "-w", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-plt", "-Wl,--build-id", "-o", path, SOURCE)
    return path


def stripped(library, folder, *options):
    """A copy without .symtab, whose only name is that of the function that is exported, nn_go; options of objcopy for it."""
    path = folder / "stripped.so"
    run("objcopy", "--strip-all", *options, library, path)
    return path


def chains(path, *options, argv=(), ms=1000):
    """Chains of functions in the library -> samples."""
    python = harness.default_python()
    done = pybpf("--native", "-q", "-F", RATE, *options, "--", *argv, python.argv[0], "-c", GOES, path, ms)
    assert done.code == 0, done.err
    return in_library(done, path)


def in_library(done, path):
    found = collections.Counter()
    for stack, count in done.stacks():
        found[tuple(frame.name for frame in stack if path.name in frame.text)] += count
    return found


def most(found):
    return max((names for names in found if names), key=found.get, default=())


def debug_file(library, folder, name="names.debug"):
    path = folder / name
    run("objcopy", "--only-keep-debug", library, path)
    return path


def build_id(path):
    notes = run("readelf", "-n", path, capture_output=True, text=True).stdout
    return re.search(r"Build ID: (\w+)", notes).group(1)


def test_cpp(library):
    """Each is shown as its source has it, and none is taken for one of the C library's."""
    found = chains(library)
    assert list(most(found)) == CHAIN and found[most(found)] > 0.8 * sum(found.values()), found
    parts = {tuple(CHAIN[:length]) for length in range(len(CHAIN) + 1)}
    assert set(found) <= parts, found


def test_a_name_that_grows(library, tmp_path):
    """Each part of it doubles what is written: it stays as it is, and no other name is missing for it."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    steps = "".join("S1_IS%s_S%s_E" % (digits[i + 2], digits[i + 2]) for i in range(32))
    grows = "_Z1fI1A1BIS0_S0_E%sEvv" % steps
    (tmp_path / "names").write_text("_ZN4shop12_GLOBAL__N_14burnEi %s\n" % grows)
    run("objcopy", "--redefine-syms=%s" % (tmp_path / "names"), library, tmp_path / "grows.so")
    assert list(most(chains(tmp_path / "grows.so"))) == [*CHAIN[:-1], grows[:252] + "..."]


def dumped(pid, path):
    """The functions of the library that run now; none while the leaf is in the kernel's own code, [vdso]."""
    frames = json.loads(pybpf("dump", "-p", pid, "--native", "--json").out)["threads"][0]["native_frames"]
    return [frame["function"] for frame in frames if frame["file"] == str(path)]


def test_top_report_and_dump(library, tmp_path):
    argv = [harness.default_python().argv[0], "-c", GOES, library]
    with harness.started([*map(str, argv), "60000"]) as process:
        top = pybpf("top", "-p", process.pid, "-d", 2, "-F", RATE, "--native", "--output=jsonl", "--rows", 200)
        harness.record(process.pid, "--native", "-o", tmp_path / "p.pybpf", seconds=1, rate=RATE)
        harness.wait_for(lambda: dumped(process.pid, library) == CHAIN)
    rows = {row["name"]: row for row in json.loads(top.out.strip().split("\n")[-1])["functions"]}
    assert rows[CHAIN[-1]]["all_self"] > 0.2 * rows[CHAIN[0]]["all_total"] > 0, rows
    report = pybpf("report", tmp_path / "p.pybpf", "-f", "folded")
    assert list(most(in_library(report, library))) == CHAIN


def test_rust(tmp_path):
    """Both schemes: the newer one needs no option of a compiler of our day."""
    source = tmp_path / "lib.rs"
    source.write_text("""
        pub mod shop {
            pub trait Sum { fn sum(&self, ms: u64); }
            pub struct Store<T>(pub T);
            impl Sum for Store<u8> {
                #[inline(never)] fn sum(&self, ms: u64) { apply(|part| super::burn(part), ms); std::hint::black_box(self); }
            }
            #[inline(never)] pub fn apply<F: Fn(u64) -> u64>(f: F, ms: u64) -> u64 { std::hint::black_box(f(ms)) }
        }
        #[inline(never)] fn burn(ms: u64) -> u64 {
            let begin = std::time::Instant::now();
            let mut n = 0u64;
            while begin.elapsed().as_millis() < ms as u128 { for i in 0..2000u64 { n = std::hint::black_box(n ^ i); } }
            n
        }
        #[no_mangle] pub extern "C" fn nn_go(ms: u64) {
            use shop::Sum;
            std::hint::black_box(shop::Store(3u8)).sum(ms);
            std::hint::black_box(ms);
        }""")
    rust = compiler("rustc")
    # rustup's may have no toolchain.
    if subprocess.run([rust, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("rustc does not run")
    for scheme in ("v0", "legacy"):
        path = tmp_path / ("lib%s.so" % scheme)
        run(rust, "-Copt-level=1", "-Cpanic=abort", "--crate-type=cdylib", "-Csymbol-mangling-version=" + scheme, "-Zunstable-options",
            source, "-o", path, env={**os.environ, "RUSTC_BOOTSTRAP": "1"})
        names = {name for found in chains(path) for name in found}
        assert names >= {"lib::burn", "<lib::shop::Store<u8> as lib::shop::Sum>::sum"}, (scheme, names)
        assert not any(re.match("_[RZ]|.*::h[0-9a-f]{16}$", name) for name in names), (scheme, names)


def test_stripped(library, tmp_path):
    """Without names, there is nothing to guess."""
    found = chains(stripped(library, tmp_path))
    assert re.fullmatch(r"\[stripped\.so\+0x[0-9a-f]+\]", most(found)[-1]), found
    assert most(found)[0] == "nn_go"


def test_debug_data(library, tmp_path):
    """As Fedora's packages have it: the names that .dynsym lacks, packed by xz into the file."""
    mini = debug_file(library, tmp_path, "mini")
    own = set(run("nm", "-D", "--format=posix", "--defined-only", library, capture_output=True, text=True).stdout.split("\n"))
    every = run("nm", "--format=posix", "--defined-only", library, capture_output=True, text=True).stdout.split("\n")
    (tmp_path / "keep").write_text("".join(row.split()[0] + "\n" for row in every if row and row not in own and row.split()[1] in "Ttw"))
    run("objcopy", "-S", "--remove-section=.gdb_index", "--remove-section=.comment", "--keep-symbols=%s" % (tmp_path / "keep"), mini)
    mini.with_suffix(".xz").write_bytes(lzma.compress(mini.read_bytes()))
    path = stripped(library, tmp_path, "--add-section", ".gnu_debugdata=%s" % mini.with_suffix(".xz"))
    assert list(most(chains(path))) == CHAIN
    # Damaged, it is as if it was not there.
    content = path.read_bytes()
    place = content.index(b"\xfd7zXZ")
    path.write_bytes(content[: place + 200] + b"\xff" * 50 + content[place + 250 :])
    assert most(chains(path))[-1].startswith("[stripped.so+")


def test_debug_link(library, tmp_path):
    """A file beside the library, or below .debug; its build-id is that of the library, or the CRC32 is that of the link."""
    debug = debug_file(library, tmp_path)
    path = stripped(library, tmp_path, "--add-gnu-debuglink=%s" % debug)
    assert list(most(chains(path))) == CHAIN
    (tmp_path / ".debug").mkdir()
    debug = debug.rename(tmp_path / ".debug" / debug.name)
    assert list(most(chains(path))) == CHAIN
    # Another build of it has other addresses.
    content, number = debug.read_bytes(), bytes.fromhex(build_id(debug))
    debug.write_bytes(content.replace(number, bytes(reversed(number))))
    assert most(chains(path))[-1].startswith("[stripped.so+")
    # The sum tells where there is no build-id.
    run("objcopy", "--remove-section=.note.gnu.build-id", path)
    assert most(chains(path))[-1].startswith("[stripped.so+")
    debug.write_bytes(content)
    assert list(most(chains(path))) == CHAIN
    linked = run("objcopy", "-O", "binary", "--only-section=.gnu_debuglink", path, "/dev/stdout", capture_output=True).stdout
    assert not linked or linked[-4:] == zlib.crc32(content).to_bytes(4, "little")


def test_debug_file_of_another_root(library, tmp_path):
    """In a container, by the build-id, in the container's own /usr/lib/debug."""
    number = build_id(library)
    place = tmp_path / "debug" / ".build-id" / number[:2]
    place.mkdir(parents=True)
    debug_file(library, place, number[2:] + ".debug")
    path = stripped(library, tmp_path)
    Path("/usr/lib/debug").mkdir(exist_ok=True)
    inside = ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", tmp_path / "debug", "/usr/lib/debug"]
    assert list(most(chains(path, argv=inside))) == CHAIN
    assert most(chains(path))[-1].startswith("[stripped.so+")


def test_distribution(tmp_path):
    """Debian's Python is stripped: its -dbg package has its names, and what runs functions of Python is left out by them."""
    python = pythons.one(name="system-python3.11")
    if not python:
        pytest.skip("there is no Python of Debian 12")
    program = os.path.realpath(python.argv[0])
    number = build_id(program)
    if not Path("/usr/lib/debug/.build-id", number[:2], number[2:] + ".debug").exists():
        pytest.skip("there is no debug file of %s: python3-dbg has it" % program)
    script = tmp_path / "sorts.py"
    script.write_text("import time\ndef key(x): return -x\nend = time.time() + 1\n"
                      "while time.time() < end: sorted(range(5000), key=key)\n")
    done = pybpf("--native", "-q", "-F", RATE, "--", program, script)
    assert done.code == 0, done.err
    shown = collections.Counter()
    for stack, count in done.stacks():
        names = [frame.name for frame in stack]
        sorting = ["builtin_sorted", "list_sort", "list_sort_impl", "key"]
        at = names.index(sorting[0]) if sorting[0] in names else len(names)
        shown["sorting"] += count * (names[at : at + 4] == sorting)
        shown["CPython"] += count * any(frame.text == "[CPython]" for frame in stack)
        shown["all"] += count
        assert not {"_PyEval_EvalFrameDefault", "_PyEval_Vector", "_PyFunction_Vectorcall", "cfunction_vectorcall_O"} & set(names), names
    assert shown["sorting"] > 0.05 * shown["all"] > 0 and shown["CPython"] < 0.05 * shown["all"], shown


def test_assembly_that_says_nothing_of_itself(tmp_path):
    """No size, and no call frame information: what is called is named by where it begins, and its caller is found."""
    source, library = tmp_path / "assembly.s", tmp_path / "assembly.so"
    source.write_text(
        ".globl nn_assembly\n.type nn_assembly, @function\nnn_assembly:\n1: dec %rdi\njnz 1b\nret\n"
        ".skip 64, 0xcc\n"  # less code is taken for what aligns functions
        '.section .note.GNU-stack, "", @progbits\n'
    )
    run(compiler("cc"), "-shared", "-nostdlib", "-o", library, source)
    program = "import ctypes, sys\ngo = ctypes.CDLL(sys.argv[1]).nn_assembly\nfor _ in range(150): go(ctypes.c_long(30_000_000))\n"
    sampled = pybpf("--native", "-q", "-F", RATE, "-f", "folded", "--", harness.default_python().argv[0], "-c", program, library)
    assert sampled.code == 0, sampled.err
    counts = collections.Counter()
    for stack, count in sampled.stacks():
        leaf = next((frame for frame in reversed(stack) if "assembly" in frame.file), None)
        counts[leaf and leaf.name, any(frame.text == "[native frames incomplete]" for frame in stack)] += count
    named = counts["nn_assembly", False]
    assert named > 0.7 * sum(counts.values()), counts
