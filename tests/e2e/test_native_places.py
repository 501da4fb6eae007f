# SPDX-License-Identifier: Apache-2.0
"""Where native functions are: build-ids and addresses, by which others find their symbols."""

import os
import re
import shutil
import subprocess

import pytest

import harness
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

SOURCE = harness.TOP / "tests" / "targets" / "native_lines.c"
GOES = "import ctypes, sys\ngo = ctypes.CDLL(sys.argv[1]).nl_go\nfor _ in range(12): go(50)\n"


def run(*argv, **options):
    return subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True, **options).stdout


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder with libraries: whole, and stripped, the first folder of its own."""
    folder = tmp_path_factory.mktemp("places")
    (folder / "whole").mkdir()
    compiler = shutil.which("gcc") or pytest.skip("there is no gcc")
    run(compiler, "-O2", "-g", "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,--build-id", "-o", folder / "whole" / "lines.so", SOURCE)
    run("objcopy", "--strip-all", folder / "whole" / "lines.so", folder / "lines.so")
    for name in ("whole/lines", "lines"):
        argv = [harness.default_python().argv[0], "-c", GOES, folder / (name + ".so")]
        done = pybpf("--native", "-q", "-F", 499, "-o", folder / (name + ".pybpf"), "--", *argv)
        assert done.code == 0, done.err
    return folder


def pprof(saved, *options, **environment):
    path = saved.with_suffix(".pb.gz")
    assert pybpf("report", saved, "-o", path).code == 0
    go = shutil.which("go") or pytest.skip("go is not installed; tools/install-deps --test installs it")
    return run(go, "tool", "pprof", *options, path, env={**os.environ, **environment})


def build_id(library):
    return re.search(r"Build ID: (\w+)", run("readelf", "-n", library)).group(1)


def in_library(saved, library):
    """The mapping, and address -> function of the locations in it, as pprof's reader has them."""
    locations, mappings = pprof(saved, "-raw").split("\nLocations\n", 1)[1].split("\nMappings\n", 1)
    number, rest = re.search(r"(?m)^(\d+): (.* ?%s .*)$" % re.escape(str(library)), mappings).groups()
    found = re.findall(r"(?m)^ *\d+: 0x(\w+) M=%s (?:(\S.*?) \S*:0:0 s=0)?" % number, locations)
    return rest, {int(address, 16): name for address, name in found}


def test_addresses_are_those_of_the_functions(places):
    """As addr2line reads them in the file; in the mapping that the file's program header describes."""
    library = places / "whole" / "lines.so"
    mapping, functions = in_library(library.with_suffix(".pybpf"), library)
    code = re.search(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", run("readelf", "-lW", library))
    offset, start, size = (int(number, 16) for number in code.groups())
    begin, end, at = (int(number, 16) for number in re.match(r"0x(\w+)/0x(\w+)/0x(\w+) ", mapping).groups())
    assert (begin, at) == (start & ~0xFFF, offset & ~0xFFF) and start + size <= end < start + size + 0x1000, mapping
    assert build_id(library) in mapping and "[FN]" in mapping, mapping
    assert set(functions.values()) >= {"nl_go", "outer", "twice"}, functions
    for address, name in functions.items():
        assert re.search(r"(?m)^0*%x [tT] %s$" % (address, name), run("nm", library)), (hex(address), name)
        # What is inlined at the function's begin comes before it.
        assert run("addr2line", "-f", "-i", "-e", library, hex(address)).split("\n")[-3] == name, (hex(address), name)


def test_another_symbolizes(places):
    """Without symbols a function has its address alone, and pprof names it by a file that it has: also after a copy."""
    library, symbols = places / "lines.so", places / "whole" / "lines.so"
    saved = library.with_suffix(".pybpf")
    mapping, functions = in_library(saved, library)
    assert "[FN]" not in mapping and "" in functions.values() and "nl_go" in functions.values(), (mapping, functions)
    run(harness.PYBPF, "report", saved, saved, "-o", places / "two.pybpf")
    # That of Go reads no build-ids, and looks where the file was mapped.
    library.unlink()
    shutil.copy(symbols, library)
    for one in (saved, places / "two.pybpf"):
        top = pprof(one, "-symbolize=local", "-top", "-nodefraction=0")
        assert all(re.search(r" %s$" % name, top, re.M) for name in ("nl_go", "outer", "twice")) and "lines.so]" not in top, top


def test_hidden_names_hide_the_file(places):
    saved = places / "lines.pybpf"
    run(harness.PYBPF, "report", saved, "--anonymize", "-o", places / "hidden.pybpf")
    mappings = pprof(places / "hidden.pybpf", "-raw").split("\nMappings\n", 1)[1]
    assert "lines.so" not in mappings and build_id(places / "lines.so") not in mappings, mappings
