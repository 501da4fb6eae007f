# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --core: the snapshot of a process from its core file, compared with what it said of itself."""

import contextlib
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import harness
import pythons
from harness import pybpf
from test_dump import by_name, stack

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)
HERE = [python for python in pythons.of_each_version(pythons.interpreters()) if python.runs_here()]
every_version = pytest.mark.parametrize("python", HERE, ids=lambda item: item.name)

# The descriptors are gone, so what is behind them is not known.
CAUSES = {
    "t-lock": "[lock]",
    "t-pipe": "[other: read]",
    "t-tcp": "[other: receive]",
    "t-accept": "[other: accept]",
    "t-unix": "[other: accept]",
    "t-udp": "[other: receive]",
    "t-epoll": "[poll: epoll]",
    "t-select": "[poll: select]",
    "t-flock": "[lock]",
    "MainThread": "[sleep]",
}


def gcore(pid, folder):
    done = subprocess.run(["gcore", "-o", os.path.join(folder, "core"), str(pid)], capture_output=True, check=False)
    path = os.path.join(folder, "core.%d" % pid)
    assert os.path.exists(path), done
    return path, b"Memory read failed for corefile section" in done.stderr.replace(VSYSCALL, b"")


# A page that no process can be asked for; every gcore says so.
VSYSCALL = b"Memory read failed for corefile section, 4096 bytes at 0xffffffffff600000"


def dump(path, *args, code=0):
    run = pybpf("dump", "--core", path, "--json", *args)
    assert run.code == code and not run.err, run
    (line,) = run.out.splitlines()
    return json.loads(line)


def kernel_pattern():
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        return file.read().strip()


def needs_plain_pattern():
    if kernel_pattern().startswith(("|", "/", "@")):
        pytest.skip("kernel.core_pattern (%s) keeps cores elsewhere" % kernel_pattern())


def die(process, name, folder):
    """Has the kernel write the core of a process that stands, and whose working directory is the folder."""
    harness.wait_for(lambda: harness.state(process.pid) == "S")
    subprocess.run(["prlimit", "--pid", str(process.pid), "--core=unlimited"], check=True)
    os.kill(process.pid, name)
    assert process.wait(harness.PATIENCE) == -name
    (path,) = glob.glob(os.path.join(folder, "core*"))
    return path


@contextlib.contextmanager
def started(python, folder, name="standing.py"):
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "bufsize": 0, "cwd": folder}
    with harness.started(python.command(name), **options) as process:
        yield process, harness.read_ready_line(process)


@pytest.fixture
def tmp_path():
    """Not pytest's, which stays: cores are large."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def dead():
    """A core that the kernel wrote, and what the process had said of itself."""
    needs_plain_pattern()
    with tempfile.TemporaryDirectory() as folder, started(harness.default_python(), folder) as (process, says):
        yield die(process, signal.SIGSEGV, folder), says, process.pid


def check(snapshot, says):
    threads = by_name(snapshot)
    for name, chain in says["stacks"].items():
        assert stack(threads[name]) == chain, name
    causes = {name: thread["cause"] for name, thread in threads.items()}
    assert causes == dict(CAUSES, **{"t-child": "[child: %d]" % says["child"]})
    assert all(thread["python"] and not thread["moving"] and not thread["has_gil"] for thread in snapshot["threads"])
    assert snapshot["age_s"] is None and snapshot["cpu_s"] is None and snapshot["resident_bytes"] is None


@every_python
def test_gcore(python, tmp_path):
    with harness.target(python, "standing.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        path, has_holes = gcore(target.pid, str(tmp_path))
        pid, says = target.pid, target.says
    snapshot = dump(path)
    missing = [thread for thread in snapshot["threads"] if thread["missing"]]
    assert bool(missing) == has_holes
    if has_holes:
        # glibc 2.42 makes guard pages that gcore cannot read, and it leaves out the stacks behind them.
        assert not any(thread["frames"] for thread in missing)
        assert {thread["tid"] for thread in missing} == {thread["tid"] for thread in snapshot["threads"]} - {pid}
        assert [frame["function"] for frame in by_name(snapshot)["MainThread"]["frames"]][-1] == "stand_sleep"
        assert pybpf("dump", "--core", path).out.count("does not have the thread's memory") == len(missing)
    else:
        check(snapshot, says)
    assert snapshot["pid"] == pid
    assert snapshot["core"] == {
        "file": path, "signal": None, "signal_name": None, "signal_tid": None, "address": None, "missing_bytes": 0}


@every_version
def test_of_the_kernel(python, tmp_path):
    needs_plain_pattern()
    with started(python, str(tmp_path)) as (process, says):
        path = die(process, signal.SIGABRT, str(tmp_path))
    snapshot = dump(path)
    check(snapshot, says)
    core = snapshot["core"]
    assert (core["signal_name"], core["signal_tid"], core["address"]) == ("SIGABRT", process.pid, None)


ROOTED = [python for python in pythons.interpreters() if python.root]


@pytest.mark.skipif(not ROOTED, reason="no Python in a root of its own")
def test_of_another_root(tmp_path):
    """As that of a container: its paths are those inside."""
    needs_plain_pattern()
    python = ROOTED[-1]
    with harness.target(python, "standing.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        folder = os.readlink("/proc/%d/cwd" % target.pid)
        before = set(glob.glob(os.path.join(folder, "core*")))
        subprocess.run(["prlimit", "--pid", str(target.pid), "--core=unlimited"], check=True)
        os.kill(target.pid, signal.SIGABRT)
        harness.wait_for(lambda: harness.state(target.pid) == "Z")
        says = target.says
    (made,) = set(glob.glob(os.path.join(folder, "core*"))) - before
    path = shutil.move(made, str(tmp_path))
    check(dump(path, "--sysroot", python.root), says)


CRASHES = """
import ctypes, sys
def touches(address):
    ctypes.string_at(address)
def main(secret):
    text = "as it was"
    print("[]"); sys.stdout.flush(); sys.stdin.read()
    touches(0x1234)
main("hidden")
"""


def test_a_crash_tells_its_address_and_its_variables(tmp_path):
    needs_plain_pattern()
    argv = ["prlimit", "--core=unlimited", *harness.default_python().argv, "-c", CRASHES]
    with harness.started(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=str(tmp_path)) as process:
        assert process.wait(harness.PATIENCE) == -signal.SIGSEGV
    (path,) = glob.glob(str(tmp_path / "core*"))
    snapshot = dump(path, "--locals")
    assert snapshot["core"]["address"] == 0x1234
    (thread,) = snapshot["threads"]
    assert thread["state"] == "running"
    frames = {frame["function"]: {local["name"]: local["value"] for local in frame["locals"]} for frame in thread["frames"]}
    assert frames["touches"] == {"address": "4660"}
    assert frames["main"] == {"secret": "<hidden>", "text": "'as it was'"}
    run = pybpf("dump", "--core", path)
    assert run.out.startswith("Core file %s of process %d: " % (path, process.pid))
    assert ", thread %d had SIGSEGV at address 0x1234\n" % process.pid in run.out


def test_deadlocks(tmp_path):
    with harness.target(harness.default_python(), "deadlocks.py") as target:
        harness.wait_for(lambda: json.loads(pybpf("dump", "-p", target.pid, "--json").out)["deadlocks"])
        live = json.loads(pybpf("dump", "-p", target.pid, "--json", "--freeze").out)
        path, _ = gcore(target.pid, str(tmp_path))
    assert live["deadlocks"] and dump(path)["deadlocks"] == live["deadlocks"]


def mapped(pid):
    with open("/proc/%d/maps" % pid, encoding="utf-8") as file:
        fields = [line.split(maxsplit=5) for line in file]
    return {line[5].strip() for line in fields if len(line) == 6 and line[5].startswith("/")}


def test_sysroot_and_executable(tmp_path):
    """The program and its libraries under another root; a file that is another one is not taken for the one that was."""
    root, folder = tmp_path / "root", str(tmp_path)
    with started(harness.default_python(), folder) as (process, says):
        files = [path for path in mapped(process.pid) if os.path.isfile(path)]
        exe = os.path.realpath("/proc/%d/exe" % process.pid)
        for path in files:
            os.makedirs(os.path.dirname(str(root) + path), exist_ok=True)
            shutil.copy(path, str(root) + path)
        path, _ = gcore(process.pid, folder)
    check(dump(path, "--sysroot", root), says)

    moved = str(root) + exe
    os.rename(moved, moved + ".moved")
    run = pybpf("dump", "--core", path, "--sysroot", root)
    assert "below the sysroot, %s: No such file or directory; see" % exe in run.err, run
    check(dump(path, "--sysroot", root, "--executable", moved + ".moved"), says)

    shutil.copy("/bin/true", moved)
    run = pybpf("dump", "--core", path, "--sysroot", root)
    assert "%s is another file than the one that was mapped" % exe in run.err, run


def test_truncated(dead, tmp_path):
    """What is missing is counted, and no stack is made up: what is shown of it is a part of the true one."""
    path, says, pid = dead
    size = os.path.getsize(path)
    seen = set()
    for tenths in range(1, 10):
        cut = str(tmp_path / "cut")
        shutil.copy(path, cut)
        os.truncate(cut, size * tenths // 10)
        run = pybpf("dump", "--core", cut, "--json")
        assert run.code in (0, 1), run
        if run.code:
            (sentence,) = run.err.splitlines()
            assert sentence.startswith("pybpf: ") and str(pid) in sentence, run
            continue
        snapshot = json.loads(run.out)
        assert snapshot["core"]["missing_bytes"] == pytest.approx(size - size * tenths // 10, abs=4096)
        for name, chain in says["stacks"].items():
            shown = [frame for frame in stack(by_name(snapshot).get(name, {"frames": []})) if frame[1]]
            seen.add(len(shown) == len(chain))
            assert all(frame in chain for frame in shown if not frame[0].startswith("[")), (name, shown)
    assert seen


def has_children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as file:
        return bool(file.read())


def full_pipe():
    """Its two ends: what is written to it waits until it is read."""
    ends = os.pipe()
    os.set_blocking(ends[1], False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(ends[1], b"\n" * 4096)
    os.set_blocking(ends[1], True)
    return ends


@pytest.mark.parametrize("moment_ms", range(0, 20, 2))
def test_cut_meanwhile(dead, tmp_path, moment_ms):
    """Made shorter while helpers read it, or before the end: a sentence and status 1, and nobody dies of it."""
    cut = str(tmp_path / "cut")
    shutil.copy(dead[0], cut)
    inlet, outlet = full_pipe()
    options = {"stdout": outlet, "stderr": subprocess.PIPE, "text": True}
    with harness.started([harness.PYBPF, "dump", "--core", cut], **options) as process:
        os.close(outlet)
        # It has opened the file before it starts them, and cannot end before its output is read.
        harness.wait_for(lambda: has_children(process.pid), step=0.0005)
        time.sleep(moment_ms / 1000)
        os.truncate(cut, 4096)
        with open(inlet, "rb") as file:
            file.read()
        _, err = process.communicate(timeout=harness.PATIENCE)
    assert process.returncode == 1
    *before, last = err.splitlines()
    assert last.startswith("pybpf: %s was changed while it was read" % cut), err
    assert all(sentence.startswith("pybpf: ") for sentence in before)
    assert "took too long" not in err and "did not answer" not in err


@pytest.mark.parametrize("args, code, says", [
    (["--core", "/nonexistent"], 1, "cannot open /nonexistent: No such file or directory"),
    (["--core", "/bin/true"], 1, "/bin/true is no core file that pybpf can read: it is a program or a library, and no core"),
    (["--core", "/dev/null"], 1, "/dev/null is no core file that pybpf can read: it is no regular file"),
    (["--core", "/etc/passwd"], 1, "/etc/passwd is no core file that pybpf can read: it is no ELF file"),
    (["--core", "/bin/true", "-p", "1"], 2, "--core and an option that chooses processes exclude each other: a core file is of one moment"),
    (["--core", "/bin/true", "--freeze"], 2, "--core and --freeze exclude each other: a core file is of one moment"),
    (["--core", "/bin/true", "--watch", "1"], 2, "--core and --watch exclude each other: a core file is of one moment"),
    (["--sysroot", "/", "-p", "1"], 2, "--sysroot goes with --core"),
])
def test_bad_input(args, code, says):
    run = pybpf("dump", *args)
    assert (run.code, run.out, run.err) == (code, "", "pybpf: %s\n" % says)


def test_what_is_given_and_not_there(dead):
    path, _, _ = dead
    run = pybpf("dump", "--core", path, "--sysroot", "/nonexistent")
    assert (run.code, run.err) == (1, "pybpf: cannot open /nonexistent: No such file or directory\n")


def test_no_python(tmp_path):
    with harness.started(["sleep", "1000"]) as process:
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        path, _ = gcore(process.pid, str(tmp_path))
    run = pybpf("dump", "--core", path)
    assert run.code == 1 and not run.out
    assert run.err.startswith("pybpf: %s: process %d (sleep) maps no Python: " % (path, process.pid))


MANY = """
import ctypes, shutil, sys, time
for i in range(100):
    name = "lib%d.so" % i
    shutil.copy(sys.argv[1], name)
    ctypes.CDLL("./" + name)
def waits():
    print("[]"); sys.stdout.flush(); time.sleep(1000)
waits()
"""


def test_more_libraries_than_a_helper_may_have_open(tmp_path):
    needs_plain_pattern()
    libm = next(path for path in mapped(os.getpid()) if "/libm" in path)
    argv = [*harness.default_python().argv, "-c", MANY, libm]
    with harness.started(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=str(tmp_path)) as process:
        harness.read_ready_line(process)
        path = die(process, signal.SIGABRT, str(tmp_path))
    (thread,) = dump(path)["threads"]
    assert [frame["function"] for frame in thread["frames"]] == ["<module>", "waits"]
    os.remove(str(tmp_path / "lib7.so"))
    run = pybpf("dump", "--core", path)
    assert run.code == 0 and re.match(r"pybpf: 1 of the 1\d\d programs and libraries ", run.err), run.err
