# SPDX-License-Identifier: Apache-2.0
"""pybpf [options] -- COMMAND ARGUMENTS…: it must not notice, and nothing of it must be missed."""

import collections
import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

import harness
import processes
import pythons
from harness import Expectation, pybpf, total

pytestmark = pytest.mark.usefixtures("profiler")
# Seconds of CPU time: as many samples on a machine that has little to give.
BUSY = "import time; end = time.process_time() + %s\nwhile time.process_time() < end: sum(range(9999))"


def command(*args, options=("-q", "-o", os.devnull), **more):
    return pybpf(*options, "--", *args, **more)


@pytest.fixture
def python():
    return harness.default_python().argv[0]


@pytest.mark.parametrize("status", [0, 1, 3, 200])
def test_exit_code(python, status):
    run = command(python, "-c", "import sys; sys.exit(%d)" % status)
    assert run.code == status


def test_death_by_signal(python):
    script = "import os; os.kill(os.getpid(), 15)"
    assert command(python, "-c", script).code == 128 + signal.SIGTERM


def test_output_goes_to_a_file_and_stdout_is_the_commands(python, tmp_path):
    path = tmp_path / "profile.folded"
    script = BUSY % 1 + "\nprint('of the command')"
    run = pybpf("-o", path, "-q", "-F", 499, "--", python, "-c", script)
    assert (run.code, run.out, run.err) == (0, "of the command\n", "")
    stacks = harness.parse(path.read_text())
    assert total(stacks) > 50
    work = sum(n for stack, n in stacks if [frame.name for frame in stack] == ["<module>"])
    assert work >= 0.8 * total(stacks), "the command's own line has %d of %r" % (work, stacks[:5])


def test_stdin_is_the_commands(python):
    script = "import sys; print(sys.stdin.read().upper())"
    done = subprocess.run(
        [harness.PYBPF, "-q", "-o", os.devnull, "--", python, "-c", script],
        input=b"typed in",
        stdout=subprocess.PIPE,
        timeout=harness.PATIENCE,
    )
    assert done.stdout == b"TYPED IN\n"


@pytest.mark.parametrize("ignored", [(), (signal.SIGCHLD, signal.SIGPIPE)], ids=["nothing", "ignored"])
def test_open_files_and_signal_state_are_as_without_pybpf(python, ignored):
    script = (
        "import os, signal\n"
        "print(sorted(os.listdir('/proc/self/fd')))\n"
        "kept = ('SigBlk', 'SigIgn', 'SigCgt', 'CapEff', 'CapPrm')\n"
        "print([row for row in open('/proc/self/status') if row[:6] in kept])\n"
        "print(os.getcwd(), os.getpgrp() == os.getpid(), sorted(os.environ))\n"
        "raise SystemExit(3)\n"
    )

    def ignore():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    alone = subprocess.run(
        [python, "-c", script], capture_output=True, text=True, stdin=subprocess.DEVNULL, preexec_fn=ignore
    )
    seen = command(python, "-c", script, preexec_fn=ignore)
    assert (seen.out, seen.code) == (alone.stdout, 3)


@pytest.mark.parametrize("started_with, runs_with", [(0, -20), (5, 5)])
def test_precedence_is_not_the_commands(python, started_with, runs_with):
    script = "import os; print(os.nice(0), os.getpriority(os.PRIO_PROCESS, os.getppid()))"
    with harness.niceness(0):
        run = subprocess.run(
            ["nice", "-n", str(started_with), harness.PYBPF, "-q", "-o", os.devnull, "--", python, "-c", script],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=harness.PATIENCE,
        )
    assert (run.returncode, run.stdout) == (0, "%d %d\n" % (started_with, runs_with)), run.stderr


def test_the_verifier_has_no_precedence(tmp_path):
    """It takes as much as a second of a CPU before the first sample, which others would miss."""
    stats = tmp_path / "stats.json"
    words = ["--mode=wall", "--all", "-d", "1", "-q", "-o", os.devnull, "--json-stats", str(stats)]
    seen = collections.Counter()
    with harness.started([harness.PYBPF, *words]) as process:
        while not processes.is_sampling(process.pid) and process.poll() is None:
            seen[os.getpriority(os.PRIO_PROCESS, process.pid)] += 1
        assert process.poll() is None and os.getpriority(os.PRIO_PROCESS, process.pid) == -20
        process.wait(harness.PATIENCE)
    assert seen[0] > 0.5 * sum(seen.values()) > 0, seen


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR2])
def test_signals_are_passed_on(python, number, tmp_path):
    ready = tmp_path / "ready"
    script = (
        "import signal, sys, time\n"
        "signal.signal(%d, lambda *_: sys.exit(77))\n"
        "open(%r, 'w').close()\n"
        "while True: time.sleep(0.05)" % (number, str(ready))
    )
    argv = [harness.PYBPF, "-q", "-o", os.devnull, "--", python, "-c", script]
    with harness.started(argv, stdin=subprocess.DEVNULL) as run:
        harness.wait_for(ready.exists)
        run.send_signal(number)
        assert run.wait(harness.PATIENCE) == 77


def test_interrupt_reaches_the_command_and_the_profile_is_written(python, tmp_path):
    """What Ctrl-C at a terminal does: both get the signal."""
    path, ready = tmp_path / "profile.folded", tmp_path / "ready"
    script = (
        "open(%r, 'w').close()\n"
        "try:\n    while True: sum(range(9999))\n"
        "except KeyboardInterrupt:\n    raise SystemExit(66)" % str(ready)
    )
    argv = ["setsid", "--ctty", harness.PYBPF, "-q", "-o", str(path), "--", python, "-c", script]
    keyboard, terminal = pty.openpty()
    try:
        with harness.started(argv, stdin=terminal) as run:
            harness.wait_for(ready.exists)
            time.sleep(1)
            os.write(keyboard, b"\x03")
            assert run.wait(harness.PATIENCE) == 66
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert total(harness.parse(path.read_text())) > 0


@pytest.mark.parametrize("interpreter", pythons.of_each_version(pythons.interpreters()), ids=lambda item: item.name)
def test_from_the_first_instruction_to_the_end(interpreter, tmp_path):
    """A short program: its samples, with its start and its last function, are all there."""
    stats, path = tmp_path / "stats.json", tmp_path / "profile.folded"
    argv = interpreter.command("mortal.py", "1.5")
    run = pybpf("-F", 999, "--no-children", "-o", path, "--json-stats", stats, "--", *argv)
    assert run.code == 7, run.err
    says = json.loads(run.out.splitlines()[0])
    stacks = harness.parse(path.read_text())
    # Site and the target's own preparation come first; they are no part of what the target expects.
    # (Site has a main as well.)
    names, own = ("burn", "last_words", "main"), "mortal.py"
    work = [
        (s, n) for s, n in stacks if s[-1].name in names and os.path.basename(s[-1].file) == own
    ]
    Expectation(says).check(work, hot=False)
    last = sum(n for s, n in work if s[-1].name == "last_words")
    burn = sum(n for s, n in work if s[-1].name == "burn")
    # Its share depends on who else wants the CPU at the end.
    assert last >= 0.02 * burn > 0, (last, burn)
    early = total(stacks) - total(work)
    assert early > 0, "nothing of the interpreter's start was seen"
    samples = json.loads(stats.read_text())["samples"]
    assert samples["python"] == total(stacks)


def test_the_first_module_is_seen(python, tmp_path):
    """What Python does before the script, importing site, is Python code as well."""
    path = tmp_path / "profile.folded"
    # It takes some 20 ms: beside a load it may have ended before anybody looked at it.
    for _ in range(10):
        assert pybpf("-q", "-F", 4999, "-o", path, "--", python, "-c", "import time").code == 0
        if "<frozen importlib._bootstrap>" in path.read_text():
            return
    raise AssertionError(path.read_text())


def test_found_on_the_path(tmp_path):
    tool = tmp_path / "some-tool"
    tool.write_text("#!/bin/sh\nexit 9\n")
    tool.chmod(0o755)
    env = dict(os.environ, PATH="%s:%s" % (tmp_path, os.environ["PATH"]))
    assert command("some-tool", env=env).code == 9


def test_a_script_that_starts_python(python, tmp_path):
    """A wrapper in sh that execs Python is followed through the exec."""
    wrapper, path = tmp_path / "wrapper", tmp_path / "profile.folded"
    wrapper.write_text("#!/bin/sh\nexec %s -c '%s'\n" % (python, BUSY % 1))
    wrapper.chmod(0o755)
    assert pybpf("-q", "-F", 499, "-o", path, "--", wrapper).code == 0
    assert total(harness.parse(path.read_text())) > 50


DAEMON = """
import os, sys, time
if os.fork(): os._exit(0)
os.setsid()
if sys.argv[1] == "ends": os._exit(0)
print(os.getpid(), flush=True)
os.close(2)
time.sleep(1000)
"""


@pytest.mark.parametrize("what", ["goes on", "ends"])
def test_a_process_that_outlives_the_command(python, what, tmp_path):
    """It is told how to sample what a program has left behind that makes itself a daemon."""
    out = tmp_path / "out"
    with open(out, "w", encoding="ascii") as stdout:
        run = command(python, "-c", DAEMON, what, options=("-o", os.devnull), stdout=stdout)
    assert run.code == 0, run.err
    told = re.findall(r"the command has ended.*; process (\d+) \(.*\), which it started, is still running: sample it with -p (\d+)\n", run.err)
    if what == "ends":
        assert "still running" not in run.err, run.err
        return
    pid = out.read_text(encoding="ascii").strip()
    os.kill(int(pid), signal.SIGKILL)
    assert told == [(pid, pid)], run.err


def test_command_not_found(tmp_path):
    path = tmp_path / "profile.folded"
    run = pybpf("-o", path, "--", "no-such-command-anywhere")
    assert run.code == 127
    assert "no-such-command-anywhere" in harness.one_sentence(run.err)
    assert not os.listdir(tmp_path)


def test_command_not_executable(tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    run = pybpf("-o", tmp_path / "profile", "--", script)
    assert run.code == 126
    assert str(script) in harness.one_sentence(run.err)
    assert os.listdir(tmp_path) == ["script"]


def test_folder_is_not_executable(tmp_path):
    run = pybpf("--", tmp_path)
    assert run.code == 126
    assert str(tmp_path) in harness.one_sentence(run.err)


def test_command_that_is_no_python():
    run = command("/bin/sleep", "0.3", options=())
    assert run.code == 0
    assert "Python" in run.err
