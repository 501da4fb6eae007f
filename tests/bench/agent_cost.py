# SPDX-License-Identifier: Apache-2.0
"""What `pybpf agent` takes beside a crowd of Pythons, and how long its epochs are, against what was asked for."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
import machine
import processes
from figures import Figure, Section, Target, each

MODES = {"cpu": ["--mode=cpu"], "cpu, wall": ["--mode=cpu", "--mode=wall"]}
NAME = re.compile(r".*-(\d+)ms-\d{8}\.pybpf")
LENGTH_S = 1  # asked for, of the epochs that are measured
CLOSE = 0.05  # share of that
CPU = Target(1, "<= 1 %")
MEMORY = Target(64, "<= 64 MiB")  # with that of maps
IN_TIME = Target(99, ">= 99 %", at_least=True)
BUSY = "while True: pass"


@contextlib.contextmanager
def agent(*arguments):
    """(its PID, the folder of its first mode) of an agent of all processes."""
    with tempfile.TemporaryDirectory() as folder:
        epochs = Path(folder, "epochs")
        argv = [harness.PYBPF, "agent", "--dir", str(epochs), "--fixed-epochs", *map(str, arguments)]
        with machine.watched(argv, folder) as process:
            yield process.process.pid, lambda: lengths_ms(epochs / "cpu" if "--mode=wall" in arguments else epochs)
            assert process.process.poll() is None, "pybpf ended: %s" % process.text().strip()[-300:]
            process.process.terminate()
            assert process.end(harness.PATIENCE), "pybpf did not end"


def lengths_ms(folder):
    """The lengths of the epochs that are written, in their order."""
    names = sorted(path.name for path in folder.glob("*.pybpf")) if folder.exists() else []
    return [int(NAME.fullmatch(name).group(1)) for name in names]


def taken_ns(pid):
    """CPU time of pybpf and of all its processes; one may end meanwhile."""
    total = 0
    for one in harness.process_names(pid):
        with contextlib.suppress(OSError):
            total += machine.cpu_ns(one)
    return total


def memory_kib(pid):
    """The memory of all its processes, without the rings of the kernel that they map; what several share counts once."""
    total = 0
    for one in harness.process_names(pid):
        with contextlib.suppress(OSError):
            mapping = ""
            for line in Path("/proc/%d/smaps" % one).read_text(encoding="utf-8", errors="surrogateescape").splitlines():
                if re.match("[0-9a-f]+-", line):
                    mapping = line
                elif line.startswith("Pss:") and not mapping.endswith("anon_inode:bpf-map"):
                    total += int(line.split()[1])
    return total


def wait_for_epoch(written, number):
    harness.wait_for(lambda: len(written()) >= number, timeout=2 * harness.PATIENCE, step=machine.POLL_S)


def beside_crowd(interpreter, crowd, mode, epoch_s):
    """Over the second epoch: in the first all processes are looked at."""
    lifetime = "CHURN_LIFETIME_S=%d" % (4 * epoch_s + harness.PATIENCE)
    argv = ["env", lifetime, *interpreter.command("many.py", str(crowd), "1", "0")]
    with processes.program(interpreter, "many.py", argv=argv) as running:
        with agent("--epoch", "%ds" % epoch_s, *MODES[mode]) as (pid, written):
            wait_for_epoch(written, 1)
            begin, before = time.monotonic(), taken_ns(pid)
            wait_for_epoch(written, 2)
            took_s, own_ns = time.monotonic() - begin, taken_ns(pid) - before
            result = {"cpu": own_ns / 1e7 / took_s, "memory": memory_kib(pid) / 1024, "maps": machine.bpf_maps_kib(pid) / 1024}
        processes.end(running)
    return result


def share_in_time(bench, busy):
    """Percent of the epochs that are as long as asked for, but for CLOSE; the last one has the end of the run."""
    with contextlib.ExitStack() as stack:
        for _ in range(busy):
            stack.enter_context(harness.started([sys.executable, "-c", BUSY], stdin=subprocess.DEVNULL))
        with agent("--epoch", "%ds" % LENGTH_S, *MODES["cpu, wall"]) as (_, written):
            wait_for_epoch(written, bench.plan.agent_epochs)
            found = written()
    close = [abs(ms - 1000 * LENGTH_S) <= 1000 * LENGTH_S * CLOSE for ms in found]
    return 100 * sum(close) / len(close)


def measure(bench):
    interpreters, cpus = bench.pythons(("default",)), os.cpu_count()
    loads = {"nothing": 0, "a busy loop for each CPU": cpus, "three busy loops for each CPU": 3 * cpus}
    results = defaultdict(list)
    for _ in bench.rounds("pybpf agent"):
        for interpreter in interpreters:
            for mode in MODES:
                what = "pybpf agent beside %d Pythons, %s" % (bench.plan.agent_crowd, mode)
                many = (interpreter, bench.plan.agent_crowd, mode, bench.plan.agent_epoch_s)
                results[interpreter, mode].append(bench.attempt(what, beside_crowd, *many))
                # Once, as it takes minutes.
                for number in (bench.plan.agent_few, bench.plan.agent_crowd):
                    if not results[interpreter, mode, number]:
                        long = (interpreter, number, mode, bench.plan.agent_minute_s)
                        what = "pybpf agent beside %d Pythons, epochs of a minute, %s" % (number, mode)
                        results[interpreter, mode, number].append(bench.attempt(what, beside_crowd, *long))
        for name, busy in loads.items():
            results[name].append(bench.attempt("lengths of epochs beside " + name, share_in_time, bench, busy))

    crowd = Section(
        "pybpf agent at 19 Hz beside %d idle Pythons, epochs of %d s" % (bench.plan.agent_crowd, bench.plan.agent_epoch_s),
        ["modes", "CPU of its processes, %", "their memory, MiB", "kernel maps, MiB", "both, MiB"],
    )
    for interpreter in interpreters:
        for mode in MODES:
            rounds = results[interpreter, mode]
            cpu, memory, maps = (each(rounds, lambda one, name=name: one[name]) for name in ("cpu", "memory", "maps"))
            both = each(rounds, lambda one: one["memory"] + one["maps"])
            crowd.add(mode, Figure(cpu, 2, CPU), Figure(memory, 1), Figure(maps, 1, spread=False), Figure(both, 1, MEMORY))
    crowd.notes.append("of one CPU, over an epoch and its end; other Pythons of the machine count as well")
    minutes = Section(
        "pybpf agent at 19 Hz beside idle Pythons, epochs of %d s" % bench.plan.agent_minute_s,
        ["modes", "Pythons", "CPU of its processes, %", "s per hour"],
    )
    for interpreter in interpreters:
        for mode in MODES:
            for number in (bench.plan.agent_few, bench.plan.agent_crowd):
                percent = each(results[interpreter, mode, number], lambda one: one["cpu"])
                seconds = each(results[interpreter, mode, number], lambda one: one["cpu"] / 100 * 3600)
                minutes.add(mode, number, Figure(percent, 2, CPU), Figure(seconds, 1))
    lengths = Section(
        "epochs of pybpf agent that take %d s as asked for, to within %d %%" % (LENGTH_S, 100 * CLOSE),
        ["beside", "share, %"],
    )
    for name in loads:
        lengths.add(name, Figure(results[name], 1, IN_TIME))
    lengths.notes.append("%d epochs in each round, with --mode=cpu --mode=wall of all processes" % bench.plan.agent_epochs)
    return [crowd, minutes, lengths]
