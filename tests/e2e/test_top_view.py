# SPDX-License-Identifier: Apache-2.0
"""The view of pybpf top in a terminal: its pages and keys, the profiles that it writes, and what it leaves behind."""

import contextlib
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import tempfile
import time

import pytest

import harness
import pythons
from harness import pybpf
from test_top import watch

SHARES = pythons.TARGETS / "shares.py"


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
        assert {stack[2].split(" (")[0] for _, stack in threads if len(stack) > 2} == {"large", "small"}
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
            heat = {}

            def has_all_lines(lines):
                """On a busy machine there are few samples in the first interval."""
                assert not shows("another")(lines)
                if shows("its text is not shown")(lines):
                    heat.update({int(line.split()[3]): line.split() for line in lines[5:-1] if line.strip()})
                return {16, called} <= set(heat)

            called = next(i for i, line in enumerate(SHARES.read_text().split("\n"), 1) if line.strip() == "work()")
            screen.until(has_all_lines)
            assert heat[called][0] == "0.00" and heat[called][2] == "########"


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


@pytest.mark.parametrize("ignored", [False, True], ids=["", "nohup"])
def test_without_its_terminal_it_ends(busy, ignored):
    """SIGHUP ends it, even where it was started with that ignored; a terminal that is gone would be written to for ever."""
    pid, keyboard = pty.fork()
    if not pid:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
        os.execv(harness.PYBPF, [harness.PYBPF, "top", "-p", str(busy.pid), "-i", "0.3"])
    try:
        shown = b""
        while b"large (" not in shown:
            assert select.select([keyboard], [], [], harness.PATIENCE)[0], shown
            shown += os.read(keyboard, 65536)
    finally:
        os.close(keyboard)
        try:
            harness.wait_for(lambda: os.waitpid(pid, os.WNOHANG)[0])
        except AssertionError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise


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
