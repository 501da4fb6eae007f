# SPDX-License-Identifier: Apache-2.0
"""What users of py-spy, Austin, perf and memray type first: one sentence says what to type instead, or it works."""

import contextlib
import os
import pty
import re
import select
import shlex
import subprocess

import pytest

import harness
from harness import one_sentence, pybpf, total

pytestmark = pytest.mark.usefixtures("profiler")

BUSY = "import time\nend = time.time() + %s\nwhile time.time() < end: sum(range(999))"


def refused(*args, code=2):
    run = pybpf(*args)
    assert run.code == code and run.out == "", run
    return one_sentence(run.err)


# Command line -> what its one sentence has.
SENTENCES = {
    "recrod -p 1": "did you mean record?",
    "doctr": "did you mean doctor?",
    "help repotr": "did you mean report?",
    "--pids 1": "did you mean --pid?",
    "-p 1 --thraeds": "did you mean --threads?",
    "ps --containr web": "did you mean --container?",
    "report --undr x y.pybpf": "did you mean --under?",
    "-p 1 -f speedscop": "did you mean speedscope?",
    "-p 1 -f flamegraph": "did you mean svg?",
    "-p 1 --lines fisrt": "did you mean first?",
    "--no": "--no-children, --no-timestamps, --no-source",
    "--all=yes": "--all takes no value",
    "record -p 1 --idle": "--mode=wall",
    "-p 1 --wait-detail=none": "--mode=wall",
    "-p 1 --mode=gil --timestamps": "--mode=gil",
    "-i -p 1": "--mode=wall",
    "-p 1 --mode=wall --gil": "--mode=cpu",
    "-p 1 --mode=offcpu --gc": "--mode=cpu",
    "-p 1 --mode=wall --opcodes": "--mode=cpu",
    "record --native=some -p 1": "it takes all",
    "-F 99 -a -g": "whole call stack",
    "--mode gc -p 1": "cpu, wall, offcpu, gil, exception or memory",
    "-m http.server": "-- python3 -m MODULE",
    "-C -p 1": "--children",
    "-x 10 -p 1": "-d SECONDS",
    "--nonblocking -p 1": "sampling stops no process",
    "--memory -p 1": "--mode=memory",
    "live -p 1": "`pybpf top -p PID`",
    "-p 1 --by=state": "--mode=wall, offcpu or gil",
    "stat -p 1": "-f text",
    "run app.py": "-- python3 app.py",
    "flamegraph x.bin": "pybpf report",
    "attach 1234": "`pybpf -p 1234`",
    "1234 -d 5": "`pybpf -p 1234 -d 5`",
    "-d 5 1234": "`pybpf -d 5 -p 1234`",
    "python3 app.py": "`pybpf -- python3 app.py`",
    "record -o prof.svg python3 app.py 'a b'": "`pybpf -o prof.svg -- python3 app.py 'a b'`",
    "no-such-script.py --fast": "`pybpf -- python3 no-such-script.py --fast`",
    "/bin/true": "`pybpf -- /bin/true`",
    "monday.pybpf": "`pybpf report monday.pybpf`",
    "no-such-thing": "after `--`",
    "-p gunicorn": "--comm gunicorn",
    "ps --exclude-pid gunicorn": "--exclude-comm gunicorn",
    "-a -- sleep 10": "-d SECONDS",
    "-p 1 -d 0": "above 0",
    "-p 1 -d -1": "above 0",
    "-p 1 -d unlimited": "without -d",
    "-p 1 -d 5x": "500ms, 2m, 1h",
    "-p 1 -r 0": "from 1 up",
}


@pytest.mark.parametrize("words", SENTENCES)
def test_sentence(words):
    sentence = refused(*shlex.split(words))
    assert SENTENCES[words] in sentence, sentence


def test_rate_too_high_is_given_as_a_number_that_sysctl_takes():
    sentence = refused("-p", 1, "-F", "1e7")
    command = re.search(r"`sysctl (\S+)=(\S+)`", sentence)
    assert command.group(2) == "10000000"
    assert os.path.exists("/proc/sys/" + command.group(1).replace(".", "/"))


def test_what_is_advised_works(tmp_path):
    """The command lines in backquotes run as they are printed."""
    script = tmp_path / "app.py"
    script.write_text("print('it runs')")
    for words in (["python3", script], [script], ["record", "-q", "python3", script]):
        (advice,) = re.findall("`(pybpf .*?)`", refused(*words))
        run = pybpf(*shlex.split(advice)[1:])
        assert run.code == 0 and run.out.startswith("it runs"), (advice, run)


def test_help_and_version_are_commands():
    assert pybpf("help").out == pybpf("--help").out != ""
    assert pybpf("help", "report").out == pybpf("report", "--help").out != ""
    assert pybpf("version").out == pybpf("--version").out != ""
    assert pybpf("version", "-v").out == pybpf("--version", "-v").out
    assert "--fast" in refused("version", "--fast")


@pytest.mark.parametrize("text, least, most", [("700ms", 0.7, 2), ("0.02m", 1.2, 3), ("1s500ms", 1.5, 3)])
def test_durations_with_units(spinning, tmp_path, text, least, most):
    run = harness.record(spinning.pid, seconds=text)
    assert least - 0.01 <= run.stats["duration_s"] <= most


def test_letters_of_py_spy():
    """-s and -t are those of py-spy: processes below, and threads."""
    with harness.target(harness.default_python(), "threads.py") as running:
        out = pybpf("record", "-t", "--pid", running.pid, "-d", 2, "-r", 999).out
        assert all("(%d)" % tid in out for _, tid, _ in running.says["more"]["threads"]), out
    shell = "%s -c '%s' & wait" % (harness.default_python().argv[0], BUSY % 20)
    with harness.started(["sh", "-c", shell], start_new_session=True) as process:
        try:
            run = harness.wait_for(lambda: (lambda run: run if total(run.stacks()) else None)(
                pybpf("-s", "-p", process.pid, "-d", 1, "-r", 199)))
            assert run.code == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)


def on_terminal(*args):
    """What a person sees: stdout and stderr are one terminal."""
    ours, theirs = pty.openpty()
    with harness.started([harness.PYBPF, *map(str, args)], stdout=theirs, stderr=theirs, stdin=theirs) as run:
        os.close(theirs)
        seen = b""
        while run.poll() is None or select.select([ours], [], [], 0.2)[0]:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    seen += os.read(ours, 65536)
                except OSError:
                    break
        run.wait(harness.PATIENCE)
    os.close(ours)
    return seen.decode("utf-8", "replace").replace("\r\n", "\n")


def test_a_terminal_gets_a_table(spinning):
    shown = on_terminal("-p", spinning.pid, "-d", 2, "-F", 999).strip().splitlines()
    assert any(line.split() == ["self", "self%", "total", "total%", "function"] for line in shown), shown
    assert "-f folded" in shown[-1] and ".html" in shown[-1]
    last = on_terminal("-p", spinning.pid, "-d", 2, "-F", 999, "-f", "folded").strip().splitlines()[-1]
    assert "-f text" in last and ".html" in last
    assert "-o FILE" in on_terminal("-p", spinning.pid, "-d", 2, "-F", 999, "-f", "json").strip().splitlines()[-1]
    for quiet in (["-q"], ["-f", "text"], ["-o", os.devnull]):
        assert ".html" not in on_terminal("-p", spinning.pid, "-d", 1, *quiet)
    assert ".html" not in pybpf("-p", spinning.pid, "-d", 1).err


def test_one_of_anything_is_singular():
    """A profile of a run with one sample, one stack, one process and one file."""
    with harness.target(harness.default_python(), "spin.py") as running:
        for _ in range(60):
            run = pybpf("-p", running.pid, "-F", 9, "-d", 0.2)
            if " 1 taken, 1 with" in run.err:
                break
    assert ": 1 sample asked, 1 taken, 1 with Python frames; 1 distinct stack\n" in run.err
    assert not re.search(r"\b1 (samples|stacks|processes|files|records)\b", run.err)


def test_waiting_for_a_command_that_goes_on(tmp_path):
    path = tmp_path / "profile.folded"
    argv = [harness.PYBPF, "-d", "1", "-o", str(path), "--", harness.default_python().argv[0], "-c", BUSY % 60]
    with harness.started(argv, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as run:
        said = b""
        while not re.search(rb"\(process \d+\)[^\n]*\n", said):
            part = os.read(run.stderr.fileno(), 65536)
            assert part, "it ended without saying that it waits: %r" % said
            said += part
        # What it says is true: the profile is there, and the command runs.
        assert run.poll() is None
        assert total(harness.parse(path.read_text())) > 0
        sentence = said.decode().splitlines()[-1]
        assert str(path) in sentence
        pid = int(re.search(r"\(process (\d+)\)", sentence).group(1))
        with open("/proc/%d/status" % pid, encoding="ascii") as status:
            assert "PPid:\t%d\n" % run.pid in status.read()
        run.send_signal(15)
        assert run.wait(harness.PATIENCE) == 128 + 15


@pytest.mark.parametrize("args", [["-q", "-d", 0.3], []], ids=["quiet", "to its end"])
def test_no_word_of_waiting(args):
    run = pybpf(*args, "-o", os.devnull, "-f", "folded", "--", harness.default_python().argv[0], "-c", BUSY % 1)
    assert run.code == 0 and "waiting" not in run.err
