# SPDX-License-Identifier: Apache-2.0
"""The machine that is measured on: its CPUs, its settings, and the processes that the bench starts there."""

import contextlib
import mmap
import os
import re
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import harness

TARGETS = Path(__file__).resolve().parent / "targets"
NUMBER = struct.Struct("Q")  # native: read at once, as targets/counted.py stores it
POLL_S = 0.005
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def split_cpus():
    """(the target's CPU, the CPUs of all else): the same one where there is only one."""
    cpus = sorted(os.sched_getaffinity(0))
    return cpus[-1], cpus[:-1] or cpus


@contextlib.contextmanager
def setting(path, fits, value):
    """Gives a file of /proc/sys the value unless what it has fits; whatever happens to it, what it was comes back."""
    with open(path, encoding="ascii") as file:
        before = file.read().strip()
    try:
        if not fits(int(before)):
            write(path, value)
        yield
    finally:
        with open(path, encoding="ascii") as file:
            now = file.read().strip()
        if now != before:
            write(path, before)


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write("%s\n" % value)


@contextlib.contextmanager
def fast_events(rate):
    """Lets perf events of that rate happen."""
    folder = "/proc/sys/kernel/"
    # While the limit of their time is 0 or 100, the limit of their rate cannot be written.
    with setting(folder + "perf_cpu_time_max_percent", lambda now: 0 < now < 100, 25):
        with setting(folder + "perf_event_max_sample_rate", lambda now: now >= rate, rate):
            yield


def bpf_maps_kib(pid):
    sizes = {words["map_id"]: int(words["memlock"]) for words in harness.fdinfo(pid) if "map_id" in words}
    return sum(sizes.values()) / 1024


def cpu_ns(pid):
    """That a process's threads were on a CPU, by the clock of which clock_getcpuclockid() tells the number."""
    return time.clock_gettime_ns(~pid << 3 | 2)


def waited_ns(pid):
    """That a process's first thread was ready to run, and others had its CPU."""
    return int(Path("/proc/%d/schedstat" % pid).read_text(encoding="ascii").split()[1])


class Target:
    """A running program of tests/bench/targets, and the counter of work done that it keeps in shared memory."""

    def __init__(self, process, memory):
        self.process, self.memory = process, memory
        self.waits = []  # shares of the times measured in which other programs had its CPU

    @property
    def pid(self):
        return self.process.pid

    def done(self):
        assert self.process.poll() is None, "the target ended with status %s" % self.process.returncode
        return NUMBER.unpack_from(self.memory, 0)[0]

    def speed(self, seconds):
        """Units of work per second of wall clock."""
        waited = waited_ns(self.pid)
        first, start = self.done(), time.monotonic()
        time.sleep(seconds)
        done, took = self.done() - first, time.monotonic() - start
        self.waits.append((waited_ns(self.pid) - waited) / 1e9 / took)
        return done / took


@contextlib.contextmanager
def target(cpu, interpreter, name, *arguments):
    """A target that is at work, alone on its CPU as far as the bench is concerned; killed at the end."""
    with contextlib.ExitStack() as stack:
        fd = os.memfd_create("pybpf-bench")
        stack.callback(os.close, fd)
        os.ftruncate(fd, mmap.PAGESIZE)
        memory = stack.enter_context(mmap.mmap(fd, mmap.PAGESIZE))
        argv = interpreter.command(name, str(fd), *map(str, arguments), folder=TARGETS)
        argv = ["taskset", "-c", str(cpu), *argv]
        process = stack.enter_context(harness.started(argv, stdin=subprocess.DEVNULL, pass_fds=(fd,)))
        running = Target(process, memory)
        harness.wait_for(running.done, step=POLL_S)
        yield running


@dataclass
class Ended:
    status: int
    text: str
    cpu_s: float
    peak_kib: int


class Watched:
    """A process whose output and CPU time are kept."""

    def __init__(self, process, log):
        self.process, self.log = process, log
        self.peak_kib = 0

    def look_at_memory(self):
        """The kernel's ru_maxrss would be that of the bench, which was forked."""
        with open("/proc/%d/status" % self.process.pid, encoding="utf-8", errors="replace") as status:
            peak = re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.M)
        self.peak_kib = max(self.peak_kib, int(peak.group(1)) if peak else 0)

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return ESCAPES.sub("", log.read())

    def end(self, timeout):
        """What became of it, or None when it still runs."""
        until = time.monotonic() + timeout
        while True:
            self.look_at_memory()
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                cpu_s = usage.ru_utime + usage.ru_stime
                return Ended(self.process.returncode, self.text(), cpu_s, self.peak_kib)
            if time.monotonic() > until:
                return None
            time.sleep(POLL_S)


@contextlib.contextmanager
def watched(argv, folder, **options):
    log = os.path.join(folder, "log")
    with open(log, "wb") as out:
        with harness.started(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=folder, **options
        ) as process:
            yield Watched(process, log)
