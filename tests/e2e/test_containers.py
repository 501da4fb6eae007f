# SPDX-License-Identifier: Apache-2.0
"""Containers: real ones of crun and runc, and the control groups that other runtimes name theirs by."""

import contextlib
import os
import secrets
import subprocess
import time
from pathlib import Path

import pytest

import cgroups
import containers
import harness
import processes
from containers import command, container
from harness import one_sentence, pybpf, total
from processes import RATE, by_process, sampling

# At work for a fourth of the time, so that three of them leave pybpf a CPU, and sampled four times as often for it.
SPIN = ("spin.py", "--nap=0.0015")
FOUR_TIMES = 4 * RATE
OFTEN = 50  # samples that tell where a program is
MARGIN_S = 0.3  # before and after a time that is read while pybpf samples

pytestmark = pytest.mark.usefixtures("profiler")


def need(runtime="crun"):
    why = containers.why_not(runtime)
    if why:
        pytest.skip(why)


@contextlib.contextmanager
def two_containers(*program):
    """Two containers of the same program, by a runtime each, and the same program outside of both."""
    for runtime in containers.RUNTIMES:
        need(runtime)
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(harness.target(harness.default_python(), *program))
        one, other = (
            stack.enter_context(container("web", command(*program), runtime)) for runtime in containers.RUNTIMES
        )
        yield host, one, other


@pytest.fixture
def web():
    with two_containers(*SPIN) as found:
        yield found


def sampled(met, *words):
    """A run that is as long as it takes to meet that program often: beside a load it may have little of a CPU."""
    for factor in (1, 4, 16):
        run = pybpf(*words, "-d", 0.4 * factor, "-F", FOUR_TIMES)
        assert run.code == 0, run.err
        found = by_process(run)
        if total(found[met.pid][1] if met.pid in found else []) > OFTEN:
            break
    return found


def spinning(stacks, share=0.95):
    """Nearly all samples are in spin.py, with its lines."""
    names = [[frame.name for frame in stack] for stack, _ in stacks]
    spin = sum(count for (_, count), name in zip(stacks, names) if name[:2] == ["<module>", "outer"])
    return total(stacks) > OFTEN and spin >= share * total(stacks)


def check_spent(run, samples, cpu_s, name):
    """There were some samples before and after the time was read."""
    processes.at_least(run, samples, cpu_s, 250 * cpu_s, what="samples of " + name)
    processes.at_most(run, samples, cpu_s + MARGIN_S, 250 * cpu_s, what="samples of " + name)


def check_inside(found, one):
    """(Root, stacks) of a container's first process."""
    root, stacks = found[one.pid]
    assert (root.name, root.inner) == ("python3.13", 1), root
    assert spinning(stacks), stacks[:3]
    return root


def test_containers_are_told_apart():
    with two_containers("spin.py") as (host, one, other):
        with sampling("--all", "--by=container") as run:
            spent = cgroups.spent([each.cgroup for each in (one, other)], 2)
        found = by_process(run, container=True)
        assert found[host.pid][0].container == "[host]" and found[host.pid][0].inner is None
        for each in one, other:
            assert check_inside(found, each).container == each.id
        for each, cpu_s in zip((one, other), spent):
            samples = total(found[each.pid][1])
            check_spent(run, samples, cpu_s, each.id)


def test_one_of_two(web):
    host, one, other = web
    for words in ["--container", one.id], ["--container", one.id[:7]], ["--all", "--exclude-container", other.id]:
        found = sampled(one, *words)
        assert one.pid in found and other.pid not in found, (words, sorted(found))
        assert (host.pid in found) == ("--all" in words)
        check_inside(found, one)


def test_both_of_two(web):
    host, one, other = web
    run = pybpf("--container", one.id, "--container", other.id, "-d", 0.8, "-F", FOUR_TIMES)
    found = by_process(run, container=True)
    assert {one.pid, other.pid} <= set(found) and host.pid not in found, sorted(found)
    run = pybpf("--container", one.id, "--container", other.id, "-d", 0.4, "-F", FOUR_TIMES, "--merge")
    assert run.code == 0, run.err
    found = processes.by_name(run)
    assert list(found) == ["python3.13 spin.py"], "the same program has one root: %s" % list(found)
    assert spinning(found["python3.13 spin.py"])


def test_a_prefix_of_two_is_ambiguous(web):
    _, one, other = web
    run = pybpf("--container", "web-", "-d", 0.4)
    assert run.code != 0 and run.out == ""
    sentence = one_sentence(run.err)
    assert one.id in sentence and other.id in sentence


def test_no_such_container(web):
    """The sentence names those that run, and those with a name near it first."""
    _, one, other = web
    run = pybpf("--container", "nosuchcontainer", "-d", 0.4)
    sentence = one_sentence(run.err)
    assert run.code != 0 and "nosuchcontainer" in sentence
    assert "running are" in sentence and one.id + " (crun)" in sentence and other.id + " (runc)" in sentence
    typo = one.id[:-2] + ("x" if one.id[-2] != "x" else "y") + one.id[-1]
    run = pybpf("--container", typo, "-d", 0.4)
    sentence = one_sentence(run.err)
    assert run.code != 0 and "did you mean %s (crun)" % one.id in sentence and other.id not in sentence


def test_a_pattern(web):
    """All that match, also one that starts during the run; not those that do not match."""
    _, one, other = web
    with sampling("--container", one.id[:4] + "*", "-v", rate=FOUR_TIMES) as run:
        with container("web", command("spin.py")) as late, container("db", command(*SPIN)) as apart:
            until = late.cpu_s() + 2
            harness.wait_for(lambda: late.cpu_s() >= until)
            pid, apart_pid = late.pid, apart.pid
    found = by_process(run, container=True)
    assert {one.pid, other.pid, pid} <= set(found) and apart_pid not in found, sorted(found)
    assert found[pid][0].container == late.id and spinning(found[pid][1]), found[pid]


@pytest.mark.parametrize("words", ["a pattern", "two names"])
def test_each_process_of_several_containers_is_shown_with_its_own(web, words):
    _, one, other = web
    named = [one.id[:4] + "*"] if words == "a pattern" else [one.id, other.id]
    run = pybpf(*[word for name in named for word in ("--container", name)], "-d", 0.4, "-F", RATE, "-f", "text")
    assert run.code == 0, run.err
    for each in one, other:
        (row,) = [line for line in run.out.splitlines() if "(%d," % each.pid in line]
        assert row.split()[-1] == each.id
    alone = pybpf("--container", one.id, "-d", 0.4, "-F", RATE, "-f", "text")
    assert alone.code == 0 and one.id not in alone.out, alone.out


def test_a_container_that_starts_again():
    """Under its name, in a control group of its own: it is followed, and so is the next one."""
    need()
    ident = "again-" + secrets.token_hex(4)
    pids = []
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(container("", command("spin.py"), ident=ident))
        with sampling("--container", ident) as run:
            for _ in range(3):
                pids.append(first.pid)
                until = first.cpu_s() + 0.8
                harness.wait_for(lambda: first.cpu_s() >= until)
                first.stop()
                first = stack.enter_context(container("", command("spin.py"), ident=ident))
    found = by_process(run)
    for pid in pids:
        assert pid in found and spinning(found[pid][1], 0.9), (pids, sorted(found), run.err)
    assert "stopped" in run.err or len(found) == 3


def test_one_name_in_two_runtimes():
    """Two rows in ps and in a profile; RUNTIME:NAME chooses one, the name alone is ambiguous."""
    for runtime in containers.RUNTIMES:
        need(runtime)
    ident = "twin-" + secrets.token_hex(4)
    with contextlib.ExitStack() as stack:
        twins = {
            runtime: stack.enter_context(container("", command(*SPIN), runtime, ident=ident))
            for runtime in containers.RUNTIMES
        }
        run = pybpf("ps")
        for runtime, twin in twins.items():
            row = next(row.split() for row in run.out.splitlines() if row.split()[:1] == [str(twin.pid)])
            assert "%s:%s" % (runtime, ident) in row, row
        run = pybpf("--container", ident, "-d", 0.4)
        assert run.code != 0 and all("%s, %s" % (ident, runtime) in one_sentence(run.err) for runtime in twins)
        for runtime, twin in twins.items():
            run = pybpf("--container", "%s:%s" % (runtime, ident), "-d", 0.4, "-F", FOUR_TIMES)
            assert list(by_process(run)) == [twin.pid], run.err
        with sampling("--container", "twin-*", "--by=container") as run:
            time.sleep(1)
        found = by_process(run, container=True)
        pids = {runtime: twin.pid for runtime, twin in twins.items()}
    for runtime, pid in pids.items():
        assert found[pid][0].container == "%s:%s" % (runtime, ident)


def test_a_name_that_only_conmon_knows(tmp_path):
    """podman with another root: no list says the name, its conmon's command line does."""
    ident, name = secrets.token_hex(32), "elsewhere-" + secrets.token_hex(4)
    conmon = tmp_path / "conmon"
    conmon.write_text('#!/bin/sh\nprocs=$5 && shift 5 && (echo 0 >"$procs"; exec "$@") & wait\n')
    conmon.chmod(0o755)
    with cgroups.directory("libpod_parent/libpod-" + ident) as place:
        spin = harness.default_python().command("spin.py")
        argv = [conmon, "-c", ident, "-n", name, place.path / "cgroup.procs", *spin]
        with harness.started(list(map(str, argv)), stdout=subprocess.PIPE, bufsize=0) as process:
            pid = harness.read_ready_line(process)["pid"]
            row = next(row.split() for row in pybpf("ps").out.splitlines() if row.split()[:1] == [str(pid)])
            run = pybpf("--container", name, "-d", 0.4, "-F", RATE)
            os.kill(pid, 9)
    assert name in row, row
    assert list(by_process(run)) == [pid], run.err


def test_control_group_of_a_container(web):
    _, one, other = web
    inside_hierarchy = "/" + str(one.cgroup.path.relative_to(cgroups.unified()))
    for path in one.cgroup.path, inside_hierarchy:
        found = sampled(one, "--cgroup", path)
        assert list(found) == [one.pid]
        check_inside(found, one)
    both = os.path.commonpath((one.cgroup.path, other.cgroup.path))
    found = sampled(one, "--cgroup", both, "--exclude-container", other.id)
    assert one.pid in found and other.pid not in found, sorted(found)


@pytest.mark.parametrize("options", [(), ("--without-kernel-feature", "ancestor_cgroups")], ids="".join)
def test_control_groups_below_one(options):
    """Also where no helper tells a group's ancestors (before 5.15): not a process in a group beside it."""
    python = harness.default_python()
    with contextlib.ExitStack() as stack:
        started = {}
        for path in "pybpf-outer", "pybpf-outer/middle/inner", "pybpf-outer-beside":
            where, process = stack.enter_context(
                cgroups.inside(path, python.command(*SPIN), stdout=subprocess.PIPE, bufsize=0)
            )
            harness.read_ready_line(process)
            started[path] = (where, process.pid)
        run = pybpf("--cgroup", started["pybpf-outer"][0].path, "-d", 0.4, "-F", FOUR_TIMES, *options)
        assert run.code == 0, run.err
        inside = {started[path][1] for path in ("pybpf-outer", "pybpf-outer/middle/inner")}
        assert set(by_process(run)) == inside, by_process(run)


def test_listed_with_both_pids(web):
    host, one, other = web
    run = pybpf("ps")
    assert run.code == 0, run.err
    for each in one, other:
        row = next(row.split() for row in run.out.splitlines() if row.split()[:1] == [str(each.pid)])
        assert row[1] == "1" and any("3.13" in word for word in row) and each.id in row, row
    row = next(row.split() for row in run.out.splitlines() if row.split()[:1] == [str(host.pid)])
    assert "1" != row[1] and one.id not in row


def named_cgroups():
    docker, pod_id, crio = (secrets.token_hex(32) for _ in range(3))
    uid = "%s-%s-%s-%s-%s" % tuple(secrets.token_hex(n) for n in (4, 2, 2, 2, 6))
    podman, old = (secrets.token_hex(32) for _ in range(2))
    sliced = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%s.slice" % uid.replace("-", "_")
    return {
        "docker, systemd": ("system.slice/docker-%s.scope" % docker, docker),
        "docker, cgroupfs": ("docker/%s" % old, old),
        "podman": ("machine.slice/libpod-%s.scope/container" % podman, podman),
        "kubernetes, containerd": ("%s/cri-containerd-%s.scope" % (sliced, pod_id), pod_id),
        "kubernetes, CRI-O": ("kubepods/burstable/pod%s/crio-%s" % (uid, crio), crio),
    }


@pytest.mark.parametrize("version", ["v2", "v1"])
def test_control_groups_of_other_runtimes(version):
    """Known by the names of their directories alone: the ID's first characters stand for the name."""
    try:
        mount = cgroups.unified() if version == "v2" else cgroups.with_controller()
    except cgroups.Missing as missing:
        pytest.skip(str(missing))
    python = harness.default_python()
    with contextlib.ExitStack() as stack:
        started = {}
        for name, (path, ident) in named_cgroups().items():
            place, process = stack.enter_context(
                cgroups.inside(path, python.command("spin.py"), mount, stdout=subprocess.PIPE, bufsize=0)
            )
            harness.read_ready_line(process)
            started[name] = (place, process.pid, ident)
        with sampling("--all", "--by=container") as run:
            spent = cgroups.spent([place for place, _, _ in started.values()], 1.5)
        found = by_process(run, container=True)
        for (name, (_, pid, ident)), cpu_s in zip(started.items(), spent):
            root, stacks = found[pid]
            assert (root.container, root.inner) == (ident[:12], None), (name, root)
            check_spent(run, total(stacks), cpu_s, name)
        for name in list(started)[:2]:
            place, pid, ident = started[name]
            for words in ["--container", ident[:8]], ["--cgroup", place.path]:
                run = pybpf(*words, "-d", 0.4, "-F", RATE)
                assert run.code == 0, run.err
                assert list(by_process(run)) == [pid], (name, words)
@pytest.mark.parametrize("words", [["--all", "--by=container"], ["--cgroup", "PARENT", "--by=container"]])
def test_container_that_starts_and_ends_during_the_run(words):
    need()
    with cgroups.directory("pybpf-parent-" + secrets.token_hex(4)) as parent:
        name = parent.path.name
        words = [str(parent.path) if word == "PARENT" else word for word in words]
        with sampling(*words) as run:
            with container("late", command("spin.py"), cgroup="/%s/late" % name) as late:
                pid = late.pid
                harness.wait_for(lambda: late.cpu_s() >= 1.5)
                late.stop()
    root, stacks = by_process(run, container=True)[pid]
    assert root.inner == 1 and root.name == "python3.13"
    assert root.container == late.id or root.container.startswith("late")
    # The runtime's own start is on the container's account, too, and that of Python until it is found.
    assert total(stacks) >= 0.8 * (late.spent_s - run.stalled_s) * RATE, (total(stacks), late.spent_s, run.stats)
    assert spinning(stacks, 0.8)


def test_container_that_stops_ends_the_run():
    need()
    with container("stops", command("spin.py")) as stops:
        pid = stops.pid
        with sampling("--container", stops.id, ends=True) as run:
            time.sleep(0.5)
            stops.stop()
    assert spinning(by_process(run)[pid][1])


def test_empty_container():
    """All its processes are gone, and its directory is still there."""
    ident = secrets.token_hex(32)
    with cgroups.directory("docker/" + ident) as empty:
        run = pybpf("--container", ident[:12], "-d", 0.4)
        assert run.code != 0 and run.out == ""
        assert ident[:12] in one_sentence(run.err)
        # A control group may get processes later.
        run = pybpf("--cgroup", empty.path, "-d", 0.4)
        assert run.code == 0 and run.out == "" and "no Python process was found" in run.err


@pytest.mark.parametrize("path", ["/usr", "/nonexistent/group", "/dev/null", "no/such/group", ""])
def test_control_group_outside_of_the_hierarchy(path):
    run = pybpf("--cgroup", path, "-d", 0.4)
    assert run.code != 0 and run.out == ""
    assert path in one_sentence(run.err)


def test_a_file_that_is_gone_or_harmful():
    """What a container's process is mapped from has been deleted, is a FIFO now, or leads out of the container."""
    need()
    kinds = ("deleted", "fifo", "symlink")
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(container(kind, command("vanish.py", kind), user_namespace=False)) for kind in kinds
        ]
        pids = [next(pid for pid in one.pids() if containers.inner_pid(pid) == one.says["pid"]) for one in started]
        with sampling("--all", "--by=container") as run:
            time.sleep(2)
    found = by_process(run, container=True)
    for kind, pid, one in zip(kinds, pids, started):
        root, stacks = found[pid]
        assert root.container == one.id and root.inner == one.says["pid"], (kind, root)
        assert spinning(stacks), kind


@pytest.mark.parametrize("how", ["chroot", "setns"])
def test_a_process_that_moves(how, tmp_path):
    """It gets another root, or another mount namespace, during the run: code from before and after has its names."""
    python = harness.default_python()
    with processes.program(python, "moves.py", how, tmp_path) as running:
        with sampling("--all") as run:
            said = processes.end(running)
    assert said["own_s"] > 0.6
    stacks = by_process(run)[running.pid][1]
    for name, file in ("before", "moves.py"), ("after", "made_after.py"):
        samples = sum(
            count
            for stack, count in stacks
            if any(frame.name == name and os.path.basename(frame.file) == file for frame in stack)
        )
        processes.at_least(run, samples, 0.3, 60, what="samples in " + name)


def run_inside(name, *args, more=None, without=(), **options):
    """pybpf as the program of a privileged container of this very machine's file system, without some of its folders."""
    argv = ["/usr/local/bin/pybpf", *map(str, args)]
    options.update(root="/", user_namespace=False, privileged=True, ready=False)
    if without:
        # What is mounted there hides the folder.
        argv = ["/bin/sh", "-ec", "for f in %s; do mount -t tmpfs none $f; done; exec \"$@\"" % " ".join(without), "sh", *argv]
    with container(name, argv, binds={harness.PYBPF: "/usr/local/bin/pybpf", **(more or {})}, **options) as around:
        out = around.process.stdout.read()
        status = around.process.wait(harness.PATIENCE)
        return harness.Run(status, out.decode("utf-8", "surrogateescape"), around.messages())


def test_from_inside_of_a_privileged_container(web):
    """With the host's PIDs, it profiles the host and other containers."""
    host, one, _ = web
    run = run_inside("profiler", "--all", "--by=container", "-d", 1.5, "-F", FOUR_TIMES, host_pids=True)
    assert run.code == 0, run.err
    found = by_process(run, container=True)
    assert found[host.pid][0].container == "[host]" and spinning(found[host.pid][1])
    assert check_inside(found, one).container == one.id


def test_names_from_inside_of_a_container(web):
    """Where the container has files of its own, the host's root is mounted at /host, as docs/containers.md has it."""
    _, one, _ = web
    assert "-v /:/host:ro" in (Path(__file__).parents[2] / "docs" / "containers.md").read_text(encoding="utf-8")
    for words, wanted in (["ps"], one.id), (["doctor"], "each with its name"):
        run = run_inside("names", *words, host_pids=True, more={"/": "/host"}, without=["/run"])
        assert wanted in run.out, (run.out[run.out.find("container names"):], run.err)


def test_inside_a_container_with_its_own_pids_it_says_what_is_missing():
    need()
    run = run_inside("blind", "--all", "-d", 0.4)
    assert run.code == 0 and run.out == ""
    assert "PID namespace" in run.err and "--pid=host" in run.err
