# SPDX-License-Identifier: Apache-2.0
"""Who started whom: --process-tree."""

import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import containers
import harness
import pythons
from harness import one_sentence, pybpf

pytestmark = pytest.mark.usefixtures("profiler")
ROOT = re.compile(r".* \((\d+)(?:, \d+ inside)?(?:, ended)?\)", re.S)
VERSIONS = [harness.default_python(), *[item for item in pythons.interpreters() if item.name.startswith("pyenv-2.7")]]


def children(pid):
    return [int(child) for child in Path("/proc/%d/task/%d/children" % (pid, pid)).read_text(encoding="ascii").split()]


def descendants(pid):
    found = children(pid)
    return found + [further for child in found for further in descendants(child)]


class Family:
    def __init__(self, process):
        self.process = process
        for key, pid in json.loads(process.stdout.readline()).items():
            setattr(self, key, pid)
        harness.wait_for(lambda: children(self.shell))
        (self.below_shell,) = children(self.shell)

    def end_one(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline()) == {"ended": self.leaving}


@contextlib.contextmanager
def family(interpreter):
    argv = interpreter.command("family.py")
    with harness.started(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        one = Family(process)
        try:
            yield one
        finally:
            for pid in (one.leaving, one.left, one.shell, one.below_shell):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def chains(stacks):
    """PID -> the texts of the roots, up to the process's own."""
    found = {}
    for stack, _ in stacks:
        roots = [frame.text for frame in itertools.takewhile(lambda frame: ROOT.fullmatch(frame.text), stack)]
        found[int(ROOT.fullmatch(roots[-1]).group(1))] = roots
    return found


def workers(pids):
    return [pid for pid in pids if comm(pid) != "sh"]


def comm(pid):
    return Path("/proc/%d/comm" % pid).read_text(encoding="utf-8").rstrip("\n")


def above(pid):
    """Who started it, the outermost first, without init."""
    found = []
    while pid > 1:
        pid = int(Path("/proc/%d/stat" % pid).read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
        found.insert(0, pid)
    return found[1:] if found[0] <= 1 else found


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda item: item.name)
def kept(request, profiler, tmp_path_factory):
    """(a family, the run that sampled it while one of them ended, its profile)"""
    path = tmp_path_factory.mktemp("tree") / "family.pybpf"
    with family(request.param) as one:
        argv = [harness.PYBPF, "-p", str(one.first), "--children", "-F", "999", "-v", "-o", str(path)]
        with harness.started(argv, stderr=subprocess.PIPE) as run:
            harness.wait_for(lambda: harness.samples_now(run.pid))
            one.end_one()
            for pid in (one.first, one.left, one.below_shell):
                until = harness.cpu_s(pid) + 0.2
                harness.wait_for(lambda p=pid, s=until: harness.cpu_s(p) > s)
            run.send_signal(signal.SIGINT)
            assert run.wait(harness.PATIENCE) == 0
        names = {key: "%s (%d)" % (comm(pid), pid) for key, pid in vars(one).items() if key in ("first", "shell", "left", "below_shell")}
    return one, names, path


def report(path, *args):
    run = pybpf("report", "-q", path, *args)
    assert run.code == 0, run.err
    return run


def test_from_the_process_that_was_chosen(kept):
    one, names, path = kept
    found = chains(harness.parse(report(path, "--process-tree", "-f", "folded").out))
    # One that has samples has the label that these have.
    gone = "%s (%d%s)" % (names["left"].rsplit(" ", 1)[0], one.leaving, "" if one.leaving in found else ", ended")
    assert found[one.first] == [names["first"]]
    assert found[one.left] == [names["first"], gone, names["left"]]
    assert found[one.below_shell] == [names["first"], names["shell"], names["below_shell"]]
    flat = chains(harness.parse(report(path, "-f", "folded").out))
    assert all(len(roots) == 1 for roots in flat.values()), "without the option there is the process alone"


def test_in_text_and_json(kept):
    one, names, path = kept
    text = report(path, "--process-tree", "-f", "text").out
    table = re.findall(r" *(\d+) +(\d+) +[\d.]+%  ( *)(.* \(.*\))\n", text.split("\n\n")[1] + "\n")
    sums = {name: (len(indent) // 2, int(own), int(total)) for own, total, indent, name in table}
    assert ", below the one that started it\n" in text
    below = [sums[names[key]] for key in ("first", "shell", "below_shell")]
    assert [depth for depth, _, _ in below] == [0, 1, 2] and below[1][1] == 0 and below[1][2] == below[2][2] == below[2][1] > 0
    assert below[0][2] == sum(own for _, own, _ in sums.values()) > below[0][1] > 0, "the first has all below it"
    processes = {each["pid"]: each for each in json.loads(report(path, "-f", "json").out)["processes"]}
    assert "parents" not in processes[one.first]
    parents = processes[one.left]["parents"]
    assert [(each["pid"], each["ended"]) for each in parents] == [(one.first, False), (one.leaving, True)]


def test_with_all_from_below_init():
    interpreter = harness.default_python()
    with family(interpreter) as one:
        run = pybpf("--all", "--exclude-pid", one.left, "-d", 1, "-F", 499, "--process-tree")
        assert run.code == 0, run.err
        roots = chains(run.stacks())[one.below_shell]
        assert roots == ["%s (%d)" % (comm(pid), pid) for pid in [*above(one.below_shell), one.below_shell]]


def test_of_a_container_from_its_first_process():
    if containers.why_not():
        pytest.skip(containers.why_not())
    with containers.container("tree", containers.command("family.py"), ready=False) as inside:
        harness.wait_for(lambda: len(inside.pids()) == 4 and all(harness.cpu_s(pid) > 0.1 for pid in workers(inside.pids())))
        run = pybpf("--container", inside.id, "-d", 1, "-F", 499, "--process-tree", "--by=container")
        assert run.code == 0, run.err
        for stack, _ in run.stacks():
            assert stack[0].text == inside.id
            assert "(%d, 1 inside)" % inside.pid in stack[1].text, "the chain begins with the container's first process"
        assert max(len(roots) for roots in chains((stack[1:], n) for stack, n in run.stacks()).values()) >= 3


def test_of_a_namespace_within_another_from_its_first_process():
    """What started it is in a PID namespace, too: not that of its own processes."""
    fork = ["unshare", "--pid", "--fork", "--kill-child"]
    argv = [*fork, "sh", "-c", '"$@"; true', "sh", *fork, *harness.default_python().command("spin.py")]
    with harness.started(argv) as outer:
        spins = lambda: [pid for pid in descendants(outer.pid) if comm(pid).startswith("python")]
        harness.wait_for(lambda: spins() and harness.cpu_s(spins()[0]) > 0.3)
        (pid,) = spins()
        text = pybpf("dump", "-p", pid, "--process-tree").out
        assert "Process tree" not in text and len(above(pid)) > 2, text
        assert json.loads(pybpf("dump", "-p", pid, "--json").out)["parents"] == []


def test_in_the_head_of_dump():
    with family(harness.default_python()) as one:
        chain = ["%s (%d)" % (comm(pid), pid) for pid in above(one.below_shell)]
        text = pybpf("dump", "-p", one.below_shell, "--process-tree").out.splitlines()
        assert text[2] == "Process tree: %s > this one" % " > ".join(chain)
        assert "Process tree" not in pybpf("dump", "-p", one.below_shell).out
        told = json.loads(pybpf("dump", "-p", one.below_shell, "--json").out)["parents"]
        assert ["%s (%d)" % (each["name"], each["pid"]) for each in told] == chain


def test_what_it_contradicts(kept, tmp_path):
    path = kept[2]
    for words in ["-p", os.getpid(), "--merge"], ["report", path, "--merge"]:
        run = pybpf(*words, "--process-tree")
        assert run.code == 2 and "--merge and --process-tree" in one_sentence(run.err)
    merged = tmp_path / "merged.pybpf"
    report(path, "--merge", "-o", merged)
    run = pybpf("report", "-q", merged, "--process-tree", "-f", "folded")
    assert run.code == 0 and "does not say who started" in one_sentence(run.err)
