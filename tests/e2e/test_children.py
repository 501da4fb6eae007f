# SPDX-License-Identifier: Apache-2.0
"""-p PID of a program that is no Python and has Pythons below it: shells, timeout, an init, sudo, boxes, bootloaders."""

import re
import shutil
import subprocess

import pytest

import harness
import processes

pytestmark = pytest.mark.usefixtures("profiler")
WRAPPERS = {
    "sh": ["sh", "-c", '"$@"; true', "sh"],
    "timeout": ["timeout", "60"],
    "tini": ["tini", "-s", "--"],
    "sudo": ["sudo", "-n"],
    "bwrap": ["bwrap", "--bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--proc", "/proc"],
}
LONG_MS = 30000
SHORT_MS = 300
# A Python that runs already, and after a line on stdin one that is started then; their parent is a shell.
SCRIPT = """
"$@" %d & echo '{"pid": 0}'
read word
"$@" %d
kill $!; wait
""" % (LONG_MS, SHORT_MS)
SLEEPERS = """
for i in 1 2 3 4 5 6 7 8 9 10; do
    "$1" -c "import time; time.sleep(60)" & all="$all $!"
done
echo '{"pid": 0}'
read word
kill $all; wait
"""


def words_of(name):
    words = WRAPPERS[name]
    if not shutil.which(words[0]):
        pytest.skip("%s is missing" % words[0])
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("%s does not work here" % name)
    return words


def start(words, script=SCRIPT):
    python = harness.default_python()
    argv = [*words, "sh", "-c", script, "sh", *python.command("short.py")]
    return processes.program(python, "short.py", argv=argv)


def finish(running):
    """The shell waits for the word, and ends what it has started."""
    running.process.stdin.close()
    running.process.wait(harness.PATIENCE)


@pytest.mark.parametrize("name", WRAPPERS)
def test_started_and_running(name):
    with start(words_of(name)) as running:
        with processes.sampling("-p", running.process.pid, "--children", ends=True) as run:
            finish(running)
    seen = processes.by_process(run)
    burns = {pid: processes.burnt(stacks) for pid, (_, stacks) in seen.items() if processes.burnt(stacks)}
    assert len(burns) == 2, (burns, run.err)
    new = max(burns)
    assert 0.6 * SHORT_MS <= burns[new] <= 1.3 * SHORT_MS, (burns, run.stats)
    assert burns[min(burns)] >= 0.1 * burns[new], (burns, run.stats)
    assert run.stats["processes"]["started"] >= 1


@pytest.mark.parametrize("name", WRAPPERS)
def test_without_children_the_pythons_are_named(name):
    with start(words_of(name)) as running:
        pid = running.process.pid
        run = harness.wait_for(lambda: python_is_named(pid))
        assert run.code == 1
        sentence = harness.one_sentence(run.err)
        assert "give -p %d --children" % pid in sentence
        (below,) = re.findall(r"Python runs in (\d+) \(python[\d.]*\):", sentence)
        found = harness.record_busy(below)
        finish(running)
    assert processes.burnt(found.stacks()) >= 20


def python_is_named(pid):
    """Once it is there: the shell has only just forked."""
    run = harness.pybpf("-p", pid, "-d", 1)
    return run if "Python runs in" in run.err else None


def test_more_than_are_named():
    with start([], SLEEPERS) as running:
        harness.wait_for(lambda: " and 2 more:" in harness.pybpf("-p", running.process.pid, "-d", 1).err)
        finish(running)


def test_nothing_below():
    with harness.started(["sleep", "60"]) as process:
        refused = harness.pybpf("-p", process.pid, "-d", 1)
        run = harness.pybpf("-p", process.pid, "--children", "-d", 1)
    assert refused.code == 1 and harness.one_sentence(refused.err).endswith("CPython's runtime")
    assert run.code == 0 and run.out == ""
    assert "no Python was found in process %d, nor in what it started" % process.pid in run.err


def test_frozen_program(tmp_path):
    """PyInstaller's bootloader unpacks a Python and starts itself again, which loads it."""
    if not shutil.which("pyinstaller"):
        pytest.skip("pyinstaller is missing")
    program = tmp_path / "frozen.py"
    program.write_text(
        "import json, os, time\n"
        "def burn():\n"
        "    end = time.time() + 30\n"
        "    while time.time() < end: sum(range(2000))\n"
        "print(json.dumps({'pid': os.getpid()}), flush=True)\n"
        "burn()\n"
    )
    command = ["pyinstaller", "--onefile", "--log-level=ERROR", str(program)]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    with processes.program(None, "", argv=[str(tmp_path / "dist" / "frozen")]) as running:
        assert running.pid != running.process.pid
        run = harness.record(running.process.pid, "--children")
        seen = processes.by_process(run)
    assert set(seen) == {running.pid}
    for stack, _ in seen[running.pid][1]:
        assert [frame.name for frame in stack][:2] == ["<module>", "burn"], harness.show(stack)
    out = tmp_path / "out.folded"
    whole = ["sh", "-c", '"$1" & sleep 3; kill $!; wait', "sh", tmp_path / "dist" / "frozen"]
    run = harness.pybpf("-F", 999, "-o", out, "--", *whole)
    assert any("burn" in [frame.name for frame in stack] for stack, _ in harness.parse(out.read_text())), run.err
