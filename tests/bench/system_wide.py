# SPDX-License-Identifier: Apache-2.0
"""What `pybpf --all` costs: where nothing happens, with a crowd of Pythons, and for each process that starts."""

import os
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict

import harness
import machine
import processes
from figures import Figure, Section, Target, each

RATE = 99
SETTLE_S = 1
AFTER_S = 2.5  # in which what ended processes left is taken
WORK_MS = "5"
IDLE = Target(0.5, "<= 0.5 %")
CROWD = Target(1, "<= 1 %")
COPIED = ("-E", "-S")  # a copy of an interpreter finds its library by what was compiled into it


def kernel_ns(pid):
    """CPU time of all runs of a process's BPF programs."""
    programs = {words["prog_id"]: int(words["run_time_ns"]) for words in harness.fdinfo(pid) if "run_time_ns" in words}
    return sum(programs.values())


def meanwhile(work):
    """What work() takes of pybpf --all, and of its programs in the kernel."""
    argv = [harness.PYBPF, "--all", "--merge", "-F", str(RATE), "-o", "profile.folded", "-q"]
    argv += ["--json-stats", "stats.json"]  # has the kernel measure its programs
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, machine.watched(argv, folder) as process:
        pid = process.process.pid
        harness.wait_for(lambda: process.end(0) or processes.is_sampling(pid), step=machine.POLL_S)
        started_ms = 1000 * (time.monotonic() - start)
        assert process.process.poll() is None, "pybpf ended: %s" % process.text().strip()[-300:]
        time.sleep(SETTLE_S)
        before = time.monotonic(), machine.cpu_ns(pid), kernel_ns(pid)
        done = work()
        after = time.monotonic(), machine.cpu_ns(pid), kernel_ns(pid)
        process.look_at_memory()
        maps_kib = machine.bpf_maps_kib(pid)
        process.process.terminate()
        assert process.end(harness.PATIENCE), "pybpf did not end"
    took_s, own_ns, programs_ns = (end - begin for begin, end in zip(before, after))
    return {
        "done": done,
        "own": own_ns / 1e7 / took_s,
        "programs": programs_ns / 1e7 / took_s,
        "own_us": own_ns / 1e3 / done if done else None,
        "programs_us": programs_ns / 1e3 / done if done else None,
        "start": started_ms,
        "peak": process.peak_kib / 1024,
        "maps": maps_kib / 1024,
    }


def crowd(bench, interpreter, count):
    def work():
        time.sleep(bench.plan.idle_s)
        return 0

    if not count:
        return meanwhile(work)
    argv = interpreter.command("many.py", str(count), "1", "0")
    with processes.program(interpreter, "many.py", argv=argv) as running:
        result = meanwhile(work)
        processes.end(running)
    return result


def until_taken(start):
    """The children of a program of tests/targets/churn.py, once pybpf has had the time to take what they left."""
    with start as running:
        number = len(processes.end(running)["children"])
    time.sleep(AFTER_S)
    return number


def forked(bench, interpreter):
    count = bench.plan.starts
    argv = ("forks.py", count, 100, WORK_MS)
    return meanwhile(lambda: until_taken(processes.program(interpreter, *argv)))


def executed(bench, interpreter):
    script = interpreter.command("short.py", WORK_MS)
    argv = ("scripts.py", bench.plan.starts, 1, *script)
    return meanwhile(lambda: until_taken(processes.program(interpreter, *argv)))


def unknown(bench, interpreter):
    """Each start is of a program that has never been looked at."""
    script = interpreter.command("short.py", WORK_MS)[len(interpreter.argv) :]
    with tempfile.TemporaryDirectory() as folder:
        copies = [os.path.join(folder, "python-%d" % number) for number in range(bench.plan.copies)]
        for copy in copies:
            shutil.copy(os.path.realpath(interpreter.argv[0]), copy)

        def work():
            for copy in copies:
                subprocess.run([copy, *COPIED, *script], stdout=subprocess.DEVNULL, check=True)
            time.sleep(AFTER_S)
            return len(copies)

        return meanwhile(work)


STARTS = {
    "forked by a Python": forked,
    "a program that is known, from exec on": executed,
    "a program that was never looked at": unknown,
}


def measure(bench):
    interpreters = bench.pythons(("default",))
    results = defaultdict(list)
    for _ in bench.rounds("pybpf --all"):
        for interpreter in interpreters:
            for count in 0, bench.plan.crowd:
                what = "pybpf --all with %d idle Pythons" % count
                results[interpreter, count].append(bench.attempt(what, crowd, bench, interpreter, count))
            for name, start in STARTS.items():
                what = "pybpf --all, %s" % name
                results[interpreter, name].append(bench.attempt(what, start, bench, interpreter))

    def figure(key, name, *more, **options):
        return Figure(each(results[key], lambda one: one[name]), *more, **options)

    idle = Section(
        "pybpf --all at %d Hz while nothing happens" % RATE,
        ["idle Pythons", "pybpf's CPU, %", "its programs' CPU, %", "start, ms", "peak MiB", "kernel maps, MiB"],
    )
    new = Section(
        "what a new process costs pybpf --all at %d Hz, in microseconds" % RATE,
        ["process", "number", "Python", "pybpf itself, us", "its programs, us"],
    )
    for interpreter in interpreters:
        for count in 0, bench.plan.crowd:
            key = interpreter, count
            idle.add(
                count,
                figure(key, "own", 2, CROWD if count else IDLE),
                figure(key, "programs", 3),
                figure(key, "start", 0),
                figure(key, "peak", 1),
                figure(key, "maps", 1, spread=False),
            )
        for name in STARTS:
            key = interpreter, name
            new.add(
                name,
                figure(key, "done", 0, spread=False),
                interpreter.name,
                figure(key, "own_us", 0),
                figure(key, "programs_us", 1),
            )
    idle.notes.append("of one CPU; other Pythons of the machine count as well")
    new.notes.append(
        "each takes some %s ms; with its samples, names and stacks, and %.1f s after the last" % (WORK_MS, AFTER_S)
    )
    return [idle, new]
