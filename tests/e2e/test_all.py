# SPDX-License-Identifier: Apache-2.0
"""Many processes in one profile: every one on the machine, or those that a list, a name, a user or a glob chooses."""

import contextlib
import json
import os
import pwd
import shutil
import subprocess
import time

import pytest

import harness
import processes
import pythons
from harness import Expectation, one_sentence, pybpf, total
from processes import RATE, by_name, by_process

pytestmark = pytest.mark.usefixtures("profiler")
SECONDS = 0.8
FOUR_TIMES = 4 * RATE
ON = ("-d", SECONDS, "-F", FOUR_TIMES)
# Three of a family, at work for a fourth of the time, leave pybpf a CPU. They are sampled four times as often for it.
NAP = "--nap=0.0015"


def each_version():
    """One Python of each version."""
    found = {}
    for item in pythons.interpreters():
        if item.kind in ("shared", "static"):
            found.setdefault(item.version, item)
    return list(found.values())


def run_on(*words, stats=None):
    options = ["--json-stats", stats] if stats else []
    run = pybpf(*words, *options, *ON)
    assert run.code == 0, run.err
    return run


def holds(says, stacks):
    """A few samples tell no shares."""
    Expectation(says).check(stacks, every_call=False, hot=total(stacks) >= 50)


def test_every_version_at_once():
    with contextlib.ExitStack() as stack:
        started = [stack.enter_context(harness.target(item, "spin.py")) for item in each_version()]
        assert len({tuple(one.says["version"][:2]) for one in started}) >= 3, "three versions at least"
        with processes.sampling("--all") as run:
            before = {one.pid: (cpu_s(one.pid), switches(one.pid)) for one in started}
            harness.wait_for(lambda: all(cpu_s(pid) > spent + 0.2 for pid, (spent, _) in before.items()))
            after = {one.pid: (cpu_s(one.pid), switches(one.pid)) for one in started}
    found = by_process(run)
    for one in started:
        root, stacks = found[one.pid]
        assert root.inner is None
        holds(one.says, stacks)
        # pybpf began and ended some ms before and after the times were read.
        spent_s, stretches = (end - start for start, end in zip(before[one.pid], after[one.pid]))
        processes.at_least(run, total(stacks), spent_s, stretches)


def cpu_s(pid):
    """By the clock of which clock_getcpuclockid() tells the number."""
    return time.clock_gettime_ns(~pid << 3 | 2) / 1e9


def switches(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as status:
        return sum(int(row.split()[1]) for row in status if "ctxt_switches" in row)


@pytest.fixture
def family(tmp_path):
    """Two processes at work called alpha, one called beta, which is nobody's; their targets by those names."""
    python = pythons.one(name="system-python3.11")
    if not python:
        pytest.skip("/usr/bin/python3.11 is missing, which runs under any name")
    folder = tmp_path / "family"
    folder.mkdir()
    for part in folder, folder.parent:
        part.chmod(0o755)
    for path in pythons.TARGETS.glob("*.py"):
        shutil.copy(path, folder)
    for name in "alpha", "beta":
        (folder / name).symlink_to(python.argv[0])
    nobody = pwd.getpwnam("nobody").pw_uid
    with contextlib.ExitStack() as stack:
        members = {}
        for label, name, user in ("alpha", "alpha", 0), ("second", "alpha", 0), ("beta", "beta", nobody):
            argv = ["/usr/bin/setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups"]
            argv += [str(folder / name), "-B", str(folder / "spin.py"), label, NAP]
            process = stack.enter_context(harness.started(argv, stdout=subprocess.PIPE, bufsize=0))
            members[label] = harness.Target(process, harness.read_ready_line(process))
        yield members


def chosen(family, run):
    """Which of the family are in a run, each with its own stacks."""
    found = by_process(run)
    for label, member in family.items():
        if member.pid in found:
            root, stacks = found[member.pid]
            assert root.name == ("beta" if label == "beta" else "alpha")
            holds(member.says, stacks)
    return {label for label, member in family.items() if member.pid in found}


CHOICES = {
    "--all": {"alpha", "second", "beta"},
    "--all --exclude-comm alph?": {"beta"},
    "--all --exclude-comm alpha --exclude-comm nothing": {"beta"},
    "--all --comm [ab]*a": {"alpha", "second", "beta"},
    "--all --comm beta": {"beta"},
    "--all --user nobody": {"beta"},
    "--all --user {nobody} --comm alpha": set(),
    "--all --exclude-user nobody": {"alpha", "second"},
    "-a --comm alpha --user root": {"alpha", "second"},
    "-p {alpha},{beta}": {"alpha", "beta"},
    "-p {alpha} -p {second}": {"alpha", "second"},
    "--all --exclude-pid {alpha}": {"second", "beta"},
}


@pytest.mark.parametrize("words", CHOICES)
def test_choice(family, words):
    places = {label: member.pid for label, member in family.items()}
    places["nobody"] = pwd.getpwnam("nobody").pw_uid
    arguments = [word.format(**places) for word in words.split()]
    for factor in (1, 4, 16):  # beside a load one of them may have no CPU for some time
        run = pybpf(*arguments, "-d", 0.4 * factor, "-F", FOUR_TIMES)
        assert run.code == 0, run.err
        found = chosen(family, run)
        if found >= CHOICES[words]:
            break
    assert found == CHOICES[words]
    if not CHOICES[words]:
        assert "no Python process was found" in run.err


def test_same_program_under_one_root(family, tmp_path):
    pids = ",".join(str(member.pid) for member in family.values())
    stats = tmp_path / "stats.json"
    run = run_on("-p", pids, "--merge", stats=stats)
    found = by_name(run)
    assert set(found) == {"alpha", "beta"}, "each program has one root: %s" % sorted(found)
    holds(family["alpha"].says, found["alpha"])
    holds(family["beta"].says, found["beta"])
    # Two of three processes.
    assert 0.4 <= total(found["alpha"]) / total(run.stacks()) <= 0.9
    stacks = [tuple(frame.text for frame in frames) for frames, _ in run.stacks()]
    assert len(stacks) == len(set(stacks)), "the same stacks of two processes are one: %s" % stacks


def test_command_line_as_name(family):
    run = run_on("-p", "%d,%d" % (family["alpha"].pid, family["second"].pid), "--cmdline")
    found = by_process(run)
    for label in "alpha", "second":
        root, stacks = found[family[label].pid]
        assert root.name.endswith("/spin.py %s %s" % (label, NAP)), root
        assert "/alpha -B " in root.name
        holds(family[label].says, stacks)


def test_table_of_processes(family):
    run = run_on("--all", "--comm", "alpha", "-f", "text")
    for label in "alpha", "second":
        assert "alpha (%d)" % family[label].pid in run.out


def test_listed(family):
    run = pybpf("ps", "--comm", "alpha", "--comm", "beta")
    assert run.code == 0, run.err
    head, *rows = run.out.splitlines()
    assert head.split()[0] == "PID"
    listed = {int(row.split()[0]): row for row in rows}
    # The table cuts long commands.
    commands = {item["pid"]: item["command"] for item in json.loads(pybpf("ps", "--json").out)}
    for label, member in family.items():
        row = listed[member.pid]
        assert "3.11" in row and commands[member.pid].endswith("spin.py %s %s" % (label, NAP)), row
        assert ("nobody" in row) == (label == "beta")
    assert [int(row.split()[0]) for row in rows] == sorted(listed)


def test_what_is_not_supported_is_listed_with_the_reason():
    pypy = shutil.which("pypy3")
    if not pypy:
        pytest.skip("pypy3 is missing")
    argv = [pypy, "-c", "print(1, flush=True); input()"]
    with harness.started(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        one.stdout.readline()
        run = pybpf("ps")
        assert run.code == 0, run.err
        reasons = [row for row in run.out.splitlines() if str(one.pid) in row and "PyPy" in row]
        assert len(reasons) == 1, run.out
        # In a profile of everything it is no error.
        run_on("--all")


def test_a_process_that_ends_does_not_end_the_run():
    python = harness.default_python()
    with harness.target(python, "spin.py") as long:
        with processes.sampling("--all") as run:
            with harness.target(python, "mortal.py", "0.5") as short:
                pid = short.pid
                assert short.process.wait(harness.PATIENCE) == 7
            os.kill(long.pid, 0)
    found = by_process(run)
    holds(long.says, found[long.pid][1])
    assert {"burn", "last_words"} <= {frame.name for stack, _ in found[pid][1] for frame in stack}


def test_all_of_a_list_that_end_end_the_run():
    python = harness.default_python()
    with harness.target(python, "mortal.py", "2") as one, harness.target(python, "mortal.py", "2.5") as other:
        run = pybpf("-p", "%d,%d" % (one.pid, other.pid), "-d", 100, timeout=90)
    assert run.code == 0, run.err
    assert set(by_process(run)) == {one.pid, other.pid}


BAD = [
    (["--all", "-p", "1"], "--all"),
    (["--all", "--container", "abcd"], "--all"),
    (["--all", "--", "true"], "--all"),
    (["--children", "--all"], "--children"),
    (["--exclude-pid", "abc", "--all"], "abc"),
    (["--user", "nosuchuser", "--all"], "nosuchuser"),
    (["-p", "1,,2"], "1,,2"),
    (["-p", "1,x"], "1,x"),
    (["--by=nothing", "--all"], "nothing"),
    (["--max-memory", "0", "--all"], "--max-memory"),
    (["--max-memory", "lots", "--all"], "lots"),
]


@pytest.mark.parametrize("words, named", BAD, ids=lambda item: " ".join(item) if isinstance(item, list) else "")
def test_contradictions_and_nonsense(words, named, tmp_path):
    options = words if "--" in words else [*words, "-d", "1"]
    run = pybpf("-o", tmp_path / "profile", *options)
    assert run.code != 0 and run.out == ""
    assert named in one_sentence(run.err)
    assert not os.listdir(tmp_path)
