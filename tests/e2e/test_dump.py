# SPDX-License-Identifier: Apache-2.0
"""pybpf dump: what every thread does now, compared with what programs say of themselves."""

import contextlib
import json
import os
import pwd
import re
import signal
import subprocess
import sys
import unicodedata

import pytest

import cgroups
import harness
import pythons
from harness import pybpf

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)


def dump(pid, *args, code=0):
    run = pybpf("dump", "-p", pid, "--json", *args)
    assert run.code == code and not run.err, run
    (line,) = run.out.splitlines()
    return json.loads(line)


def by_name(snapshot):
    return {thread["name"]: thread for thread in snapshot["threads"]}


def stack(thread):
    return [[frame["function"], frame["file"], frame["line"]] for frame in thread["frames"]]


@every_python
def test_threads_that_stand(python):
    """Each thread has the stack that sys._current_frames() told, with the same lines, and waits for what it waits for."""
    with harness.target(python, "standing.py") as target:
        snapshot = dump(target.pid)
        says = target.says
    causes = {
        "t-lock": "[lock]",
        "t-pipe": "[pipe: read]",
        "t-tcp": "[network: tcp 127.0.0.1:%d]" % says["port"],
        "t-accept": "[network: tcp on 127.0.0.1:%d]" % says["port"],
        "t-unix": "[network: unix %s]" % says["unix"],
        "t-udp": "[network: udp on 127.0.0.1:%d]" % says["udp"],
        "t-epoll": "[poll: epoll]",
        "t-select": "[poll: select]",
        "t-flock": "[lock: file %s.lock]" % os.path.basename(says["unix"]),
        "t-child": "[child: %d]" % says["child"],
        "MainThread": "[sleep]",
    }
    threads = by_name(snapshot)
    assert {name: thread["cause"] for name, thread in threads.items()} == causes
    for name, chain in says["stacks"].items():
        assert stack(threads[name]) == chain, name
    assert [frame["function"] for frame in threads["MainThread"]["frames"]] == ["<module>", "main", "outer", "middle", "stand_sleep"]
    assert not any(thread["moving"] or thread["has_gil"] for thread in snapshot["threads"])
    assert all(thread["python"] for thread in snapshot["threads"])


def test_a_process_whose_first_thread_has_ended():
    with harness.target(harness.default_python(), "leaderless.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "Z")
        snapshot = dump(target.pid)
    assert any(frame["function"] == "work" for thread in snapshot["threads"] for frame in thread["frames"])
    assert all(thread["tid"] != target.pid for thread in snapshot["threads"])
    assert snapshot["resident_bytes"] > 4 << 20


def test_source_lines_are_those_of_the_frames():
    with harness.target(harness.default_python(), "standing.py") as target:
        snapshot = dump(target.pid)
        bare = dump(target.pid, "--no-source")
    frames = [frame for thread in snapshot["threads"] for frame in thread["frames"]]
    for frame in frames:
        with open(frame["file"], encoding="utf-8") as source:
            assert frame["source"] == source.readlines()[frame["line"] - 1].strip()
    assert len(frames) > 50
    assert not any(frame["source"] for thread in bare["threads"] for frame in thread["frames"])


def test_text_reads_as_a_traceback():
    with harness.target(harness.default_python(), "standing.py") as target:
        down = pybpf("dump", "-p", target.pid)
        up = pybpf("dump", "-p", target.pid, "--reverse")
    assert not down.code and not down.err and not up.code and not up.err
    for out, last in ((down.out, -1), (up.out, 0)):
        (main,) = [part for part in out.split("\n\n") if ' "MainThread": [sleep]' in part]
        frames = re.findall(r'  File "(.+)", line (\d+), in (\w+|<module>)\n    (.+)', main)
        assert frames[last][2:] == ("stand_sleep", "time.sleep(1000)"), main
        assert len(frames) == 5


RECURSES = """
import sys, time
def down(n):
    if n:
        down(n - 1)
    time.sleep(1000)
print("[]"); sys.stdout.flush()
down(200)
"""


def run_python(code, *args):
    return harness.started([sys.executable, "-c", code, *args], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)


def test_recursion_is_folded():
    with run_python(RECURSES) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        run = pybpf("dump", "-p", process.pid)
        snapshot = dump(process.pid)
    assert run.out.count(", in down\n") == 4 and "  [Previous line repeated 197 more times]\n" in run.out
    assert [frame["function"] for frame in snapshot["threads"][0]["frames"]].count("down") == 201


# Calls whose names tell which may call which: a_1 calls b_1 calls c_1, and never another number.
MIXES = """
import sys, threading
names = {}
for i in range(40):
    exec("def c_%d():\\n    return sum(range(30))\\ndef b_%d():\\n    return c_%d()\\ndef a_%d():\\n    return b_%d()" % ((i,) * 5), names)
calls = [names["a_%d" % i] for i in range(40)]
def work():
    while True:
        for call in calls:
            call()
threading.Thread(target=work, daemon=True).start()
print("[]"); sys.stdout.flush()
work()
"""


@pytest.mark.parametrize("python", [p for p in pythons.interpreters() if p.version[0] == 3], ids=lambda item: item.name)
def test_threads_that_run_show_no_stack_that_they_never_had(python):
    """Threads change their stacks all the time: what is not marked as moving is true, and one at most has the GIL."""
    proved = 0
    argv = [*python.argv, "-c", MIXES]
    with harness.started(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        for _ in range(12):
            snapshot = dump(process.pid)
            assert sum(thread["has_gil"] for thread in snapshot["threads"]) <= 1
            for thread in snapshot["threads"]:
                names = [frame["function"] for frame in thread["frames"]]
                numbers = {name[2:] for name in names if re.fullmatch(r"[abc]_\d+", name)}
                if not thread["moving"]:
                    proved += 1
                    assert len(numbers) <= 1, names
                    order = "".join(name[0] for name in names if re.fullmatch(r"[abc]_\d+", name))
                    assert "abc".startswith(order), names
    assert proved > 0


# To 3.10 each frame is an object of its own: hundreds take longer to be read than the stack stays the same.
MOVES = """
import sys
def down(n):
    if n:
        down(n - 1)
try:
    raise KeyError
except KeyError:
    print("[]"); sys.stdout.flush()
    while True:
        down(600)
"""


@pytest.mark.parametrize("python", [p for p in pythons.interpreters() if (3, 7) <= p.version <= (3, 10)], ids=lambda item: item.name)
def test_what_a_thread_that_moves_handles_is_not_known(python):
    argv = [*python.argv, "-c", MOVES]
    with harness.started(argv, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)

        def moves():
            """Not always: while it waits for a CPU it stands."""
            thread, = dump(process.pid)["threads"]
            known = thread["handles_exception"], thread["exception"], thread["collecting"]
            assert known == ((None, None, None) if thread["moving"] else (True, "KeyError", False))
            return thread["moving"]

        harness.wait_for(moves)


def test_waits_for_the_gil_name_its_holder():
    with harness.target(harness.default_python(), "states.py", "gil") as target:

        def is_met():
            met, snapshot = False, dump(target.pid)
            tids = {thread["tid"] for thread in snapshot["threads"]}
            for thread in snapshot["threads"]:
                if thread["gil_holder"]:
                    assert thread["state"] == "GIL" and thread["gil_holder"] in tids - {thread["tid"]}
                    met = True
            return met

        harness.wait_for(is_met)


def test_one_of_ones_own_without_root():
    nobody = pwd.getpwnam("nobody").pw_uid
    argv = ["setpriv", "--reuid", str(nobody), "--clear-groups", "--inh-caps=-all"]
    with harness.started([*argv, "/usr/bin/python3", "-c", RECURSES], stdout=subprocess.PIPE) as process, \
            harness.for_everybody(harness.PYBPF) as (binary,):
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        done = subprocess.run([*argv, binary, "dump", "-p", str(process.pid)], capture_output=True, text=True)
        assert done.returncode == 0 and ", in down\n" in done.stdout, done
        denied = subprocess.run([*argv, binary, "dump", "-p", "1"], capture_output=True, text=True)
        assert denied.returncode == 1 and denied.stderr.count("\n") == 1 and not denied.stdout, denied


def test_in_another_pid_namespace():
    argv = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", RECURSES]
    with harness.started(argv, stdout=subprocess.PIPE) as process:
        harness.read_ready_line(process)
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid), encoding="ascii") as children:
            (pid,) = children.read().split()
        snapshot = dump(pid)
    (thread,) = snapshot["threads"]
    assert snapshot["inside_pid"] == thread["inside_tid"] == 1 and thread["tid"] == int(pid)
    assert thread["frames"][-1]["function"] == "down"


@contextlib.contextmanager
def frozen_group(pid, version):
    try:
        mount = cgroups.unified() if version == "v2" else cgroups.with_controller("freezer")
    except cgroups.Missing as missing:
        pytest.skip(str(missing))
    name, freeze, thaw = ("cgroup.freeze", "1", "0") if version == "v2" else ("freezer.state", "FROZEN", "THAWED")
    with cgroups.directory("pybpf-dump-%d" % os.getpid(), mount) as place:
        place.add(pid)
        (place.path / name).write_text(freeze)
        try:
            yield
        finally:
            (place.path / name).write_text(thaw)
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_stopped_and_frozen(version):
    with run_python(RECURSES) as process:
        harness.read_ready_line(process)
        harness.wait_for(lambda: harness.state(process.pid) == "S")
        os.kill(process.pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.state(process.pid) == "T")
        stopped = dump(process.pid)
        os.kill(process.pid, signal.SIGCONT)
        with frozen_group(process.pid, version):
            frozen = dump(process.pid)
    for snapshot in (stopped, frozen):
        (thread,) = snapshot["threads"]
        assert thread["cause"] == "[stopped]" and thread["frames"][-1]["function"] == "down"


NAMED = r"""
import sys, threading, time
exec(compile("def f():\n    time.sleep(1000)", "/tmp/\x1b[2J\nThread 1", "exec"))
t = threading.Thread(target=f, name="\x1b[31m\nProcess 1: evil")
t.daemon = True
t.start()
time.sleep(0.2)
print("[]"); sys.stdout.flush()
f()
"""


SHORT = """
import subprocess, sys
print("[]", flush=True)
while True:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.02)"])
    subprocess.run([sys.executable, "-S", "-c", ""])
"""


def test_a_shell_is_asked_for_its_children():
    """It is not said that the program itself is no Python, unless there is none below it."""
    shell, sleep = ("sh", "-c", '"$0" "$@" & wait', sys.executable, "-c", RECURSES), ("sleep", "1000")
    with harness.started(shell, stdout=subprocess.PIPE, start_new_session=True) as process, harness.started(sleep) as other:
        try:
            harness.read_ready_line(process)
            run = pybpf("dump", "-p", process.pid, "--children")
            both = pybpf("dump", "-p", process.pid, "-p", other.pid, "--children")
            none = pybpf("dump", "-p", other.pid, "--children")
            alone = pybpf("dump", "-p", process.pid)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert run.code == 0 and not run.err and ", in down\n" in run.out, run
    assert both.code == 0 and ", in down\n" in both.out and none.code == 1 and not none.out
    for done in both, none:
        sentence = harness.one_sentence(done.err)
        assert "process %d (sleep) maps no Python" % other.pid in sentence and sentence.endswith("nor do those of its children")
    refusal = harness.one_sentence(alone.err)
    assert alone.code == 1 and "process %d (sh) maps no Python" % process.pid in refusal
    assert "below it Python runs in " in refusal and "give -p %d --children" % process.pid in refusal


def test_children_that_end_meanwhile_are_not_missed():
    ended = 0
    with run_python(SHORT) as process:
        harness.read_ready_line(process)
        for _ in range(30):
            run = pybpf("dump", "-p", process.pid, "--children", "--json", "-v")
            assert run.code == 0, run.err
            assert process.pid in [json.loads(line)["pid"] for line in run.out.splitlines()]
            ended += len(re.findall(r"^pybpf: process \d+ ended before it was read$", run.err, re.M))
    assert ended > 0


def test_names_do_not_write_on_the_terminal():
    with run_python(NAMED) as process:
        harness.read_ready_line(process)
        run = pybpf("dump", "-p", process.pid)
    assert "\x1b" not in run.out and r"\x1b[31m\x0aProcess 1: evil" in run.out
    assert len(re.findall(r"^Process ", run.out, re.M)) == 1 and len(re.findall(r"^Thread ", run.out, re.M)) == 2


def test_several_processes():
    python = harness.default_python()
    with harness.target(python, "spin.py") as one, harness.target(python, "standing.py") as two:
        run = pybpf("dump", "-p", one.pid, "-p", two.pid, "--json")
    assert not run.code
    assert {json.loads(line)["pid"] for line in run.out.splitlines()} == {one.pid, two.pid}


@pytest.mark.parametrize(
    "args, words, code",
    [
        ([], "which process: -p PID, --all", 2),
        (["-p", str(1 << 22)], "there is no process 4194304", 1),
        (["-p", "1", "more"], "dump takes no argument, but was given more", 2),
        (["-p", "x"], "not a process ID", 2),
        (["6311"], "`pybpf dump -p 6311`", 2),
        (["-j", "-p", "1"], "--json", 2),
        (["--nonblocking", "-p", "1"], "--freeze", 2),
        (["--jsn", "-p", "1"], "--json", 2),
    ],
)
def test_bad_input(args, words, code):
    run = pybpf("dump", *args)
    assert run.code == code and words in harness.one_sentence(run.err) and not run.out


# By function, what expressions.py executes of its line; None: all of it, which is not marked.
EXECUTED = {
    "<module>": None,
    "lines": "Wörter().漢字(1)",
    "漢字": "waits(ü)",
    "waits": "time.sleep(1000)",
}


def marked(text, carets):
    """What of a printed line stands above the carets: wide characters take two columns."""
    columns = "".join(sign * (2 if unicodedata.east_asian_width(sign) in "WF" else 1) for sign in text)
    above = columns[len(carets) - len(carets.lstrip()) : len(carets)]
    return re.sub(r"([\u4e00-\u9fff])\1", r"\1", above)


WITH_COLUMNS = [(item, ranges) for item in pythons.interpreters() for ranges in (True, False) if item.version >= (3, 11)]
WITHOUT_COLUMNS = [(item, True) for item in pythons.of_each_version(pythons.interpreters()) if (3, 6) <= item.version < (3, 11)]
RANGES = WITH_COLUMNS + WITHOUT_COLUMNS


@pytest.mark.parametrize("python, ranges", RANGES, ids=["%s%s" % (item.name, "" if has else "-none") for item, has in RANGES])
def test_expressions_are_marked(python, ranges, monkeypatch):
    """From 3.11 on, unless the program was started without their columns."""
    if not ranges:
        monkeypatch.setenv("PYTHONNODEBUGRANGES", "1")
    with harness.target(python, "expressions.py") as target:
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        frames = dump(target.pid)["threads"][0]["frames"]
        lines = pybpf("dump", "-p", target.pid).out.splitlines()
    known = ranges and python.version >= (3, 11)
    source = (pythons.TARGETS / "expressions.py").read_bytes().splitlines()
    assert [frame["function"].split(".")[-1] for frame in frames] == list(EXECUTED)
    for frame in frames:
        line, expected = source[frame["line"] - 1], EXECUTED[frame["function"].split(".")[-1]]
        assert (frame["column"] is not None) == known, frame
        if known:
            executed = line[frame["column"] : frame["end_column"]].decode()
            assert executed == (expected or line.decode().strip()) and frame["end_line"] == frame["line"], frame
    carets = [marked(lines[i - 1], line) for i, line in enumerate(lines) if set(line) == {" ", "^"}]
    assert carets == ([text for text in EXECUTED.values() if text] if known else [])


def test_no_python():
    with harness.started(["sleep", "60"]) as process:
        run = pybpf("dump", "-p", process.pid)
    assert run.code == 1 and "sleep" in run.err and not run.out
