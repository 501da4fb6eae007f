# SPDX-License-Identifier: Apache-2.0
"""-e uprobe:PATH:SYMBOL counts the calls of a function of a library, by the Python function that makes them."""

import re
import shutil
import subprocess
import sys

import pytest

import harness
import pythons
from harness import pybpf
from test_events import by_function, check_account, count, every_python

pytestmark = pytest.mark.usefixtures("profiler")

PPIDS = "getppid"


def libc_of(python):
    """The C library that this interpreter maps."""
    target = subprocess.Popen(
        [*python.argv, "-c", "import sys; print(1); sys.stdout.flush(); sys.stdin.read()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    target.stdout.readline()
    with open("/proc/%d/maps" % target.pid, encoding="utf-8") as file:
        maps = file.read()
    target.communicate()
    found = re.search(r"(/\S*(?:libc\.so\.6|libc-\S*\.so|ld-musl-\S*))$", maps, re.M)
    if not found:
        pytest.skip("the C library is not a file of its own")
    return found.group(1)


@pytest.fixture(scope="module")
def libc():
    return libc_of(pythons.one((3, 12)))


@every_python
def test_each_call_is_counted_in_its_caller(python):
    event = "uprobe:%s:%s" % (libc_of(python), PPIDS)
    says, text, stats, told = count(python, "-e", event)
    assert by_function(text)["ask"] == says["calls"] == stats["samples"]["python"]
    assert stats["source"] == event and "s of %s: " % event in told
    check_account(stats, text)


def test_a_sample_of_a_period_stands_for_all_of_it(libc):
    says, text, stats, _ = count(pythons.one((3, 12)), "-e", "uprobe:%s:%s" % (libc, PPIDS), "--period", "10")
    found = by_function(text)["ask"]
    assert found % 10 == 0 and abs(found - says["calls"]) <= 0.02 * says["calls"]
    check_account(stats, text)


def test_a_process_sees_its_own_file(tmp_path, libc):
    """In a mount namespace where the path is another file than here."""
    path = tmp_path / "own.so"
    shutil.copy(libc, path)
    code = (
        "import os, time\n"
        "print(1, flush=True)\n"
        "def ask():\n    os.getppid()\n"
        "while True:\n    ask(); time.sleep(0.002)\n"
    )
    hide = "mount --bind %s /mnt; exec \"$@\"" % tmp_path
    target = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", hide, "sh", *pythons.one((3, 12)).argv, "-c", code],
        stdout=subprocess.PIPE,
    )
    try:
        target.stdout.readline()
        there = pybpf("-e", "uprobe:/mnt/own.so:no_such", "-p", target.pid, "-d", "1")
        assert "has no function no_such" in harness.one_sentence(there.err)
        here = pybpf("-e", "uprobe:/mnt/own.so:no_such", "--all", "-d", "1")
        assert "cannot open /mnt/own.so" in harness.one_sentence(here.err)
        run = pybpf("-e", "uprobe:%s:%s" % (libc, PPIDS), "-p", target.pid, "-d", "1")
        assert run.code == 0 and by_function(run.out)["ask"] > 10, run.err
    finally:
        target.kill()
        target.wait()


@pytest.mark.parametrize(
    "name, told",
    [
        ("LIBC:getppidd", "did you mean getppid"),
        ("LIBC:environ", "has no function environ"),
        ("LIBC:memset", "IFUNC"),
        ("/no/such/file:x", "cannot open /no/such/file"),
        ("/etc/passwd:x", "neither a program nor a library"),
        ("/dev/null:x", "neither a program nor a library"),
        ("x", "uprobe:PATH:SYMBOL"),
        (":x", "uprobe:PATH:SYMBOL"),
        ("/bin/true:", "uprobe:PATH:SYMBOL"),
    ],
)
def test_what_is_not_a_function_is_refused(name, told, libc):
    run = pybpf("-e", "uprobe:" + name.replace("LIBC", libc), "--", "/bin/true")
    assert run.code != 0 and not run.out
    assert told in harness.one_sentence(run.err)


def test_a_file_for_another_machine_is_refused(tmp_path):
    with open(sys.executable, "rb") as file:
        head = bytearray(file.read(4096))
    head[18] = 8  # e_machine: EM_MIPS
    path = tmp_path / "other"
    path.write_bytes(head)
    run = pybpf("-e", "uprobe:%s:main" % path, "--", "/bin/true")
    assert run.code != 0 and "another machine" in harness.one_sentence(run.err)
