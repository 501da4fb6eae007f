# SPDX-License-Identifier: Apache-2.0
"""Chosen processes without a sample in Python code: what the account says that they did is what they did."""

import contextlib
import os
import re
import signal
from pathlib import Path

import pytest

import cgroups
import harness
from harness import cpu_s, pybpf

pytestmark = pytest.mark.usefixtures("profiler")

SLEEPS = "import time; time.sleep(300)"
BLINKS = "import time\nwhile True: time.sleep(0.02)"
SPINS = "while True: pass"
EXECUTES = """
import os, signal, sys
def execute(*_):
    os.execv(sys.executable, ["python", "-c", %r])
signal.signal(signal.SIGUSR1, execute)
while True: sum(range(999))
""" % SLEEPS
# A thread that jumps to itself for ever, and that Python does not know.
C_THREAD = """
import ctypes, mmap, time
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\\xeb\\xfe")
code = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(page)))
ctypes.CDLL(None).pthread_create(ctypes.byref(ctypes.c_ulong()), None, code, None)
time.sleep(300)
"""
WORKERS = """
import ctypes, multiprocessing
def work():
    ctypes.CDLL(None).prctl(1, 9)  # PR_SET_PDEATHSIG: it ends with the test
    while True: sum(range(1000))
workers = [multiprocessing.Process(target=work) for _ in range(2)]
for worker in workers: worker.start()
for worker in workers: worker.join()
"""


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as text:
        return list(map(int, text.read().split()))


@contextlib.contextmanager
def python(script, wait_state=None):
    """A Python that runs the script, once it does: its first statements are done when its CPU time comes to rest."""
    program = harness.default_python().argv[0]
    with harness.started(harness.tied([program, "-c", script])) as process:
        harness.wait_for(lambda: os.path.samefile("/proc/%d/exe" % process.pid, program))  # setpriv is first
        if wait_state:
            last = [-1.0]

            def at_rest():
                before, last[0] = last[0], cpu_s(process.pid)
                return before == last[0] and harness.state(process.pid) == wait_state

            harness.wait_for(at_rest, step=0.2)
        try:
            yield process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)


def account(*args, seconds=0.4):
    run = pybpf(*args, "-d", seconds, "-o", os.devnull, "-f", "folded")
    assert run.code == 0, run.err
    return run.err.splitlines()


@contextlib.contextmanager
def recording(*args):
    """pybpf, once it samples; and what ends it and returns what it wrote and said."""
    with harness.started([harness.PYBPF, *map(str, args)], stdout=-1, stderr=-1) as run:
        harness.wait_for(lambda: harness.samples_now(run.pid))

        def finish(interrupts=True):
            if interrupts:
                harness.interrupt(run)
            out, err = run.communicate(timeout=harness.PATIENCE)
            return out, err.decode().splitlines()

        yield finish


def works(pid, seconds=0.2):
    """Waits until the process has had some CPU time: its interpreter is there by then."""
    harness.wait_for(lambda: cpu_s(pid) > seconds)


def lines_about(pid, lines):
    return [line for line in lines if re.search(r"\b%d\b" % pid, line)]


def test_asleep():
    with python(SLEEPS, "S") as pid:
        before = cpu_s(pid)
        lines = account("-p", pid)
        assert cpu_s(pid) == before, "it was woken: the test is void"
    (line,) = lines_about(pid, lines)
    assert line.endswith(") was asleep throughout")
    assert any("running threads only" in line for line in lines)
    assert not any("no Python process" in line for line in lines)


def test_stopped():
    with python(SPINS) as pid:
        works(pid)
        os.kill(pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.state(pid) == "T")
        (line,) = lines_about(pid, account("-p", pid))
    assert "was stopped throughout" in line and "SIGCONT" in line


def stopped_in_the_middle(pid):
    """What a run that took no sample says of a process that is stopped half way; None if it took one."""
    with recording("-F", 1, "-p", pid) as finish:
        before = cpu_s(pid)
        harness.wait_for(lambda: cpu_s(pid) > before + 0.001)
        os.kill(pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.state(pid) == "T")
        out, lines = finish()
    os.kill(pid, signal.SIGCONT)
    return None if out else lines


def test_stopped_in_the_middle_is_not_stopped_throughout():
    with python(BLINKS) as pid:
        before = cpu_s(pid)
        # Now and then a sample at 1 Hz meets the millisecond of work.
        err = stopped_in_the_middle(pid) or stopped_in_the_middle(pid) or stopped_in_the_middle(pid)
        took = cpu_s(pid) - before
    (line,) = lines_about(pid, err)
    assert "throughout" not in line and line.endswith("; it is stopped now"), line
    assert 0 < float(re.search(r"took ([\d.]+) s", line).group(1)) <= took + 0.0001


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_frozen(version):
    try:
        mount = cgroups.unified() if version == "v2" else cgroups.with_controller("freezer")
    except cgroups.Missing as missing:
        pytest.skip(str(missing))
    name, freeze, thaw = ("cgroup.freeze", "1", "0") if version == "v2" else ("freezer.state", "FROZEN", "THAWED")
    with cgroups.directory("pybpf-idle-%d/inner" % os.getpid(), mount) as place, python(SPINS) as pid:
        place.add(pid)
        # The group above is frozen, not the one that the process is in.
        switch = place.path.parent / name
        switch.write_text(freeze)
        try:
            harness.wait_for(lambda: is_frozen(place, version))
            before = cpu_s(pid)
            chosen = [account("-p", pid), account("--cgroup", place.path)]
            assert cpu_s(pid) == before
        finally:
            switch.write_text(thaw)
        for lines in chosen:
            assert any("is frozen by its control group" in line for line in lines_about(pid, lines)), lines
            assert not any("no Python process" in line for line in lines)
        os.kill(pid, signal.SIGKILL)


def is_frozen(place, version):
    """A process that has no CPU meanwhile seems to be at rest before it is."""
    if version == "v2":
        return "frozen 1" in (place.path / "cgroup.events").read_text()
    return (place.path / "freezer.state").read_text() == "FROZEN\n"


def test_too_little_for_a_sample():
    with python(BLINKS) as pid:
        for _ in range(5):
            before = cpu_s(pid)
            lines = account("-p", pid, "-F", 1)
            took = cpu_s(pid) - before
            # The one sample a second may happen to meet it.
            if not any("1 with Python frames" in line for line in lines):
                break
    (line,) = lines_about(pid, lines)
    said = float(re.search(r"took ([\d.]+) s of CPU time", line).group(1))
    assert 0 < said <= took + 0.0001 and "throughout" not in line


def test_only_threads_of_c():
    with python(C_THREAD) as pid:
        harness.wait_for(lambda: cpu_s(pid) > 0.3)
        before = cpu_s(pid)
        lines = account("-p", pid, "-F", 499, seconds=1)
        took = cpu_s(pid) - before
    (line,) = lines_about(pid, lines)
    assert re.search(r"process %d \(.*\) has no sample in Python code" % pid, line)
    said = float(re.search(r"took ([\d.]+) s of CPU time", line).group(1))
    # Before and after the run pybpf itself starts and ends.
    assert 0 < said <= took + 0.0001
    assert not any("running threads only" in line for line in lines), "it did run"


def test_children_do_the_work():
    with python(WORKERS) as pid:
        workers = harness.wait_for(lambda: len(children(pid)) == 2 and children(pid))
        harness.wait_for(lambda: all(cpu_s(worker) > 0.2 for worker in workers))

        def hint_of(named, *chosen):
            """What is said of children, once all of these are known."""
            for line in account("-p", pid, *chosen, seconds=1):
                if "--children" in line and all(lines_about(one, [line]) for one in named):
                    return line
            return None

        hint = harness.wait_for(lambda: hint_of(workers))
        assert hint.endswith("which --children samples, too"), hint
        hint = harness.wait_for(lambda: hint_of(workers[1:], "-p", workers[0]))
        assert not lines_about(workers[0], [hint])
        with recording("-p", pid, "--children", "-o", os.devnull, "-f", "folded") as finish:
            for worker in workers:
                works(worker, cpu_s(worker) + 0.2)
            _, all_of_them = finish()
        assert not any("--children" in line for line in all_of_them)
        assert not any(lines_about(worker, all_of_them) for worker in workers)


def test_ended_without_a_sample():
    with python(SLEEPS, "S") as pid, recording("-p", pid, "-d", 30) as finish:
        os.kill(pid, signal.SIGKILL)
        _, lines = finish(interrupts=False)
    assert any("ended; it took 0.0" in line or "and it ended" in line for line in lines_about(pid, lines)), lines


def test_command_that_is_over_too_soon():
    argv = [harness.default_python().argv[0], "-c", "import time; time.sleep(0.5); print(time.process_time())"]
    for _ in range(5):
        run = pybpf("-F", 1, "-o", os.devnull, "-f", "folded", "--", *argv)
        # The one sample a second may happen to meet its start.
        if ", 0 with Python" in run.err:
            break
    said = re.search(r"in Python code, and it ended; it took ([\d.]+) s", run.err)
    # By its own clock, which has neither its way to that program nor its end.
    assert said and 0 < float(said.group(1)) < float(run.out) + 0.4, run


def test_several_are_told_apart():
    """One that works is not named; the others are, each for what it did."""
    with python(SLEEPS, "S") as asleep, python(SPINS) as stopped, python(SPINS) as busy:
        works(stopped)
        works(busy)
        os.kill(stopped, signal.SIGSTOP)
        harness.wait_for(lambda: harness.state(stopped) == "T")
        for choice in (["-p", "%d,%d,%d" % (asleep, stopped, busy)], ["--all"], ["--user", "root"]):
            lines = account(*choice, "-F", 999, seconds=0.8)
            assert any("asleep throughout" in line for line in lines_about(asleep, lines)) or choice[0] != "-p", lines
            assert any("stopped throughout" in line for line in lines_about(stopped, lines)), lines
            assert not lines_about(busy, lines), lines
            # A line names eight at most; whoever is asleep is in it or in "and N more".
            assert any("asleep throughout" in line and (str(asleep) in line or " more" in line) for line in lines), lines


def test_a_process_is_not_unsampled_because_it_executed_another_program():
    """Its samples are those of the program before: it was met."""
    with python(EXECUTES) as pid:
        works(pid)
        with recording("-p", pid, "-F", 999, "-o", os.devnull, "-f", "folded") as finish:
            works(pid, cpu_s(pid) + 0.1)
            os.kill(pid, signal.SIGUSR1)
            harness.wait_for(lambda: SLEEPS in Path("/proc/%d/cmdline" % pid).read_text(encoding="utf-8").split("\0"))
            harness.wait_for(lambda: "hrtimer" in Path("/proc/%d/wchan" % pid).read_text(encoding="ascii"))
            _, lines = finish()
    assert not lines_about(pid, lines), lines


def test_quiet_says_nothing():
    with python(SLEEPS, "S") as pid:
        assert pybpf("-q", "-p", pid, "-d", 0.3).err == ""
