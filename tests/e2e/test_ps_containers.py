# SPDX-License-Identifier: Apache-2.0
"""pybpf ps on real containers of crun and runc: who is in which, by name, by ID, by control group."""

import contextlib
import json
import os
import subprocess
import time

import pytest

import cgroups
import containers
import harness
from harness import one_sentence, pybpf

pytestmark = pytest.mark.usefixtures("profiler")


@pytest.fixture(params=containers.RUNTIMES)
def runtime(request):
    why = containers.why_not(request.param)
    if why:
        pytest.skip(why)
    return request.param


def rows(*args):
    run = pybpf("ps", "--json", *args)
    assert run.code == 0, run
    return {row["pid"]: row for row in json.loads(run.out)}


@contextlib.contextmanager
def spinning(name, runtime, **options):
    with containers.container(name, containers.command("spin.py", "--nap=0.001"), runtime, **options) as running:
        yield running


@pytest.mark.parametrize("user_namespace", [False, True], ids=["root", "user-namespace"])
def test_container(runtime, user_namespace):
    with spinning("web", runtime, user_namespace=user_namespace) as web, spinning("db", runtime) as other:
        everybody = rows()
        pid, others = web.pid, other.pid
        row = everybody[pid]
        table = pybpf("ps", "--container", web.id).out.split("\n")
        assert everybody[others]["container"]["id"] == other.id
        assert rows("--container", web.id).keys() == {pid}
        assert rows("--container", web.id[:5]).keys() == {pid}  # "web-" and a digit
        assert rows("--container", web.id, "--container", other.id).keys() == {pid, others}
        assert rows("--exclude-container", web.id).keys() & {pid, others} == {others}
    assert row["version"].startswith("3.13") and row["not_supported"] is None
    assert row["inside_pid"] == 1 and row["uid"] == (containers.FIRST_ID if user_namespace else 0)
    assert row["container"] == {"id": web.id, "name": web.id, "runtime": runtime, "pod_uid": None}
    assert table[1].split()[:4] == [str(pid), "1", row["version"], web.id]


def test_cgroup(runtime):
    """By its directory, and by the path in the hierarchy; what is below a group belongs to it."""
    with spinning("web", runtime, cgroup="/pybpf-ps/web") as web:
        with spinning("db", runtime, cgroup="/pybpf-ps/db") as other:
            assert rows("--cgroup", web.cgroup.path).keys() == {web.pid}
            assert rows("--cgroup", "/pybpf-ps/web").keys() == {web.pid}
            assert rows("--cgroup", "/pybpf-ps").keys() == {web.pid, other.pid}
            assert rows("--cgroup", "/pybpf-ps/web", "--container", other.id).keys() == {web.pid, other.pid}
            run = pybpf("ps", "--cgroup", web.cgroup.path / "cgroup.procs")
            assert run.code == 1 and "a file" in one_sentence(run.err)


def test_ambiguous(runtime):
    with spinning("twin", runtime) as one, spinning("twin", runtime) as two:
        run = pybpf("ps", "--container", "twin")
    assert run.code == 1 and run.out == ""
    sentence = one_sentence(run.err)
    assert "2 match" in sentence and one.id in sentence and two.id in sentence and runtime in sentence


def test_container_that_has_ended(runtime):
    """Its runtime still knows it; then nobody does."""
    with spinning("short", runtime) as short:
        assert rows("--container", short.id).keys() == {short.pid}
        containers.kill_all(short.cgroup)
        harness.wait_for(lambda: not short.cgroup.pids())
        run = pybpf("ps", "--container", short.id)
        assert run.code == 1 and short.id in one_sentence(run.err)
    run = pybpf("ps", "--container", short.id)
    assert run.code == 1 and "no running container" in one_sentence(run.err)


def test_kubernetes_path(runtime):
    """The path tells the container and the pod; without a state of containerd the ID's beginning is the name."""
    number, uid = os.urandom(32).hex(), "72f7f152-440c-66ac-9084-e0fc1d8a910c"
    path = "/pybpf-kubepods/kubepods-burstable-pod%s.slice/cri-containerd-%s.scope" % (uid.replace("-", "_"), number)
    with spinning("pod", runtime, cgroup=path) as pod:
        pid = pod.pid
        container = rows("--container", number[:7])[pid]["container"]
        assert rows("--container", number).keys() == {pid}
    assert container == {"id": number, "name": number[:12], "runtime": "containerd", "pod_uid": uid}


def test_shell_in_the_container_is_not_listed(runtime):
    program = containers.command("spin.py", "--nap=0.001")
    script = "'%s' '%s' & exec sleep 300" % tuple(program[:2])
    with containers.container("mixed", ["/bin/sh", "-c", script], runtime, ready=True) as mixed:
        pids = mixed.pids()
        found = rows("--container", mixed.id)
        assert len(pids) == 2 and len(found) == 1
        ((pid, row),) = found.items()
        assert pid in pids and row["inside_pid"] > 1


@pytest.fixture
def own_namespace():
    """Runs a command in a cgroup namespace, and group, of its own: the groups of others have paths like /../../x there."""
    place = cgroups.unified() / "pybpf-ps-own" / "inner"
    place.mkdir(parents=True)
    private = 'echo 0 >"$0/cgroup.procs" && exec unshare --mount --cgroup sh -c "$@"'

    def run(script, *args):
        argv = ["sh", "-c", private, place, script, "sh", *args]
        return subprocess.run(argv, capture_output=True, text=True, timeout=harness.PATIENCE)

    yield run
    harness.wait_for(lambda: not cgroups.Directory(place).pids())
    place.rmdir()
    place.parent.rmdir()


def test_own_cgroup_namespace(runtime, own_namespace):
    """With the host's mounts containers are found all the same; without them it is said what helps."""
    number = os.urandom(32).hex()
    with spinning("pod", runtime, cgroup="/pybpf-ps/cri-containerd-%s.scope" % number) as pod:
        pid = pod.pid
        ps = [harness.PYBPF, "ps", "--container", number[:10]]
        with_mounts = own_namespace('exec "$@"', *ps)
        script = 'umount -l "$1" && mount -t cgroup2 none "$1" && shift && exec "$@"'
        without = own_namespace(script, cgroups.unified(), *ps)
    assert with_mounts.returncode == 0 and str(pid) in with_mounts.stdout, with_mounts.stderr
    assert without.returncode == 1
    sentence = one_sentence(without.stderr)
    assert "namespace of its own" in sentence and "--cgroupns=host" in sentence


@pytest.mark.parametrize("user_namespace", [False, True], ids=["root", "user-namespace"])
def test_without_map_files(runtime, user_namespace):
    """Without the capabilities for /proc/PID/map_files the files are found below the container's own root."""
    drop = "-sys_admin,-checkpoint_restore"
    with spinning("web", runtime, user_namespace=user_namespace) as web:
        pid = web.pid
        done = subprocess.run(
            ["setpriv", "--bounding-set=" + drop, "--inh-caps=" + drop, harness.PYBPF, "ps", "--json", "-p", str(pid)],
            capture_output=True,
            text=True,
        )
    (row,) = json.loads(done.stdout)
    assert row["version"].startswith("3.13") and row["container"]["id"] == web.id, done


def test_many_start_and_end(runtime):
    """Lists are whole while containers come and go."""
    with spinning("steady", runtime) as steady:
        with containers.container("brief", ["/bin/true"], runtime, ready=False) as brief:
            for _ in range(5):
                assert steady.pid in rows()
                time.sleep(0.05)
            brief.process.wait(harness.PATIENCE)
        assert rows("--container", steady.id).keys() == {steady.pid}
