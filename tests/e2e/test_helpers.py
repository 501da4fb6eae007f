# SPDX-License-Identifier: Apache-2.0
"""What others wrote is opened by a helper: with their rights where it is text, and for no longer than it answers."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import zlib

import cgroups
import fuse
import harness
import pytest

USER, GROUP, MORE = 54321, 54322, 54323
TOKEN = b"this text is nobody's business"
PYTHON = "/usr/bin/python3"

SPIN = """# %s
def spin():
    while True:
        pass
%s
spin()
"""
# A program that says of its code that it is another file.
CLAIMS = """
import sys
text = "def spin():\\n  while True: pass\\nprint('ready', flush=True)\\nspin()\\n"
exec(compile(text, sys.argv[1], "exec"), {})
"""


@contextlib.contextmanager
def as_user(argv, groups=(), user=USER):
    """A program of another user, once it has printed its first line."""
    rights = ["--reuid", user, "--regid", GROUP, *(["--groups", ",".join(map(str, groups))] if groups else ["--clear-groups"])]
    words = ["/usr/bin/setpriv", *map(str, rights), *map(str, argv)] if user else list(map(str, argv))
    with harness.started(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        assert process.stdout.readline().strip() == b"ready"
        yield process


def profile_of(pid, path):
    run = harness.pybpf("-p", pid, "-d", 1, "-F", 499, "-o", path)
    assert run.code == 0, run.err
    data = path.read_bytes()
    return zlib.decompressobj(31).decompress(data[data.index(b"\x1f\x8b") :])


@pytest.mark.parametrize("groups,mode,owner", [((), 0o600, (0, 0)), ((MORE,), 0o640, (0, 0)), ((MORE,), 0o040, (USER, MORE))])
def test_a_path_that_the_program_could_not_read(folder, groups, mode, owner):
    secret = folder / "secret"
    secret.write_bytes(TOKEN)
    os.chown(secret, *owner)
    secret.chmod(mode)
    with as_user([PYTHON, "-c", CLAIMS, secret], groups) as process:
        saved = profile_of(process.pid, folder / "profile.pybpf")
        run = harness.pybpf("--all", "-d", 1, "-F", 499, "-o", folder / "profile.html")
    assert run.code == 0, run.err
    assert b"secret" in saved, "the function's file is not in the profile: nothing was asked for"
    assert TOKEN not in saved
    listed = harness.pybpf("report", folder / "profile.pybpf", "-f", "json")
    assert listed.code == 0 and TOKEN.decode() not in listed.out


@pytest.mark.parametrize(
    "name,mode,owner,groups,user",
    [
        ("everybody's", 0o644, (0, 0), (), USER),
        ("its own", 0o600, (USER, GROUP), (), USER),
        ("its group's", 0o640, (0, GROUP), (), USER),
        ("another group's", 0o640, (0, MORE), (7, MORE), USER),
        ("another user's, for root", 0o600, (USER, GROUP), (), 0),
    ],
)
def test_a_program_whose_text_it_can_read(folder, name, mode, owner, groups, user):
    program = folder / "program.py"
    program.write_bytes((SPIN % (TOKEN.decode(), "print('ready', flush=True)")).encode())
    os.chown(program, *owner)
    program.chmod(mode)
    with as_user([PYTHON, program], groups, user) as process:
        saved = profile_of(process.pid, folder / "profile.pybpf")
    assert TOKEN in saved, name


@pytest.fixture
def library():
    return pathlib.Path("/proc/self/exe").resolve().read_bytes()


@contextlib.contextmanager
def silent_file_system(folder, content, late_s=0.3):
    try:
        with fuse.mounted(folder / "mnt", content, late_s) as server:
            yield server
    except fuse.Missing as error:
        pytest.skip(f"no file system in user space here: {error}")


def spinning(folder):
    program = folder / "victim.py"
    program.write_text(SPIN % ("", "print('ready', flush=True)"))
    return as_user([PYTHON, program])


MAPS = harness.TOP / "tests" / "targets" / "maps.py"


def visible(folder):
    """The program where the other user can read it."""
    return shutil.copy(MAPS, folder / "maps.py")


def test_a_mapped_file_whose_server_does_not_answer(folder, library):
    with silent_file_system(folder, library) as server, spinning(folder) as victim:
        with as_user([PYTHON, visible(folder), folder / "mnt" / "file", 2, "asleep"]):
            server.silence()
            listed = harness.pybpf("ps")
            assert listed.code == 1 and str(victim.pid) in listed.out, listed.err
            assert "/mnt/file" in listed.out + listed.err and "left out" in listed.out + listed.err
            run = harness.pybpf("--all", "-d", 2, "-F", 499)
            assert run.code == 0, run.err
            samples = sum(n for stack, n in run.stacks() if stack[-1].name == "spin")
            assert samples > 0, run.err


def test_ctrl_c_beside_a_server_that_does_not_answer(folder, library):
    with silent_file_system(folder, library) as server, spinning(folder):
        with as_user([PYTHON, visible(folder), folder / "mnt" / "file", 1, "asleep"]) as stuck:
            server.silence()
            for words in (["--all"], ["-p", stuck.pid]):
                with harness.started(
                    [harness.PYBPF, *map(str, words)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    preexec_fn=harness.take_interrupts,
                ) as process:
                    time.sleep(1)
                    harness.interrupt(process)
                    process.wait(harness.PATIENCE)


def test_a_source_whose_server_does_not_answer(folder):
    text = (SPIN % ("", "print('ready', flush=True)")).encode()
    with silent_file_system(folder, text) as server, as_user([PYTHON, folder / "mnt" / "file"]) as process:
        server.silence()
        run = harness.pybpf("-p", process.pid, "-d", 1, "-F", 499, "-o", folder / "profile.html")
        assert run.code == 0, run.err
        assert (folder / "profile.html").stat().st_size


def test_files_that_are_slow_to_read(folder, library):
    """Thirty processes of one user, each of which takes several answers to look at: those of a few are waited for."""
    with silent_file_system(folder, library, late_s=0.4) as server, spinning(folder):
        with as_user([PYTHON, visible(folder), folder / "mnt" / "file", 30, "asleep"]):
            server.delay()
            before = server.counts.answered
            run = harness.pybpf("--all", "-d", 2, "-F", 499)
            answered = server.counts.answered - before
            assert run.code == 0, run.err
            samples = sum(n for stack, n in run.stacks() if stack[-1].name == "spin")
            assert samples > 0, run.err
            assert 0 < answered < 30, answered


def test_memory_that_is_slow_to_read(folder):
    """150 texts that are asked for while samples wait, each of which takes 0.15 s to come: not all are waited for."""
    target = shutil.copy(MAPS.with_name("slow_memory.py"), folder / "slow_memory.py")
    content = subprocess.run([PYTHON, target, "150"], stdout=subprocess.PIPE, check=True, timeout=60).stdout
    with silent_file_system(folder, content, late_s=0.15) as server, spinning(folder) as victim:
        with as_user([PYTHON, target, 150, folder / "mnt" / "file"]) as slow:
            server.delay()
            for words in (["-p", victim.pid, "-p", slow.pid], ["--all"]):
                before = server.counts.answered
                run = harness.pybpf(*words, "-d", 2, "-F", 99)
                answered = server.counts.answered - before
                assert run.code == 0, run.err
                assert f"{slow.pid} (" in run.err and "slow to read" in run.err, run.err
                assert sum(n for stack, n in run.stacks() if stack[-1].name == "spin") > 0, run.err
                assert 0 < answered < 150, answered


def test_state_of_a_runtime_that_takes_memory(folder):
    """A user's own list of containers, which is asked about since a cgroup's name says podman."""
    user, ident = 54321, "ab" * 32
    path = pathlib.Path(f"/run/user/{user}/containers/overlay-containers")
    path.mkdir(parents=True)
    (path / "containers.json").write_bytes(b"[" + b"{}," * 1398000 + b"{}]")
    try:
        name = f"user-{user}.slice/libpod-{ident}.scope"
        with cgroups.inside(name, [PYTHON, "-c", "while True: pass"]):
            # Nobody reads a pipe while the memory is watched, and a busy machine has more stacks than one holds.
            words = ["--all", "--by=container", "-d", "1", "-F", "199", "-o", str(folder / "profile.folded")]
            argv = harness.tied([harness.PYBPF, *words], "TERM")
            with harness.started(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
                most = 0
                while running.poll() is None:
                    most = max([most, *map(peak_kib, [running.pid, *helpers_of(running.pid)])])
                    time.sleep(0.01)
                err = running.communicate()[1]
            assert running.returncode == 0, err
            assert ident[:12] in (folder / "profile.folded").read_text(encoding="utf-8")
    finally:
        shutil.rmtree(f"/run/user/{user}", ignore_errors=True)
    assert 0 < most < 180 * 1024, "%d MiB" % (most // 1024)


def peak_kib(pid):
    """The most memory that the process has had resident."""
    with contextlib.suppress(OSError):
        for row in pathlib.Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines():
            if row.startswith("VmHWM:"):
                return int(row.split()[1])
    return 0


def helpers_of(pid):
    """The process that makes helpers, and those that it has made."""
    found = []
    with contextlib.suppress(OSError):
        for child in map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "pybpf-maker":
                found += [child, *map(int, pathlib.Path(f"/proc/{child}/task/{child}/children").read_text().split())]
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("which", ["helpers", "all, with their forkserver"])
def test_helpers_that_are_killed(folder, seed, which):
    """At random points of runs: what was not told is missing, and the run is a whole one."""
    chance = random.Random(f"{which} {seed}")
    path = folder / "profile.folded"
    with spinning(folder) as victim:
        for words in (["-p", victim.pid], ["--all"]):
            argv = harness.tied([harness.PYBPF, *map(str, words), "-d", "1.5", "-F", "499", "-o", str(path)], "TERM")
            with harness.started(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                end = time.monotonic() + 1.5
                while time.monotonic() < end and process.poll() is None:
                    time.sleep(chance.random() * 0.1)
                    for pid in helpers_of(process.pid)[which == "helpers" :]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                err = process.communicate(timeout=harness.PATIENCE)[1].decode()
            if process.returncode:
                # Before the process was known to be a Python there is nothing to sample.
                assert words[0] == "-p" and str(victim.pid) in err, err
                assert not path.exists() or not harness.parse(path.read_text()), err
                path.unlink(missing_ok=True)
                continue
            for stack, _ in harness.parse(path.read_text()):
                if "victim.py" in stack[-1].text:
                    assert [frame.name for frame in stack][-2:] == ["<module>", "spin"], harness.show(stack)
            path.unlink()
