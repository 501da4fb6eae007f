# SPDX-License-Identifier: Apache-2.0
"""A process that maps no executable file is between exec and its first mapping, or ends: it is never called no Python."""

import contextlib
import fcntl
import json
import mmap
import os
import platform
import re
import select
import signal
import tempfile
import time

import pytest

import harness
from harness import one_sentence, pybpf

pytestmark = [
    pytest.mark.usefixtures("profiler"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="targets/unmapped.py has machine code for x86-64 only"),
]

WORDS = "maps no executable file: it is just starting a program, or ending; try again"
BETWEEN = "maps no Python any more: it executed another program, or is ending"  # met between two of its calls
PF_KTHREAD = 0x00200000  # include/linux/sched.h


def maps_code(pid):
    with open("/proc/%d/maps" % pid) as maps:
        return any("x" in line.split()[1] and line.split()[4] != "0" for line in maps)


@contextlib.contextmanager
def unmapped(*args):
    with harness.target(harness.default_python(), "unmapped.py", *args) as process:
        assert harness.wait_for(lambda: not maps_code(process.pid))
        yield process


@pytest.mark.parametrize("command", [["-d", "1"], ["dump"], ["top", "-d", "1"]], ids=["record", "dump", "top"])
def test_it_is_refused_by_what_is_known(command):
    with unmapped() as process:
        run = pybpf(*command, "-p", process.pid)
    assert run.code == 1 and not run.out and WORDS in one_sentence(run.err)


def test_ps_warns_of_one_that_is_named():
    with unmapped() as process:
        run = pybpf("ps", "-p", process.pid)
    assert not run.code and WORDS in one_sentence(run.err)


def test_its_children_are_sampled():
    with unmapped("parent") as process:
        run = pybpf("-p", process.pid, "--children", "-d", "1")
    assert run.code == 0 and "spin_in_child" in run.out, run
    assert not re.search("maps no Python|is no Python|no Python was found|helper", run.err), run.err


def test_it_has_no_children():
    """Its helper has answered: nobody says that none has."""
    with unmapped() as process:
        run = pybpf("-p", process.pid, "--children", "-d", "1")
    assert run.code == 0 and not run.out, run
    assert "helper" not in run.err and "maps no executable file: whether it runs Python is not known" in run.err


def test_it_is_left_out_among_others():
    with unmapped() as process:
        rows = json.loads(pybpf("ps", "--json").out)
        run = pybpf("dump", "--all", "--json", "-v")
    assert process.pid not in [row["pid"] for row in rows]
    assert process.pid not in [json.loads(line)["pid"] for line in run.out.splitlines()]
    assert not [line for line in run.err.splitlines() if str(process.pid) in line and "no Python" in line]


CHILDREN = 30


def test_those_that_unmap_after_they_were_listed():
    """They are not named: none is waited for, and each has its state. The dump waits meanwhile for its reader."""
    with harness.target(harness.default_python(), "unmapped.py", "parent", str(CHILDREN)) as target:
        argv = harness.tied([harness.PYBPF, "dump", "-p", str(target.pid), "--children", "--json", "-v"], "TERM")
        reader, writer = map(os.fdopen, os.pipe(), ("rb", "wb"))
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, mmap.PAGESIZE)
        with reader, tempfile.TemporaryFile() as err, harness.started(argv, stdout=writer, stderr=err) as dump:
            writer.close()
            assert select.select([reader], [], [], harness.PATIENCE)[0]
            for pid in target.says["children"]:
                os.kill(pid, signal.SIGUSR1)
            assert harness.wait_for(lambda: not any(map(maps_code, target.says["children"])))
            begin = time.monotonic()
            out = reader.read()
            took_s = time.monotonic() - begin
            assert dump.wait(harness.PATIENCE) == 0
            err.seek(0)
            said = err.read().decode()
    snapshots = [json.loads(line)["pid"] for line in out.splitlines()]
    # The one that was being read as it unmapped may have lost anything.
    told = [pid for pid in target.says["children"] if re.search(r"process %d (\(.*\) %s|%s)" % (pid, WORDS, BETWEEN), said)]
    assert target.pid in snapshots and not set(told) & set(snapshots)
    assert len(told) >= CHILDREN / 2 and len(told) + len(snapshots) >= CHILDREN, said
    # A second for each was waited.
    assert took_s < len(told) / 2, (took_s, len(told))


def kernel_thread():
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/stat" % pid) as stat:
            if int(stat.read().rsplit(") ", 1)[1].split()[6]) & PF_KTHREAD:
                return int(pid)
    pytest.skip("no kernel thread is in this PID namespace")


def test_a_kernel_thread_is_called_so():
    run = pybpf("dump", "-p", kernel_thread())
    assert run.code == 1 and "is a thread of the kernel, and runs no Python" in one_sentence(run.err)
