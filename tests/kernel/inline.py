# SPDX-License-Identifier: Apache-2.0
"""Targets given as source: they run by `python -c`, so that they need no file in any root file system."""
import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile

import harness
import pythons

SOURCE = "<string>"  # what CPython calls the file of -c
NOTE = re.compile(r"\[(\d+) frames? cut\]")

# Ready is said once in JSON, on a line; each go() waits for a line on stdin.
PRELUDE = """\
import json, os, sys, time, threading, signal
def ready(**more):
    more["pid"] = os.getpid()
    sys.stdout.write(json.dumps(more) + "\\n"); sys.stdout.flush()
def go():
    return os.read(0, 1)
if hasattr(signal, "alarm"): signal.alarm(120)
"""


class Source:
    """Source text whose lines can be asked for by a mark: `call()  #: mark`."""

    def __init__(self, text):
        self.text = PRELUDE + text

    def line(self, mark):
        found = [n for n, line in enumerate(self.text.split("\n"), 1) if line.endswith("#: " + mark)]
        assert len(found) == 1, "%d lines are marked %s" % (len(found), mark)
        return found[0]


@contextlib.contextmanager
def running(interpreter, source, *args):
    """A target that has said that it is ready; killed at the end."""
    process = subprocess.Popen(
        [*interpreter.argv, "-c", source.text, *map(str, args)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    try:
        ready = harness.read_ready_line(process)
        harness.renice(process.pid, harness.niceness_of(interpreter.argv))
        yield harness.Target(process, ready)
    finally:
        harness.stop(process)


def go(target):
    target.process.stdin.write(b"g")


class Recorder:
    """A pybpf that runs until it is told to stop."""

    def __init__(self, pid, folder, *args, rate=999):
        self.stats = os.path.join(folder, "stats.json")
        rates = [] if rate is None else ["-F", rate]
        argv = [harness.PYBPF, "-p", pid, *rates, "--json-stats", self.stats, *args]
        self.process = subprocess.Popen(
            [str(arg) for arg in argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        harness.wait_for(self.samples_now)

    def samples_now(self):
        assert self.process.poll() is None, "pybpf ended: %s" % self.process.communicate()[1]
        # It gives up its rights when all is attached.
        with open("/proc/%d/status" % self.process.pid, encoding="utf-8") as status:
            return "\nSeccomp:\t2\n" in status.read()

    def map_id(self, name):
        """The ID of one of its BPF maps, or None when bpftool does not find it."""
        folder = "/proc/%d/fdinfo" % self.process.pid
        for fd in os.listdir(folder):
            with contextlib.suppress(OSError), open(os.path.join(folder, fd), encoding="ascii") as info:
                match = re.search(r"^map_id:\s*(\d+)", info.read(), re.M)
                if match and dump_map("show", match.group(1)).get("name") == name:
                    return match.group(1)
        return None

    def send(self, signo):
        self.process.send_signal(signo)

    def finish(self):
        self.send(signal.SIGINT)
        out, err = self.process.communicate(timeout=harness.PATIENCE)
        assert self.process.returncode == 0, err
        run = harness.Run(0, out.decode("utf-8", "surrogateescape"), err.decode())
        with open(self.stats, encoding="utf-8") as stats:
            run.stats = json.load(stats)
        return run


def dump_map(command, number):
    done = subprocess.run(
        ["bpftool", "-j", "map", command, "id", str(number)], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@contextlib.contextmanager
def recording(pid, *args, rate=999):
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(pid, folder, *args, rate=rate)
        try:
            yield recorder
        finally:
            harness.stop(recorder.process)


def cpu_time(pid):
    """Seconds that the threads of a process have been running."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/schedstat" % (pid, task)) as stat:
            total += int(stat.read().split()[0])
    return total / 1e9


def names(stack):
    return [frame.name for frame in stack]


def lines(stack):
    return [frame.line for frame in stack]


def rows(run):
    """The printed stacks as text, with their counts; quick, where stacks are deep and many."""
    all_rows = [(row.rpartition(" ")[0], int(row.rpartition(" ")[2])) for row in run.out.split("\n")[:-1]]
    return [(stack, count) for stack, count in all_rows if not any(name in stack for name in harness.ROWS)]


def check_account(run):
    """Every sample is accounted for, once; what is printed is what was counted."""
    stats, samples = run.stats, run.stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], stats
    assert samples["lost"] == sum(stats["lost"].values()), stats
    assert samples["taken"] == samples["python"] + sum(stats["without_python"].values()), stats
    printed = rows(run)
    assert sum(count for _, count in printed) == samples["python"], stats
    harness.check_rows(run)
    assert len(printed) == len({stack for stack, _ in printed}), "a stack is printed twice"


def check_sums(run):
    """The same, and the stacks."""
    check_account(run)
    return run.stacks()


def native():
    """Interpreters that see this machine's files."""
    return [item for item in pythons.interpreters() if item.runs_here()]


def two():
    """One Python with frames on the C heap and one with frames on its own stack, where there are both."""
    old = [item for item in native() if item.version in ((3, 8), (3, 9), (3, 10))]
    new = [item for item in native() if item.version >= (3, 12) and item.kind != "free-threaded"]
    chosen = old[-1:] + new[-1:]
    return chosen or native()[:1]


def newest():
    return two()[-1]
