# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --native of libraries whose symbols are more than a helper may read: Python's stacks are shown, and why C's are not."""

import json
import re
import subprocess
import sys

import pytest

import dump_schema
import harness
from harness import pybpf

MIB = 1 << 20
LIBRARY = r"""
#include <unistd.h>
__asm__(".text\n.type %(name)s,@function\n%(name)s: nop\n.size %(name)s,1\n");
static __attribute__((noinline, noclone)) void hidden(void) { for (;;) sleep(1000); }
void waits(void) { hidden(); __asm__(""); }
"""
# A thread in each library, one after the other.
WAITS = """
import ctypes, sys, threading, time
def wait_in(library):
    library.waits()
for path in sys.argv[1:]:
    threading.Thread(target=wait_in, args=(ctypes.CDLL(path),), daemon=True).start()
print("[]", flush=True)
time.sleep(1000)
"""


def library(folder, index, size):
    """A library whose symbols take this size. A compiler takes seconds for a name of many megabytes."""
    path, names = folder / ("lib%d.so" % index), folder / "names"
    argv = ["cc", "-xc", "-O1", "-shared", "-fPIC", "-fasynchronous-unwind-tables", "-o", path, "-"]
    subprocess.run(argv, input=(LIBRARY % {"name": "large"}).encode(), check=True)
    names.write_text("large %s\n" % ("x" * size))
    subprocess.run(["objcopy", "--redefine-syms=%s" % names, path], check=True)
    return path


def waiting(libraries):
    return harness.started([sys.executable, "-c", WAITS, *map(str, libraries)], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


def wait_until_asleep(process, count):
    harness.read_ready_line(process)
    harness.wait_for(lambda: pybpf("dump", "-p", process.pid, "--no-source").out.count("in wait_in") == count)


def test_one_library_that_is_too_large(folder):
    large, small = (library(folder, i, size) for i, size in enumerate((140 * MIB, 10)))
    with waiting((large, small)) as process:
        wait_until_asleep(process, 2)
        run = pybpf("dump", "-p", process.pid, "--native", "--json")
    why = "some C functions of %s have no names: its symbols take more memory than a helper process may have" % large
    assert not run.code and re.findall(r"pybpf: (.*)\n", run.err) == [why], run
    frames = [frame for thread in json.loads(run.out)["threads"] for frame in thread["native_frames"]]
    assert {frame["function"] for frame in frames if frame["file"] == str(large)} == {"waits", None}
    assert {frame["function"] for frame in frames if frame["file"] == str(small)} == {"waits", "hidden"}


@pytest.mark.parametrize("options", [[], ["--locals"]], ids=["", "locals"])
def test_a_helper_without_memory(folder, options):
    """Libraries that fill a helper's memory to the last: no function of Python is missing for that."""
    sizes = [size for power in range(23, 11, -1) for size in [1 << power] * 2] + [1 << 11] * 24
    libraries = [library(folder, i, size) for i, size in enumerate(sizes)]
    with waiting(libraries) as process:
        wait_until_asleep(process, len(libraries))
        argv = ["/usr/bin/setpriv", "--bounding-set", "-sys_resource", "--inh-caps", "-sys_resource", "sh", "-c",
                'ulimit -v 20480; exec "$@"', "sh", harness.PYBPF, "dump", "-p", process.pid, "--native", "--json", *options]
        run = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False, timeout=harness.PATIENCE)
    dump_schema.check(run.stdout)
    snapshot = json.loads(run.stdout)
    assert run.returncode == 1 and snapshot["complete"] is False, run.stderr
    left_out = re.search(r"pybpf: process %d: C functions are left out from thread \d+ on: "
                         r"the symbols of its libraries leave a helper process no memory\n" % process.pid, run.stderr)
    assert left_out and "not all of it could be read: Cannot allocate memory\n" in run.stderr, run.stderr
    assert len(snapshot["threads"]) == len(libraries) + 1
    for thread in snapshot["threads"]:
        assert thread["unread"] is None and thread["frames"][-1]["function"] in ("wait_in", "<module>"), thread
    assert snapshot["threads"][0]["native_frames"] and snapshot["threads"][-1]["native_frames"] is None
