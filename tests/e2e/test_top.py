# SPDX-License-Identifier: Apache-2.0
"""pybpf top: lines of JSON against known programs, and the view in a terminal."""

import collections
import contextlib
import functools
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import time

import pytest

import harness
import pythons
from harness import cpu_s, pybpf

SHARES = pythons.TARGETS / "shares.py"

every_version = pytest.mark.parametrize("python", pythons.of_each_version(pythons.interpreters()), ids=lambda item: item.name)


def watch(*args, code=0):
    """The lines, one of each interval, and the last one, of what came after it."""
    run = pybpf("top", "--output", "jsonl", *args)
    assert run.code == code, run
    return [json.loads(line) for line in run.out.splitlines()], run.err


def by_name(rows):
    return {row["name"].rsplit(".", 1)[-1]: row for row in rows}


@contextlib.contextmanager
def watching(pid, *args):
    """pybpf top, and what reads a line of it. It is interrupted at the end."""
    command = [harness.PYBPF, "top", "--output", "jsonl", "-p", str(pid), *map(str, args)]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    with harness.started(command, bufsize=0, **streams) as watcher:
        yield watcher, lambda: json.loads(watcher.stdout.readline())


def watch_until(holds, pid, *args):
    """The lines until one of which that holds, and the last one, of what came after it."""
    with watching(pid, *args) as (watcher, read):
        lines = [read()]
        while not holds(lines[-1]):
            lines.append(read())
        watcher.send_signal(signal.SIGINT)
        out, err = watcher.communicate(timeout=harness.PATIENCE)
    assert watcher.returncode == 0 and not err, err
    return lines + [json.loads(line) for line in out.splitlines()]


@functools.lru_cache(maxsize=None)
def lines_of_shares(python):
    """Lines of tests/targets/shares.py until it was met often enough, and the CPU time that it took meanwhile."""
    with harness.target(python, "shares.py") as target:
        before = cpu_s(target.pid)
        lines = watch_until(
            lambda line: line["interval"] >= 3 and by_name(line["functions"]).get("work", {"all_total": 0})["all_total"] > 400,
            target.pid, "-i", 0.4, "-F", 499, "--rows", 1000,
        )
        return lines, cpu_s(target.pid) - before


DUMPS = """
import json
def exports():
    while True:
        json.dumps([{'a': str(i)} for i in range(500)], indent=1)
exports()
"""


def test_libraries_and_the_programs_own(tmp_path):
    """A function of json is shown with that of the program which called it; with --own it is left out."""
    program = tmp_path / "dumps.py"
    program.write_text(DUMPS)
    with harness.started([*harness.default_python().argv, str(program)]) as target:
        lines = watch_until(lambda line: line["all"]["samples"] > 50, target.pid, "-i", 0.5, "-F", 499)
        rows = [row for line in lines for row in line["functions"] if row["all_self"]]
        libraries = [row for row in rows if (row["file"] or "").startswith("json/")]
        assert libraries and all(row["from"] == {"name": "exports", "file": "dumps.py"} for row in libraries), libraries
        assert all(row["from"] is None for row in rows if row["file"] == "dumps.py" and row["name"] == "exports")
        lines = watch_until(lambda line: line["all"]["samples"] > 50, target.pid, "-i", 0.5, "-F", 499, "--own")
        files = {row["file"] for line in lines for row in line["functions"]}
        assert files <= {"dumps.py", None} and "dumps.py" in files
        assert lines[-1]["all"]["samples"] == sum(row["all_self"] for row in lines[-1]["functions"])


@every_version
def test_expressions(python):
    """Shows the call in large()'s line; from Python 3.11 on with its columns. Lines are as without the option."""
    with harness.target(python, "shares.py") as target:
        lines = watch_until(lambda line: line["all"]["samples"] > 50, target.pid, "-i", 0.5, "-F", 499, "--by=expression")
        without = watch_until(lambda line: line["all"]["samples"] > 5, target.pid, "-i", 0.5, "-F", 499)
    columns = {"end_line", "column", "end_column"}
    assert all("expressions" not in line for line in without)
    assert not any(columns & set(row) for line in lines + without for row in line["functions"] + line["lines"])
    source = SHARES.read_text().splitlines()
    rows = [row for row in lines[-1]["expressions"] if row["file"] == "shares.py" and row["name"].endswith("large")]
    assert rows and all(row["kind"] == "python" and row["first_line"] + 1 == row["line"] for row in rows), rows
    if python.version >= (3, 11):
        met = [row for row in rows if columns <= set(row)]
        texts = [source[row["line"] - 1][row["column"]:row["end_column"]] for row in met if row["line"] == row["end_line"]]
        assert "spin(0.06)" in texts, rows
    else:
        assert not any(columns & set(row) for row in rows), rows
    assert sum(row["all_self"] for row in lines[-1]["expressions"]) == sum(row["all_self"] for row in lines[-1]["lines"])


def thread_states(lines):
    """Seconds in the states and for the causes by TID, of all these lines: what one begins in one and ends in another."""
    found = collections.defaultdict(collections.Counter)
    for line in lines:
        for row in line["threads"]:
            states = row["states"] or {"causes": {}}
            found[row["tid"]].update({name: value for name, value in states.items() if name != "causes"})
            found[row["tid"]].update(states["causes"])
    return found


def seconds_of(lines):
    return sum(line["last"]["duration_s"] for line in lines)


def all_states(states):
    return states["running_s"] + states["waiting_for_cpu_s"] + states["asleep_s"]


@every_version
def test_shares_of_a_known_program(python):
    """Functions have their shares of all samples, and every sum is that of its parts."""
    lines, _ = lines_of_shares(python)
    assert [line["interval"] for line in lines] == list(range(1, len(lines) + 1))
    last = lines[-1]  # of no interval, or a short one; but it has the sums of all
    functions = by_name(last["functions"])
    total = functions["work"]["all_total"]
    assert functions["large"]["all_total"] / total == pytest.approx(0.75, abs=0.08)
    assert functions["small"]["all_total"] / total == pytest.approx(0.25, abs=0.08)
    for line in lines:
        sums = line["last"]
        for table in "functions", "lines":
            assert sum(row["self"] for row in line[table]) <= sums["samples"]
            assert all(row["self"] <= row["total"] <= sums["samples"] for row in line[table])
        assert sum(row["self"] for row in line["functions"]) == sums["samples"]
        for table in "threads", "processes":
            assert sum(row["total"] for row in line[table]) == sums["samples"]
        assert sums["asked"] - sums["lost"] == pytest.approx(sums["samples"], abs=3)
    for name in "samples", "asked", "lost":
        assert sum(line["last"][name] for line in lines) == last["all"][name]
    assert last["all"]["duration_s"] == pytest.approx(seconds_of(lines), rel=1e-3)
    states = [all_states(line["last"]["states"]) for line in lines if line["last"]["states"]]
    assert sum(states) == pytest.approx(2 * seconds_of(lines), rel=0.1)


def test_threads_have_their_states():
    lines, took_s = lines_of_shares(harness.default_python())
    spins, rests = sorted(thread_states(lines).values(), key=lambda states: -states["running_s"])
    for states in spins, rests:
        assert all_states(states) == pytest.approx(seconds_of(lines), rel=0.1)
    assert rests["asleep_s"] > 0.98 * all_states(rests) and spins["asleep_s"] < 0.1 * all_states(spins)
    # By its own clock; it ran before and after, too.
    assert 0 < spins["running_s"] + rests["running_s"] <= took_s


@every_version
def test_threads_and_what_they_wait_for(python):
    """Each thread's time is that of its state, and all states together are the run."""
    with harness.target(python, "all_states.py") as target:
        lines, err = watch("-p", target.pid, "-d", 1.6, "-i", 0.4)
    assert not err
    lines = lines[1:]  # in the first one not every thread has its name
    duration = seconds_of(lines)
    for line in lines:
        for row in filter(lambda row: row["states"], line["threads"]):
            assert row["states"]["asleep_s"] == pytest.approx(sum(row["states"]["causes"].values()), abs=1e-6)
    names = {row["tid"]: row["name"] for row in lines[-1]["threads"]}
    threads = {names[tid]: states for tid, states in thread_states(lines).items()}
    for name, states in threads.items():
        assert all_states(states) == pytest.approx(duration, rel=0.1), (name, states, duration)
    for name in "lock", "network", "pipe", "poll", "child", "sleep":
        assert threads[name][name] > 0.98 * all_states(threads[name]), (name, threads)
    spins = threads["spin-1"] + threads["spin-2"]
    # A stripped 3.6 does not say where its GIL is.
    gil = "lock" if python.kind == "stripped" and python.version[:2] == (3, 6) else "GIL"
    if python.kind == "free-threaded":
        assert spins[gil] == 0 and spins["asleep_s"] < 0.1 * duration
    else:
        # Of two threads one has the GIL, also while it waits for a CPU, and the other one waits for it or for a CPU.
        assert 0 < spins["running_s"] <= 1.1 * duration, threads
        assert spins[gil] >= 0.9 * spins["asleep_s"], threads
        # 2.7 is on one CPU: a thread that could have the GIL waits for the CPU.
        assert spins[gil] or python.version[0] == 2, threads
    whole = sum((collections.Counter(line["last"]["states"]["causes"]) for line in lines if line["last"]["states"]), collections.Counter())
    assert whole["sleep"] == pytest.approx(2 * duration, rel=0.1)
    assert whole[gil] >= spins[gil] - 1e-6


def test_without_wait_states():
    """As on a kernel that cannot measure them: threads are asleep, whatever for."""
    for option in ("--no-wait-states",), ("--without-kernel-feature", "bpf_loop"):
        with harness.target(harness.default_python(), "all_states.py") as target:
            lines, err = watch("-p", target.pid, "-d", 0.8, "-i", 0.4, *option)
        assert not err
        assert not any((row["states"] or {}).get("causes") for line in lines for row in line["threads"])
        *asleep, spins, _ = sorted(thread_states(lines).values(), key=lambda states: -states["asleep_s"])
        assert all(states["asleep_s"] > 0.98 * all_states(states) for states in asleep) and len(asleep) == 7
        assert spins["running_s"] > 0


def test_a_long_interval_loses_nothing():
    """More stacks than the kernel's table has room for come in one interval."""
    with harness.target(harness.default_python(), "many_stacks.py") as target:
        lines, _ = watch("-p", target.pid, "-d", 14, "-i", 12, "-F", 4999)
    first = lines[0]["last"]
    assert first["duration_s"] > 11
    if first["samples"] < 40000:
        pytest.skip("the machine is too busy for more stacks than the table of 32,768: %d" % first["samples"])
    assert lines[-1]["all"]["lost"] <= 0.01 * lines[-1]["all"]["asked"]


def test_change_is_told_only_beyond_chance():
    """A program that begins to spin grows. What chance is, tests/unit/top has."""
    with harness.target(harness.default_python(), "shares.py") as target:
        with watching(target.pid, "-i", 0.5) as (_, read):
            def grows():
                """At once, or never: where others have the CPUs it may have too little of them at first."""
                os.kill(target.pid, signal.SIGSTOP)
                harness.wait_for(lambda: not read()["functions"])
                assert not read()["functions"]
                os.kill(target.pid, signal.SIGCONT)
                grew = [by_name(row for row in read()["functions"] if row["change"] == "grew") for _ in range(6)]
                return any("work" in rows for rows in grew)

            harness.wait_for(grows)


def test_a_process_that_ends():
    with harness.target(harness.default_python(), "shares.py") as target:
        with watching(target.pid) as (watcher, read):
            read()
            os.kill(target.pid, signal.SIGKILL)
            out, err = watcher.communicate(timeout=harness.PATIENCE)
    assert watcher.returncode == 0
    assert json.loads(out.splitlines()[-1])["last"]["threads"] == 0
    assert err.decode() == "pybpf: process %d ended, or stopped\n" % target.pid


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_ends_it_with_a_last_line(name):
    with harness.target(harness.default_python(), "shares.py") as target:
        with watching(target.pid) as (watcher, read):
            read()
            watcher.send_signal(getattr(signal, "SIG" + name))
            out, err = watcher.communicate(timeout=harness.PATIENCE)
    assert watcher.returncode == 0 and not err
    assert json.loads(out.splitlines()[-1])["interval"] >= 2


def test_bad_input():
    for args, sentence in [
        ((), "which process"),
        (("-p", "1", "-i", "0"), "not a time from 0.1"),
        (("-p", "1", "--rows", "0"), "--rows"),
        (("-p", "1", "--by=expression", "-o", "x.pstats"), "has no place for expressions"),
        (("-p", "1", "x"), "takes no argument"),
        (("6311",), "`pybpf top -p 6311`"),
    ]:
        run = pybpf("top", *args)
        assert run.code == 2 and sentence in run.err and run.err.count("\n") == 1, run
    with harness.target(harness.default_python(), "shares.py") as target:
        run = pybpf("top", "-p", target.pid)
        assert run.code == 1 and "--output=jsonl" in run.err and run.err.count("\n") == 1, run
        full = subprocess.run(
            "%s top -p %d --output jsonl -i 0.1 -d 1 > /dev/full" % (shlex.quote(harness.PYBPF), target.pid),
            shell=True, stderr=subprocess.PIPE, timeout=harness.PATIENCE,
        )
        assert full.returncode == 1 and full.stderr.count(b"\n") == 1 and b"No space left" in full.stderr


class Tmux:
    """A terminal of tmux with a shell's command in it."""

    def __init__(self, socket, command, columns=100, lines=24, environment=""):
        self.socket = socket
        self.tmux("new-session", "-d", "-x", columns, "-y", lines, "-s", "t", "%s %s; echo exit $?; stty -a; exec sleep 1000" % (environment, command))

    def tmux(self, *args):
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self.socket, *map(str, args)],
            stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C.UTF-8"}, timeout=harness.PATIENCE, check=True,
        )
        return done.stdout.decode()

    def keys(self, *keys):
        self.tmux("send-keys", "-t", "t", *keys)

    def screen(self):
        return self.tmux("capture-pane", "-p", "-t", "t").split("\n")[:-1]

    def until(self, what, patience=harness.PATIENCE):
        """The screen's lines when what(lines) holds."""
        end = time.monotonic() + patience
        while True:
            lines = self.screen()
            if what(lines):
                return lines
            assert time.monotonic() < end, "\n".join(lines)
            time.sleep(0.05)


@contextlib.contextmanager
def terminal(*args, **options):
    with tempfile.TemporaryDirectory() as folder:
        command = " ".join(shlex.quote(str(word)) for word in (harness.PYBPF, "top", *args))
        screen = Tmux(os.path.join(folder, "tmux"), command, **options)
        try:
            yield screen
        finally:
            screen.tmux("kill-server")


def shows(text, at=None):
    def holds(lines):
        return any(text in line for line in (lines if at is None else lines[at:at + 1]))
    return holds


@pytest.fixture
def busy():
    with harness.target(harness.default_python(), "shares.py") as target:
        yield target


def test_keys(busy):
    with terminal("-p", busy.pid, "-i", "0.3") as screen:
        lines = screen.until(shows("large (shares.py"))
        assert lines[0].startswith("pybpf top: process %d" % busy.pid)
        assert "functions, by self" in lines[3]
        screen.keys("s")
        screen.until(shows("functions, by total", at=3))
        screen.keys("Tab")
        screen.until(shows("lines, by total", at=3))
        screen.keys("3")
        screen.until(shows("threads", at=3))
        screen.until(lambda lines: (shows("##")(lines) or shows("!!")(lines)) and shows("zzzz")(lines))
        screen.keys("4")
        screen.until(shows("processes", at=3))
        screen.keys("5", "Enter", "End", "PPage", "Enter")
        lines = screen.until(shows("containers", at=3))
        assert lines[4].startswith("no sample was in a container")
        screen.keys("1", "/")
        screen.until(shows("show only rows with: _"))
        screen.keys("SMALL", "Enter")
        lines = screen.until(lambda lines: shows("small (")(lines) and not shows("large (")(lines))
        assert "/ filter (SMALL)" in lines[-1]
        screen.keys("Enter")
        lines = screen.until(shows("with small", at=3))
        assert [line.split(" (")[0].strip() for line in lines[5:8]] == ["<module>", "work", "small"]
        screen.keys("Escape")
        screen.until(shows("functions", at=3))
        screen.keys("?")
        screen.until(shows("in 1,000 rows"))
        screen.keys("BSpace", "/", "Escape")
        screen.until(shows("large ("))
        screen.keys("Space")
        frozen = screen.until(shows("[frozen]", at=0))
        time.sleep(1)
        assert screen.screen()[1:] == frozen[1:]
        screen.keys("f")
        lines = screen.until(shows("self: all", at=3))
        assert int(lines[3].split()[1]) == pytest.approx(int(frozen[0].split(" s ")[0].split()[-1]), abs=1)
        screen.keys("Escape")
        screen.until(shows("functions", at=3))
        screen.keys("Space")
        screen.until(lambda lines: lines[1] != frozen[1])
        screen.keys("Home", "Down", "q")
        screen.until(shows("exit 0"))


def stacks_shown(lines):
    """The stacks of the page, each as its share and its functions with their lines."""
    stacks = []
    for line in lines[4:-1]:
        if line.rstrip().endswith("%"):
            stacks.append((float(line.split(", ")[1].split()[0]), []))
        elif line.strip() and stacks:
            stacks[-1][1].append(line.strip())
    return stacks


def test_stacks_of_each_table(busy):
    """Enter shows the stacks of a line, a thread and a process; those without a source have none."""
    with terminal("-p", busy.pid, "-i", "0.3", lines=60) as screen:
        screen.until(lambda lines: shows("large (shares.py")(lines) and int(lines[1].split("all: ")[1].split()[0]) > 100)
        number = next(i for i, line in enumerate(SHARES.read_text().split("\n"), 1) if line.strip() == "spin(0.02)")
        screen.keys("2", "/")
        screen.until(shows("show only rows with: _"))
        screen.keys("small", "Enter", "Enter")
        lines = screen.until(shows("with line %d of small" % number, at=3))
        stacks = stacks_shown(lines)
        assert stacks and all("small (shares.py:%d)" % number in stack for _, stack in stacks)
        screen.keys("Escape", "/", "Escape", "3")
        screen.until(shows("threads", at=3))
        screen.keys("Enter")
        lines = screen.until(shows("of thread ", at=3))
        assert " %d, the most frequent first" % busy.pid in lines[3]
        threads = stacks_shown(lines)
        assert len({tuple(stack) for _, stack in threads}) == len(threads) > 1
        assert {stack[2].split(" (")[0] for _, stack in threads} == {"large", "small"}
        assert sum(share for share, _ in threads) == pytest.approx(100, abs=2)
        screen.keys("Enter")
        time.sleep(0.5)
        assert "of thread" in screen.screen()[3] and "source" not in screen.screen()[-1]
        screen.keys("Escape")
        screen.until(shows("threads", at=3))
        screen.keys("Down", "Enter")
        screen.until(shows("no samples: it was not on a CPU"))
        screen.keys("4")
        screen.until(shows("processes", at=3))
        screen.keys("Enter")
        lines = screen.until(lambda lines: "of process" in lines[3] and shows("large (shares.py")(lines))
        assert " %d, the most frequent first" % busy.pid in lines[3]


def test_threads_with_one_stack_have_one_entry():
    """What two threads do alike is added up."""
    with harness.target(harness.default_python(), "all_states.py") as target, terminal("-p", target.pid, "-i", "0.3", lines=40) as screen:
        screen.until(lambda lines: shows("spin (all_states.py")(lines) and int(lines[1].split("all: ")[1].split()[0]) > 60)
        screen.keys("/")
        screen.until(shows("show only rows with: _"))
        screen.keys("spin", "Enter", "Enter")
        stacks = [stack for _, stack in stacks_shown(screen.until(shows("with spin", at=3)))]
        assert len(stacks) == len({tuple(stack) for stack in stacks})


def test_expressions_on_the_screen(busy, tmp_path):
    """Its table comes first; the source page marks the expression of the row; the profile has the columns."""
    out = tmp_path / "out.folded"
    with terminal("-p", busy.pid, "-i", "0.3", "--by=expression", "-o", out, lines=60) as screen:
        screen.until(shows("large (shares.py"))
        screen.keys("/")
        screen.until(shows("show only rows with: _"))
        screen.keys("large", "Enter")
        screen.until(lambda lines: shows("expressions, by self", at=3)(lines) and shows("large (shares.py:21:5-14)", at=4)(lines))
        screen.keys("Enter")
        screen.until(lambda lines: shows("with 21:5-14 in large", at=3)(lines) and shows("  large (shares.py:21:5-14)")(lines))
        screen.keys("Enter")
        screen.until(shows("since the start, shares.py", at=3))
        screen.until(lambda lines: "\x1b[1;7mspin(0.06)" in re.sub(r"\x1b\[39m", "", screen.tmux("capture-pane", "-e", "-p", "-t", "t")))
        screen.keys("q")
        screen.until(shows("exit 0"))
    assert "large (shares.py:21:5-14)" in out.read_text()
    with terminal("-p", busy.pid, "-i", "0.3") as screen:
        screen.until(shows("large (shares.py"))
        screen.keys("6")
        screen.until(lambda lines: shows("expressions", at=3)(lines) and shows("`pybpf top --by=expression` has them", at=4)(lines))
        screen.keys("5", "Tab")
        screen.until(shows("functions, by self", at=3))


def test_flame_graph(busy):
    """Cells are as wide as their share; the heading tells the one at the cursor; Enter zooms in and Escape out."""
    with terminal("-p", busy.pid, "-i", "0.3", columns=101) as screen:
        screen.until(lambda lines: shows("large (shares.py")(lines) and int(lines[1].split("all: ")[1].split()[0]) > 150)
        screen.keys("f")
        lines = screen.until(lambda lines: "self: all" in lines[3] and shows("|small")(lines))
        assert [line.strip() for line in lines[4:7]] == ["all", "<module> shares.py", "work"]
        row = next(line for line in lines if "|small" in line)
        assert row.lstrip().startswith("large") and row.index("|small") == pytest.approx(0.75 * 101, abs=12)
        assert lines[lines.index(row) + 1].count("spin") == 2
        for name in "<module>", "work", "large":
            screen.keys("Down")
            lines = screen.until(shows("self: %s (shares.py)" % name, at=3))
        assert float(lines[3].split(": ")[1].split()[0]) == pytest.approx(75, abs=12)
        screen.keys("Right")
        lines = screen.until(shows("self: small (shares.py)", at=3))
        assert float(lines[3].split(": ")[1].split()[0]) == pytest.approx(25, abs=12)
        screen.keys("Enter")
        lines = screen.until(lambda lines: not shows("large")(lines))
        assert [line.strip() for line in lines[4:9]] == ["all", "<module> shares.py", "work", "small", "spin"]
        screen.keys("Up", "Escape")
        screen.until(lambda lines: shows("large")(lines) and "self: work" in lines[3])
        screen.keys("Escape")
        screen.until(shows("functions", at=3))


def test_source_with_the_time_of_each_line(busy):
    with terminal("-p", busy.pid, "-i", "0.3", lines=60) as screen:
        screen.until(lambda lines: shows("large (shares.py")(lines) and int(lines[1].split("all: ")[1].split()[0]) > 150)
        screen.keys("/")
        screen.until(shows("show only rows with: _"))
        screen.keys("large", "Enter", "Enter", "Enter")
        lines = screen.until(shows("since the start, shares.py", at=3))
        source = SHARES.read_text().split("\n")
        heat = {}
        for line in filter(str.strip, lines[4:-1]):
            number, text = int(line[29:34]), line[36:]
            assert text == source[number - 1][:100 - 36].rstrip()
            if line[:19].strip():
                heat[source[number - 1].strip()] = [float(field) for field in line[:19].split()]
        large, small = heat["spin(0.06)"], heat["spin(0.02)"]
        assert large[0] == 0 and large[1] / (large[1] + small[1]) == pytest.approx(0.75, abs=0.12)
        inner = heat["for _ in range(200):"], heat["while cpu_time() < end:"], heat.get("pass", [0, 0])
        assert sum(line[0] for line in inner) == pytest.approx(large[1] + small[1], abs=0.05)


def test_a_source_that_changed_is_not_shown(tmp_path):
    script = tmp_path / "changes.py"
    script.write_text(SHARES.read_text())
    with harness.target(harness.default_python(), script) as target:
        time.sleep(0.1)  # a change at the process's start is not told from one before it
        script.write_text("# another\n" * 40)
        with terminal("-p", target.pid, "-i", "0.3", lines=50) as screen:
            screen.until(shows("large (changes.py"))
            screen.keys("Enter", "Enter")
            lines = screen.until(shows("its text is not shown"))
            assert not shows("another")(lines)
            heat = {int(line.split()[3]): line.split() for line in lines[5:-1] if line.strip()}
            called = next(i for i, line in enumerate(SHARES.read_text().split("\n"), 1) if line.strip() == "work()")
            assert {16, called} <= set(heat) and heat[called][0] == "0.00" and heat[called][2] == "########"


def folded(path):
    run = pybpf("report", "-f", "folded", path)
    assert run.code == 0, run
    return {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in run.out.splitlines()}


def test_profiles_written_meanwhile(busy, tmp_path):
    """Each w writes all samples until then to a file of its own; without a folder to write to, it says so."""
    with terminal("-p", busy.pid, "-i", "0.3", environment="cd %s;" % shlex.quote(str(tmp_path))) as screen:
        totals = []
        for _ in range(3):
            before = screen.until(shows("large (shares.py"))[1]
            screen.until(lambda lines: lines[1] != before)
            screen.keys("w")
            lines = screen.until(shows("wrote pybpf-top-"))
            totals.append(int(lines[-1].split()[-2]))
            screen.keys("1")
            screen.until(shows("? help"))
        assert len(os.listdir(tmp_path)) == 3
        screen.keys("q")
        screen.until(shows("exit 0"))
    written = sorted(os.listdir(tmp_path), key=lambda name: os.stat(tmp_path / name).st_mtime_ns)
    assert [name.count("-") for name in written] == [3, 4, 4] and [name[-7:-6] for name in written[1:]] == ["2", "3"]
    for name, total in zip(written, totals):
        stacks = folded(tmp_path / name)
        assert sum(stacks.values()) == total
        assert all(";work" in stack for stack in stacks)
        account = pybpf("report", tmp_path / name).err
        assert "%d samples here" % total in account and "99 Hz" in account
    assert totals == sorted(totals) and totals[0] < totals[2]


@pytest.mark.parametrize("way", [(), ("--output", "jsonl")])
def test_a_profile_at_the_end(busy, tmp_path, way):
    path = tmp_path / "live.pybpf"
    if way:
        lines, _ = watch("-p", busy.pid, "-d", 1, "-o", path)
        total = lines[-1]["all"]["samples"]
    else:
        with terminal("-p", busy.pid, "-d", 1, "-o", path) as screen:
            screen.until(shows("exit 0"))
        total = None
    assert os.listdir(tmp_path) == ["live.pybpf"] and os.stat(path).st_mode & 0o777 == 0o600
    stacks = folded(path)
    assert sum(stacks.values()) == (total or sum(stacks.values())) > 0
    err = pybpf("report", path).err
    assert "asked: %d " % sum(stacks.values()) in err and "lost" not in err


def test_places_that_cannot_be_written(busy, tmp_path):
    for path, code, sentence in [
        (tmp_path / "x.foo", 2, "no format has that suffix"),
        (tmp_path / "none" / "x.html", 1, "No such file or directory"),
        ("/dev/null", 1, "it is no file"),
    ]:
        run = pybpf("top", "-p", busy.pid, "--output", "jsonl", "-d", 1, "-o", path)
        assert run.code == code and sentence in run.err and run.err.count("\n") == 1, run
        assert not run.out
    gone = tmp_path / "gone"
    gone.mkdir()
    with terminal("-p", busy.pid, "-i", "0.3", environment="cd %s; rmdir ../gone;" % shlex.quote(str(gone))) as screen:
        screen.until(shows("large ("))
        screen.keys("w")
        screen.until(shows("cannot write to pybpf-top-"))
        screen.keys("q")
        screen.until(shows("exit 0"))


def test_sizes(busy):
    with terminal("-p", busy.pid, "-i", "0.3", columns=80, lines=24) as screen:
        screen.until(shows("large ("))
        for columns, rows in (200, 50), (300, 60), (80, 24), (41, 9):
            screen.tmux("resize-window", "-t", "t", "-x", columns, "-y", rows)
            lines = screen.until(lambda lines: len(lines) == rows and "? help" in lines[-1] and "pybpf top" in lines[0])
            assert all(len(line) <= columns for line in lines)
        screen.tmux("resize-window", "-t", "t", "-x", 39, "-y", 9)
        screen.until(shows("too small: 40 x 8 are needed"))
        screen.tmux("resize-window", "-t", "t", "-x", 80, "-y", 24)
        screen.until(shows("large ("))
        screen.keys("Space")
        screen.until(shows("[frozen]", at=0))
        for columns, rows in (100, 30), (60, 10), (80, 24):
            screen.tmux("resize-window", "-t", "t", "-x", columns, "-y", rows)
            screen.until(lambda lines: len(lines) == rows and "? help" in lines[-1] and "[frozen]" in lines[0], patience=10)


@pytest.mark.parametrize("end", ["q", "C-c", "TERM", "target"])
def test_the_terminal_is_given_back(busy, end):
    with tempfile.TemporaryDirectory() as folder:
        probe = Tmux(os.path.join(folder, "tmux"), "true")
        # The last word of what stty prints.
        before = probe.until(shows("extproc"))
        probe.tmux("kill-server")
    with terminal("-p", busy.pid, "-i", "0.3") as screen:
        screen.until(shows("large ("))
        if end == "target":
            os.kill(busy.pid, signal.SIGKILL)
        elif end == "TERM":
            pane = screen.tmux("list-panes", "-t", "t", "-F", "#{pane_pid}").strip()
            (top,) = subprocess.check_output(["pgrep", "-P", pane, "-x", "pybpf"]).split()
            os.kill(int(top), signal.SIGTERM)
        else:
            screen.keys(end)
        lines = screen.until(lambda lines: shows("exit 0")(lines) and shows("extproc")(lines))
    settings = [line for line in lines if line and "exit" not in line and not line.startswith("pybpf:")]
    assert settings == [line for line in before if line and "exit" not in line]
    assert any("ended, or stopped" in line for line in lines) == (end == "target")


def test_stopped_by_ctrl_z_and_continued(busy):
    """The shell has its terminal meanwhile; without a shell that could continue it, top goes on."""
    with terminal("-p", busy.pid, "-i", "0.3") as screen:
        screen.until(shows("large ("))
        screen.keys("C-z")
        before = screen.screen()[0]
        screen.until(lambda lines: lines[0] != before and "pybpf top" in lines[0])
    with tempfile.TemporaryDirectory() as folder:
        screen = Tmux(os.path.join(folder, "tmux"), "exec env PS1='$ ' bash --norc --noprofile -i")
        try:
            screen.keys("%s top -p %d -i 0.3" % (shlex.quote(harness.PYBPF), busy.pid), "Enter")
            for _ in range(2):
                screen.until(shows("large ("))
                screen.keys("C-z")
                screen.until(shows("Stopped"))
                screen.keys("stty -a", "Enter")
                screen.until(lambda lines: shows(" echo ")(lines) and shows("susp = ^Z")(lines))
                screen.keys("fg", "Enter")
            screen.until(lambda lines: lines[0].startswith("pybpf top") and shows("large (")(lines))
            screen.keys("q")
            screen.until(shows("$ fg"))
        finally:
            screen.tmux("kill-server")


@pytest.mark.parametrize("environment", ["LC_ALL=C", "TERM=vt100", "TERM=xterm-256color", "TERM=linux LC_ALL=C.UTF-8"])
def test_terminals_and_locales(busy, environment):
    with terminal("-p", busy.pid, "-i", "0.3", environment="env " + environment) as screen:
        lines = screen.until(shows("large ("))
        assert "functions, by self" in lines[3]
        screen.keys("q")
        screen.until(shows("exit 0"))


@pytest.mark.parametrize("environment, grew, shrank", [("LC_ALL=C.UTF-8", "\u2191", "\u2193"), ("LC_ALL=C", "+", "-")])
def test_arrows(busy, environment, grew, shrank):
    """What stops shrinks, and what goes on grows; on a terminal without UTF-8, too."""
    with terminal("-p", busy.pid, "-i", "1", "-F", 299, environment="env " + environment) as screen:
        screen.until(lambda lines: shows("   large (shares.py")(lines) and int(lines[1].split(" of one CPU, ")[1].split()[0]) > 40)
        os.kill(busy.pid, signal.SIGSTOP)
        screen.until(shows(" %s large (shares.py" % shrank))
        screen.until(shows("   large (shares.py"))
        os.kill(busy.pid, signal.SIGCONT)
        screen.until(shows(" %s large (shares.py" % grew))
        screen.keys("?")
        screen.until(shows("%s and %s before a name" % (grew, shrank)))


WIDE = """
import json, os, time
def spin(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
def \u6f22\u5b57():
    spin(0.03)
def gr\u00f6\u00dfe():
    spin(0.03)
print(json.dumps({"pid": os.getpid()}), flush=True)
while True:
    \u6f22\u5b57()
    gr\u00f6\u00dfe()
"""


@pytest.mark.parametrize("environment, names", [
    ("LC_ALL=C.UTF-8", ("\u6f22\u5b57", "gr\u00f6\u00dfe")), ("LC_ALL=C", ("????", "gr??e")),
])
def test_wide_names(tmp_path, environment, names):
    """Wide characters take two columns in each locale: cells of the flame graph stand below each other."""
    script = tmp_path / "wide.py"
    script.write_text(WIDE, encoding="utf-8")
    with harness.target(harness.default_python(), script) as target:
        with terminal("-p", target.pid, "-i", "0.3", environment="env " + environment) as screen:
            screen.until(lambda lines: all(shows(name + " (wide.py")(lines) for name in names))
            screen.keys("f")
            lines = screen.until(shows("|spin"))
            at = next(i for i, line in enumerate(lines) if names[0] in line)
            wide = 1 if names[0] == "\u6f22\u5b57" and lines[at].index(names[0]) < lines[at].index("|") else 0
            assert lines[at + 1].index("|") == lines[at].index("|") + 2 * wide
            assert all(name in lines[at] for name in names)


def test_a_terminal_that_cannot_move_its_cursor(busy):
    with terminal("-p", busy.pid, environment="env TERM=dumb") as screen:
        lines = screen.until(shows("exit 1"))
        assert any("TERM=dumb" in line for line in lines)
