# SPDX-License-Identifier: Apache-2.0
"""Where native functions are: build-ids and addresses, by which others find their symbols; lines, and what is inlined."""

import collections
import contextlib
import http.server
import json
import re
import shutil
import subprocess
import threading
import uuid
from pathlib import Path

import pytest

import harness
from firefox import firefox
from harness import pybpf
from native_lines import LIBRARY, SOURCE, build_id, check_chains, make, marks, record, run, stripped

pytestmark = pytest.mark.usefixtures("profiler")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The library with its symbols and its information for debuggers."""
    return make(tmp_path_factory.mktemp("whole") / LIBRARY)


def pprof(saved, *options):
    path = saved.with_suffix(".pb.gz")
    assert pybpf("report", saved, "-o", path).code == 0
    go = shutil.which("go") or pytest.skip("go is not installed; tools/install-deps --test installs it")
    return run(go, "tool", "pprof", *options, path)


def in_library(saved, library):
    """The mapping, and address -> [(function, file:line)] of the locations in it, innermost first, as pprof's reader has them."""
    locations, mappings = pprof(saved, "-raw").split("\nLocations\n", 1)[1].split("\nMappings\n", 1)
    number, rest = re.search(r"(?m)^(\d+): (.* ?%s .*)$" % re.escape(str(library)), mappings).groups()
    found = {}
    for address, mapping, lines in re.findall(r"(?m)^ *\d+: 0x(\w+) (?:M=(\d+) )?(.*(?:\n +\S+ \S+:\d+:\d+ s=\d+\(.*\))*)", locations):
        if mapping == number:
            found[int(address, 16)] = re.findall(r"(?m)^ *(\S+) (\S+:\d+):\d+ s=", lines)
    return rest, found


def test_addresses_are_those_of_the_functions(whole, tmp_path):
    """As addr2line reads them in the file; in the mapping that the file's program header describes."""
    record(whole, tmp_path / "p.pybpf", "--native")
    mapping, locations = in_library(tmp_path / "p.pybpf", whole)
    code = re.search(r"LOAD +0x(\w+) 0x(\w+) 0x\w+ 0x(\w+) 0x\w+ R E", run("readelf", "-lW", whole))
    offset, start, size = (int(number, 16) for number in code.groups())
    begin, end, at = (int(number, 16) for number in re.match(r"0x(\w+)/0x(\w+)/0x(\w+) ", mapping).groups())
    assert (begin, at) == (start & ~0xFFF, offset & ~0xFFF) and start + size <= end < start + size + 0x1000, mapping
    assert build_id(whole) in mapping and "[FN]" in mapping, mapping
    # An entry of the procedure linkage table is in no function.
    entries = [(int(start, 16), int(size, 16)) for start, size in re.findall(r" \.plt\S* +PROGBITS +(\w+) \w+ (\w+) ", run("readelf", "-SW", whole))]
    nameless = {address for address, lines in locations.items() if not lines}
    assert entries and all(any(start <= address < start + size for start, size in entries) for address in nameless), (nameless, entries)
    named = {address: lines for address, lines in locations.items() if lines}
    assert {lines[0][0] for lines in named.values()} >= {"nl_go", "outer", "twice"}, locations
    for address, [(name, _)] in named.items():
        assert re.search(r"(?m)^0*%x [tT] %s$" % (address, name), run("nm", whole)), (hex(address), name)
        # What is inlined at the function's start comes before it.
        assert run("addr2line", "-f", "-i", "-e", whole, hex(address)).split("\n")[-3] == name, (hex(address), name)


def test_another_symbolizes(whole, tmp_path):
    """Without symbols a function has its address alone, and pprof names it by a file that it has: also after a copy."""
    library, saved, both = stripped(whole, tmp_path), tmp_path / "p.pybpf", tmp_path / "both.pybpf"
    record(library, saved, "--native")
    mapping, locations = in_library(saved, library)
    assert "[FN]" not in mapping and [] in locations.values() and any(lines and lines[0][0] == "nl_go" for lines in locations.values()), locations
    run(harness.PYBPF, "report", saved, saved, "-o", both)
    # That of Go reads no build-ids, and looks where the file was mapped.
    library.unlink()
    shutil.copy(whole, library)
    for one in (saved, both):
        top = pprof(one, "-symbolize=local", "-top", "-nodefraction=0")
        assert all(re.search(r" %s$" % name, top, re.M) for name in ("nl_go", "outer", "twice")) and LIBRARY + "]" not in top, top
    run(harness.PYBPF, "report", saved, "--anonymize", "-o", tmp_path / "hidden.pybpf")
    mappings = pprof(tmp_path / "hidden.pybpf", "-raw").split("\nMappings\n", 1)[1]
    assert LIBRARY not in mappings and build_id(whole) not in mappings, mappings


class SymbolServer(http.server.BaseHTTPRequestHandler):
    """Knows the functions of one library, as Mozilla's and samply's servers do."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        results = []
        for job in asked["jobs"]:
            known = [tuple(module) == self.server.module for module in job["memoryMap"]]
            frames = [[self.name(*place, number, known, job["memoryMap"]) for number, place in enumerate(stack)] for stack in job["stacks"]]
            results.append({"found_modules": {"/".join(module): there for module, there in zip(job["memoryMap"], known)}, "stacks": frames})
        body = json.dumps({"results": results}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def name(self, module, address, number, known, modules):
        found = {"frame": number, "module": modules[module][0], "module_offset": hex(address)}
        begins = [begin for begin in self.server.functions if begin <= address]
        if known[module] and begins:
            found.update({"function": self.server.functions[max(begins)], "function_offset": hex(address - max(begins))})
        return found

    def log_message(self, *args):
        pass


def breakpad_id(identity):
    """As Mozilla's dump_syms makes it: https://crates.io/crates/debugid."""
    return uuid.UUID(bytes_le=bytes.fromhex(identity)[:16]).hex.upper() + "0"


def test_firefox_profiler_symbolizes(whole, tmp_path):
    """Its own code asks a server by the library's identities, and has the functions by their addresses; but not those that have names."""
    library, saved, path = stripped(whole, tmp_path), tmp_path / "p.pybpf", tmp_path / "p.gecko.json"
    record(library, saved, "--native")
    run(harness.PYBPF, "report", saved, "-o", path)
    file = json.loads(path.read_text(encoding="utf-8"))
    (lib,) = [lib for lib in file["libs"] if lib["name"] == LIBRARY]
    assert (lib["codeId"], lib["breakpadId"]) == (build_id(whole), breakpad_id(build_id(whole))), lib
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SymbolServer)
    server.module = (LIBRARY, lib["breakpadId"])
    server.functions = {int(begin, 16): name for begin, name in re.findall(r"(?m)^([0-9a-f]+) [tT] (\S+)$", run("nm", whole))}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with contextlib.closing(server.socket), firefox(path, tmp_path / "session", "--symbol-server", "http://127.0.0.1:%d" % server.server_port) as session:
        (thread,) = session.ask("thread", "list", "--limit", 0)["threads"]
        functions = session.ask("thread", "functions", "--thread", thread["threadHandle"], "--limit", 0)["functions"]
        server.shutdown()
    names = {function["nameWithLibrary"] for function in functions if function["nameWithLibrary"].startswith(LIBRARY)}
    assert {"%s!%s" % (LIBRARY, name) for name in ("nl_go", "outer", "twice")} <= names and not any("+0x" in name for name in names), names
    run(harness.PYBPF, "report", saved, "--anonymize", "-o", path)
    hidden = json.loads(path.read_text(encoding="utf-8"))
    assert hidden["meta"]["symbolicated"] and not any(lib["breakpadId"] or lib["codeId"] for lib in hidden["libs"]), hidden["libs"]
    assert set(hidden["shared"]["frameTable"]["address"]) == {-1}


def test_lines_and_inlined_functions(whole, tmp_path):
    """As the source has them, and as addr2line tells them of each address in the profile."""
    saved = tmp_path / "p.pybpf"
    said = record(whole, saved, "--native-lines")
    assert re.search(r"native lines: \d+ of \d+ places have lines", said), said
    check_chains(saved)
    mapping, locations = in_library(saved, whole)
    assert "[FN][FL][LN][IN]" in mapping, mapping
    assert max(map(len, locations.values())) == 3 and len(locations) >= 6, locations
    for address, lines in locations.items():
        told = run("addr2line", "-f", "-i", "-e", whole, hex(address)).rstrip().split("\n")
        want = [(name, re.sub(r" \(.*", "", place).rpartition("/")[2]) for name, place in zip(told[::2], told[1::2])]
        assert lines == want, hex(address)
    # Which library the code is in is known beside its source.
    text = pybpf("report", saved, "-f", "text").out
    assert re.search(r"\d%%  %s, called from <module>" % LIBRARY, text), text


def test_lines_in_top(whole):
    goes = "import ctypes, sys\ngo = ctypes.CDLL(sys.argv[1]).nl_go\nwhile True: go(50)"
    with subprocess.Popen([*harness.default_python().argv, "-c", goes, whole]) as target:
        try:
            top = pybpf("top", "--native-lines", "-p", target.pid, "-d", 1.5, "-i", 1.5, "-F", 499, "--output", "jsonl")
        finally:
            target.kill()
    assert top.code == 0, top.err
    rows = json.loads(top.out.splitlines()[-1])["lines"]
    line = marks()
    found = {(row["name"], row["line"]) for row in rows if row["file"] == SOURCE.name}
    assert found >= {("nl_go", line["go"]), ("outer", line["outer"]), ("call_twice", line["inlined_caller"])}, rows


def test_lines_of_a_file_for_debuggers(whole, tmp_path):
    run("objcopy", "--only-keep-debug", whole, tmp_path / "lines.debug")
    library = stripped(whole, tmp_path, "--add-gnu-debuglink=%s" % (tmp_path / "lines.debug"))
    record(library, tmp_path / "p.pybpf", "--native-lines")
    check_chains(tmp_path / "p.pybpf")


def test_without_information_frames_are_as_without_the_option(whole, tmp_path):
    """A function without a name is where a row of its call frame information begins, which readelf reads, too."""
    library, saved = stripped(whole, tmp_path), tmp_path / "p.pybpf"
    said = record(library, saved, "--native-lines")
    assert re.search(r"native lines: .*; no information for debuggers: .*%s" % LIBRARY, said), said
    rows = {int(row, 16) for row in re.findall(r"(?m)^([0-9a-f]{16}) | pc=([0-9a-f]+)", run("readelf", "-wF", library)) for row in row if row}
    names = collections.Counter()
    for stack, count in pybpf("report", saved, "-f", "folded").stacks():
        names.update({frame.name: count for frame in stack if frame.file == LIBRARY})
    assert len(names) >= 3 and names.pop("nl_go", 0) > 0, names
    assert all(int(re.fullmatch(r"\[%s\+0x(\w+)\]" % LIBRARY, name).group(1), 16) in rows for name in names), (names, rows)


def test_lines_of_a_file_that_dwz_made_small(whole, tmp_path):
    """Alone, what it has in common lies in units of its own; with -m, in another file, whose absence is told."""
    dwz = shutil.which("dwz") or pytest.skip("dwz is not installed; tools/install-deps --test installs it")
    made = make(tmp_path / LIBRARY)
    other = shutil.copy(made, tmp_path / "other.so")
    run(dwz, made)
    record(made, tmp_path / "p.pybpf", "--native-lines")
    check_chains(tmp_path / "p.pybpf")
    folder = Path("/usr/lib/debug/.dwz")
    had = folder.exists()
    shared = folder / ("pybpf-test-%s.debug" % tmp_path.name)
    # It is made of two files that have something in common at least.
    made = make(tmp_path / LIBRARY, "-O1")
    run(dwz, "-m", tmp_path / "shared", "-M", shared, made, other)
    assert ".gnu_debugaltlink" in run("readelf", "-SW", made)
    said = record(made, tmp_path / "p.pybpf", "--native-lines")
    assert re.search(r"with it in another file, which is missing \(dwz\) or not read \(-gsplit-dwarf\): %s" % LIBRARY, said), said
    try:
        folder.mkdir(exist_ok=True, parents=True)
        shutil.copy(tmp_path / "shared", shared)
        said = record(made, tmp_path / "p.pybpf", "--native-lines")
    finally:
        shared.unlink(missing_ok=True)
        if not had:
            folder.rmdir()
    assert "in another file" not in said, said
    check_chains(tmp_path / "p.pybpf")


def test_split_information_is_told_and_not_read(tmp_path):
    """With -gsplit-dwarf the library names files that have it: nothing else is said of its lines than that."""
    library = make(tmp_path / LIBRARY, "-gsplit-dwarf")
    said = record(library, tmp_path / "p.pybpf", "--native-lines")
    assert re.search(r"or not read \(-gsplit-dwarf\): %s" % LIBRARY, said), said
    frames = {frame for stack, _ in pybpf("report", tmp_path / "p.pybpf", "-f", "folded").stacks() for frame in stack if frame.file == LIBRARY}
    assert {"nl_go", "outer", "twice"} <= {frame.name for frame in frames} and all(frame.line is None for frame in frames), frames
