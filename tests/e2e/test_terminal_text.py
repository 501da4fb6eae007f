# SPDX-License-Identifier: Apache-2.0
"""What another user names his programs does not write pybpf's lines, and does not turn the terminal's text around."""

import contextlib
import os
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pytest

import formats
import harness
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")
STRANGER = 54321  # a user that nobody made
LIMIT_S = 60
FORGED = "pybpf: all is"
# 15 bytes each, as a comm has; the last byte of the third is cut off a character.
COMMS = [b"a\npybpf: all is", b"\x1b[2J\r\x9bK\xc2\x9b1", b"x\xe2\x80\xaey\xe2\x81\xa6\xd8\x9cz\xe2\x80", b"\xef\xbb\xbf\xe2\x80\x8b\xf3\xa0\x81\x81k"]
SPINS = """
import ctypes, sys
ctypes.CDLL(None).prctl(15, bytes.fromhex(sys.argv[1]), 0, 0, 0)
print("ready", flush=True)
while True:
    pass
"""


def is_seen(character):
    """Whether it takes room of its own and leaves its neighbours where they are."""
    return unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and character != "\ufffd"


def hold(text, prefix=""):
    """Lines of seen characters, each of which pybpf began itself."""
    assert text.endswith("\n"), repr(text[-200:])
    for line in text[:-1].split("\n"):
        assert line.startswith(prefix), repr(line)
        assert not line.startswith(FORGED), repr(line)
        unseen = [character for character in line if not is_seen(character)]
        assert not unseen, "%r in %r" % (unseen, line)


def become_stranger():
    os.setgroups([])
    os.setgid(STRANGER)
    os.setuid(STRANGER)


@contextlib.contextmanager
def stranger(argv):
    """A program of another user's that has said that it is ready."""
    with harness.started(
        argv, preexec_fn=become_stranger, cwd="/", stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, bufsize=0
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        yield process.pid


@pytest.fixture(scope="module")
def renamed(tmp_path_factory):
    """A Python below a path that forges, too."""
    folder = Path("/var/tmp/pybpf-text-%d" % os.getpid())
    inner = folder / (FORGED + " well\n" + FORGED + " \u202edne\u2069")
    inner.mkdir(parents=True)
    os.chmod(folder, 0o755)
    os.chmod(inner, 0o755)
    try:
        yield shutil.copy(os.path.realpath("/usr/bin/python3"), inner / "python3\n")
    finally:
        shutil.rmtree(folder)


@pytest.fixture(params=COMMS, ids=["newline", "controls", "directions", "no-width"])
def forger(request, renamed):
    with stranger([str(renamed), "-S", "-c", SPINS, request.param.hex()]) as pid:
        yield pid


def test_run(forger):
    run = pybpf("-p", forger, "-d", 0.3, "-v", "--threads", timeout=LIMIT_S)
    assert run.code == 0, run.err
    hold(run.err, "pybpf: ")
    hold(run.out)
    assert "process %d (" % forger in run.err


def test_all(forger):
    """--user: other processes of the machine stay out of it."""
    run = pybpf("--all", "--user", STRANGER, "-d", 1, "-v", timeout=LIMIT_S)
    assert run.code == 0, run.err
    hold(run.err, "pybpf: ")
    hold(run.out)


# Threads that hold the GIL, wait for it and sleep, in functions whose names are not plain.
NAMES = """
import sys, threading, time
evil = bytes.fromhex(sys.argv[1]).decode("utf-8", "surrogatepass")
def sleeps():
    time.sleep(600)
def spins():
    while True: sum(range(20))
def forged(function):
    function.__code__ = function.__code__.replace(co_name=evil, co_filename=evil)
    function.__qualname__ = function.__name__ = evil
    return threading.Thread(target=function, name=evil[:15], daemon=True)
for function in sleeps, spins:
    forged(function).start()
forged(spins).start()
print("ready", flush=True)
while True:
    pass
"""
PLAIN_TOO = ["\npybpf: all is well".encode(), b"\x1b[2J\r\xc2\x9b1m", "x\u202ey\u2066\u061cz".encode()]


@pytest.mark.parametrize("mode", ["gil", "wall", "offcpu"])
@pytest.mark.parametrize("name", PLAIN_TOO, ids=["newline", "controls", "directions"])
def test_names_of_functions(name, mode):
    with stranger(["/usr/bin/python3", "-S", "-c", NAMES, name.hex()]) as pid:
        run = pybpf("-p", pid, "-d", 0.5, "--mode", mode, "--threads", timeout=LIMIT_S)
    assert run.code == 0, run.err
    hold(run.err, "pybpf: ")
    hold(run.out)
    assert ("blocked" if mode == "gil" else "slept throughout") in run.err


@pytest.mark.parametrize("form", ["text", "folded", "perf-script"])
def test_report(forger, form, tmp_path):
    saved = tmp_path / "saved.pybpf"
    run = pybpf("-p", forger, "-d", 0.5, "-F", 999, "-o", saved, timeout=LIMIT_S)
    assert run.code == 0, run.err
    run = pybpf("report", "-f", form, "--by", "process", "--threads", saved, timeout=LIMIT_S)
    assert run.code == 0, run.err
    hold(run.out.replace("\t", " "))
    hold(run.err, "pybpf: ")


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["table", "json"])
def test_ps(forger, more):
    run = pybpf("ps", "-p", forger, *more, timeout=LIMIT_S)
    assert run.code == 0 and str(forger) in run.out, run.err
    hold(run.out)


@pytest.mark.parametrize("comm", COMMS)
def test_no_python(comm):
    """The sentence that says why nothing is sampled."""
    shell = "printf '%s' \"$1\" >/proc/self/comm; echo ready; while :; do sleep 0.1; done"
    with stranger([b"/bin/sh", b"-c", shell.encode(), b"sh", comm]) as pid:
        # printf wrote into the shell's own, being built in.
        assert Path("/proc/%d/comm" % pid).read_bytes().startswith(comm[:4])
        run = pybpf("-p", pid, "-d", 0.2, "-v", timeout=LIMIT_S)
        assert run.code == 1
        hold(run.err, "pybpf: ")


@pytest.mark.parametrize(
    "args",
    [
        ("report", "/nowhere\n%s\u202e" % FORGED),
        ("report", "-o", "/nowhere\n%s\u202e.html" % FORGED, "/dev/null"),
        ("diff", "/nowhere\n%s\u202e" % FORGED, "/dev/null"),
        ("--container", "\n%s\u202e" % FORGED, "-d", "0.1"),
        ("--cgroup", "\n%s\u202e" % FORGED, "-d", "0.1"),
        ("-p", "1\n%s\u202e" % FORGED),
        ("-f", "\n%s\u202e" % FORGED, "-p", "1"),
        ("--\n%s\u202e" % FORGED,),
        ("-d", "0.1", "--", "/nowhere\n%s\u202e" % FORGED),
    ],
    ids=lambda args: " ".join(args[:-1])[:12].replace("\n", ""),
)
def test_own_arguments(args):
    """They are often a script's, which has them from elsewhere."""
    run = pybpf(*args, timeout=LIMIT_S)
    assert run.code != 0
    hold(run.err, "pybpf: ")


@pytest.mark.parametrize("form", ["text", "folded", "perf-script"])
def test_saved_by_another(form, tmp_path):
    """A profile whose every text was made to harm, its unit and its account included."""
    subprocess.run([str(formats.MADE), str(tmp_path)], check=True, timeout=LIMIT_S)
    run = pybpf("report", "-f", form, "--by", "container", "--threads", tmp_path / "forging.pybpf", timeout=LIMIT_S)
    assert run.code == 0 and "is well" in run.err, run.err
    hold(run.out.replace("\t", " "))
    hold(run.err, "pybpf: ")
    run = pybpf("diff", tmp_path / "forging.pybpf", tmp_path / "hostile.pybpf", timeout=LIMIT_S)
    hold(run.err, "pybpf: ")
    run = pybpf("diff", tmp_path / "forging.pybpf", tmp_path / "forging.pybpf", timeout=LIMIT_S)
    hold(run.out + "\n")


def test_debug_log(spinning):
    """libbpf's texts have lines, and keep them."""
    run = pybpf("-p", spinning.pid, "-d", 0.2, "-vv", timeout=LIMIT_S)
    assert run.code == 0, run.err
    hold(run.err.replace("\t", " "), "pybpf: ")
    lines = [line for line in run.err.split("\n") if line.startswith("pybpf: debug: libbpf: ")]
    assert len(lines) > 20 and "\\x0a" not in run.err
