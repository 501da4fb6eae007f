# SPDX-License-Identifier: Apache-2.0
"""Causes of waits that the system call alone does not tell, in --mode=wall and in dump."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

import cgroups
import fuse
import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")

US = 1e6
# Those that wait in other system calls: sleep() in select(), and in clock_nanosleep() with a time of its end.
some_versions = pytest.mark.parametrize(
    "python",
    [item for item in pythons.of_each_version(pythons.interpreters()) if item.version in ((3, 6), (3, 9), (3, 12), pythons.NEWEST)],
    ids=lambda item: item.name,
)


def waits_in(function):
    """Names are qualified since 3.11."""
    return function.split(".")[-1].startswith("wait_")


def waits(run):
    """Microseconds by leaf, of the main thread's wait_ function."""
    found = {}
    for stack, us in run.stacks():
        if any(waits_in(frame.name) for frame in stack) and stack[-1].text.startswith("["):
            found[stack[-1].text] = found.get(stack[-1].text, 0) + us
    return found


def walls(target, seconds=1.0, *options):
    return waits(harness.record(target.pid, "--mode=wall", "--idle", *options, seconds=seconds, rate=99))


def most(found):
    assert found
    return max(found, key=found.get)


def dumped(target):
    run = pybpf("dump", "-p", target.pid, "--json")
    assert run.code == 0, run.err
    threads = json.loads(run.out)["threads"]
    causes = [one["cause"] for one in threads if any(waits_in(frame["function"]) for frame in one["frames"])]
    return causes[0] if causes else None


@contextlib.contextmanager
def slow_file(tmp_path):
    """A file of which each page takes its time."""
    try:
        with fuse.mounted(tmp_path / "mnt", b"x" * (1 << 20), 0.05) as server:
            server.delay()
            yield tmp_path / "mnt" / "file"
    except fuse.Missing as error:
        pytest.skip(f"no file system in user space here: {error}")


def fast_python():
    return harness.default_python()


@pytest.mark.parametrize(
    "kind, cause",
    [
        ("sendfile_to_socket", "[disk: read file]"),
        ("send_of_mapped_file", "[disk: page fault]"),
        ("copy_to_fast_disk", "[disk: read file]"),
    ],
)
def test_a_slow_disk_is_no_network_and_no_other_file(tmp_path, kind, cause):
    with slow_file(tmp_path) as path, harness.target(fast_python(), "causes.py", kind, str(path)) as target:
        found = walls(target, 1.5)
    disk = {leaf: us for leaf, us in found.items() if not leaf.startswith(("[GIL", "[waiting"))}
    # The file is opened and closed, and open() asks for its size and whether it is a terminal.
    others = ("[disk]", "[disk: metadata file]", "[other: ioctl]", "[other: close]")
    reads = {leaf: us for leaf, us in disk.items() if leaf not in others}
    assert reads.get(cause, 0) > 0.95 * sum(reads.values()) > 0.05 * US, found


def test_the_process_of_a_pidfd_is_named():
    for kind, cause in (("child_by_descriptor", "[child: %(child)d]"), ("other_by_descriptor", "[other: process %(other)d]")):
        with harness.target(fast_python(), "causes.py", kind) as target:
            cause = cause % target.says
            harness.wait_for(lambda: dumped(target) == cause)
            assert most(walls(target)) == cause


@pytest.mark.parametrize(
    "kind, cause", [("vfork_by_clone", "[child]"), ("vfork_by_clone3", "[child]"), ("fork_that_waits", "[other: clone]")]
)
def test_a_fork_waits_for_no_child_unless_it_is_a_vfork(kind, cause):
    with harness.target(fast_python(), "causes.py", kind) as target:
        harness.wait_for(lambda: dumped(target) == cause)
        assert most(walls(target)) == cause


def test_a_fork_that_begins_while_it_is_profiled():
    """Its flags are read when it falls asleep."""
    for kind, cause in (("vfork_by_clone3", "[child]"), ("fork_that_waits", "[other: clone]")):
        with harness.target(fast_python(), "causes.py", kind, "later") as target:
            later = threading.Timer(1, os.kill, (target.pid, signal.SIGUSR1))
            later.start()
            found = walls(target, 2.5)
            later.join()
        assert found[cause] > 0.5 * US and not {"[child]", "[other: clone]"} - {cause} & found.keys(), found


def test_a_child_has_no_number_of_another_namespace(tmp_path):
    script = "import os, subprocess\ndef wait_child():\n    subprocess.Popen(['sleep', '1000']).wait()\nwait_child()"
    argv = ["/usr/bin/unshare", "--pid", "--fork", "--kill-child", fast_python().argv[0], "-c", script]
    with harness.started(argv) as process:
        harness.wait_for(lambda: children(process.pid) and children(children(process.pid)[0]))
        run = harness.record(children(process.pid)[0], "--mode=wall", "--idle", rate=99)
        assert most(waits(run)) == "[child]"


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(child) for child in file.read().split()]


@some_versions
@pytest.mark.parametrize(
    "kind, cause", [("lock_with_limit", "[lock]"), ("polls_with_limit", "[poll: 2 descriptors]"), ("nap", "[sleep]")]
)
def test_a_wait_keeps_its_cause_after_a_stop(python, kind, cause):
    """SIGCONT goes on with restart_syscall(), which says nothing of what is waited for."""
    with harness.target(python, "causes.py", kind) as target:
        harness.wait_for(lambda: dumped(target) == cause)
        os.kill(target.pid, signal.SIGSTOP)
        harness.wait_for(lambda: harness.state(target.pid) == "T")
        os.kill(target.pid, signal.SIGCONT)
        harness.wait_for(lambda: harness.state(target.pid) == "S")
        assert dumped(target) == cause
        assert most(walls(target, 0.4)) == cause


@some_versions
def test_a_wait_from_before_the_run_has_its_peer_and_the_name_of_its_thread(python):
    """A socket with a time limit waits in poll(), for a descriptor that is in the program's memory."""
    with harness.target(python, "causes.py", "receive_with_limit") as target:
        cause = "[network: tcp 127.0.0.1:%d]" % target.says["port"]
        harness.wait_for(lambda: "wait_receive" in pybpf("dump", "-p", target.pid).out)
        run = harness.record(target.pid, "--mode=wall", "--idle", "--threads", seconds=0.4, rate=99)
        assert cause in pybpf("dump", "-p", target.pid).out
    asks = [stack for stack, _ in run.stacks() if any(frame.name.endswith("wait_receive") for frame in stack)]
    assert {stack[-1].text for stack in asks} == {cause}, run.out
    assert {stack[0].name for stack in asks} == {"asks-for-it"}, run.out


def test_the_clients_of_a_server_are_one():
    with harness.target(fast_python(), "causes.py", "clients") as target:
        run = harness.record(target.pid, "--mode=wall", seconds=0.5, rate=99)
        # dump shows the clients that wait at that moment.
        peer = re.compile(r"\[network: tcp 127\.0\.0\.1:\d+\]")
        harness.wait_for(lambda: len(set(peer.findall(pybpf("dump", "-p", target.pid).out))) > 10)
    clients = {leaf for leaf in waits(run) if leaf.startswith("[network")}
    assert clients == {"[network: tcp clients of :%d]" % target.says["port"]}


@some_versions
def test_what_ended_a_wait_for_an_epoll_set(python):
    with harness.target(python, "causes.py", "ready") as target:
        cause = "[poll: epoll until tcp 127.0.0.1:%d]" % target.says["port"]
        found = walls(target, 1.0)
        harness.wait_for(lambda: dumped(target) == "[poll: epoll]")
    assert {leaf for leaf in found if leaf.startswith("[poll")} == {cause, "[poll: epoll until a pipe]", "[poll: epoll]"}


def test_an_epoll_set_that_is_polled_is_one():
    with harness.target(fast_python(), "causes.py", "polled_set") as target:
        harness.wait_for(lambda: dumped(target) == "[poll: epoll]")
        assert most(walls(target)) == "[poll: epoll]"
    with harness.target(fast_python(), "causes.py", "polled_set_in_turns") as target:
        found = walls(target)
    assert most(found) == "[poll: epoll]" and not any(leaf.startswith("[other") for leaf in found), found


@pytest.mark.parametrize("kind", ["netlink", "packet"])
def test_sockets_of_the_kernel_are_named(kind):
    with harness.target(fast_python(), "causes.py", kind) as target:
        harness.wait_for(lambda: dumped(target) == "[network: %s]" % kind)
        assert most(walls(target)) == "[network: %s]" % kind


def test_other_calls_are_named():
    with harness.target(fast_python(), "causes.py", "close_that_lingers") as target:
        harness.wait_for(lambda: dumped(target) == "[other: close]")
        assert most(walls(target)) == "[other: close]"


def test_nobody_knows_for_which_of_its_pipes_splice_waits():
    with harness.target(fast_python(), "causes.py", "splice") as target:
        harness.wait_for(lambda: dumped(target) == "[other: splice]")
        assert most(walls(target)) == "[other: splice]"


def test_a_datagram_socket_without_a_peer_has_its_own_port():
    with harness.target(fast_python(), "causes.py", "datagram") as target:
        cause = "[network: udp on 127.0.0.1:%d]" % target.says["port"]
        harness.wait_for(lambda: dumped(target) == cause)
        assert most(walls(target)) == cause


def test_names_that_are_cut_are_told_from_each_other():
    found = []
    for end in ("one", "two"):
        with harness.target(fast_python(), "causes.py", "long_name", end) as target:
            path = target.says["path"]
            harness.wait_for(lambda: (dumped(target) or "").startswith("[network: unix"))
            told = most(walls(target))
            assert dumped(target) == told
        start, last = re.fullmatch(r"\[network: unix (.*)\.\.\.(.*)\]", told).groups()
        assert path.startswith(start) and path.endswith(last) and len(start) > 10 and len(last) > 10
        found.append(told)
    assert len(set(found)) == 2


def by_state(run):
    return run.stats["state_s"]


@contextlib.contextmanager
def with_quota(quota_us):
    try:
        mount = cgroups.with_controller("cpu")
    except cgroups.Missing as error:
        pytest.skip(str(error))
    python = fast_python()
    with cgroups.inside("pybpf-quota", python.command("causes.py", "work"), mount, stdout=subprocess.DEVNULL) as (place, process):
        (place.path / "cpu.cfs_period_us").write_text("100000")
        (place.path / "cpu.cfs_quota_us").write_text(str(quota_us))
        yield place, process


def throttled_s(place):
    return int(re.search(r"throttled_time (\d+)", (place.path / "cpu.stat").read_text()).group(1)) / 1e9


def test_a_used_up_quota_is_no_wait_for_others(tmp_path):
    """The program alone could have a CPU all the time, and has a fifth of one."""
    saved = tmp_path / "saved.folded"
    with with_quota(20000) as (place, process):
        harness.wait_for(lambda: throttled_s(place) > 0)
        before = throttled_s(place)
        with during(process, saved) as run:
            least = throttled_s(place)
            time.sleep(2)
            least = throttled_s(place) - least
        most = throttled_s(place) - before
    states = by_state(run)
    # The kernel's count goes until the quota begins anew, that of the thread until it has a CPU.
    assert 0.1 < 0.6 * least < states["throttled"] < most + 0.2, (least, most, states)
    assert "[throttled: quota of 0.2 CPUs]" in saved.read_text(encoding="utf-8")
    assert abs(sum(states.values()) - run.stats["duration_s"]) < 0.05 * run.stats["duration_s"], states


# Where a frozen thread sleeps, as compilers have it.
FREEZER = ("get_signal", "do_freezer_trap")


def is_frozen(place):
    return "\nfrozen 1\n" in "\n" + (place.path / "cgroup.events").read_text()


@pytest.mark.parametrize("kind", ["work", "nap"])
def test_a_frozen_control_group_of_version_2_is_stopped(kind):
    try:
        mount = cgroups.unified()
    except cgroups.Missing as error:
        pytest.skip(str(error))
    with cgroups.inside("pybpf-frozen-" + kind, fast_python().command("causes.py", kind), mount, stdout=subprocess.DEVNULL) as (place, process):
        harness.wait_for(lambda: pybpf("dump", "-p", process.pid).out.count("causes.py") > 2)
        with during(process) as run:
            begin = time.monotonic()
            (place.path / "cgroup.freeze").write_text("1")
            # It is called frozen somewhat before it leaves its CPU in get_signal().
            harness.wait_for(lambda: is_frozen(place) and Path("/proc/%d/wchan" % process.pid).read_text() in FREEZER)
            frozen = time.monotonic()
            time.sleep(1)
            thawed = time.monotonic()
            (place.path / "cgroup.freeze").write_text("0")
            harness.wait_for(lambda: not is_frozen(place))
            end = time.monotonic()
    assert 0.95 * (thawed - frozen) < by_state(run)["stopped"] < end - begin + 0.1, by_state(run)


def test_sleepers_that_are_thawed_are_stopped_no_more():
    """Where control groups of version 1 are mounted."""
    try:
        mount = cgroups.with_controller("freezer")
    except cgroups.Missing as error:
        pytest.skip(str(error))
    with cgroups.inside("pybpf-frozen", fast_python().command("causes.py", "nap"), mount, stdout=subprocess.DEVNULL) as (place, process):
        harness.wait_for(lambda: "wait_sleep" in pybpf("dump", "-p", process.pid).out)
        (place.path / "freezer.state").write_text("FROZEN")
        harness.wait_for(lambda: (place.path / "freezer.state").read_text() == "FROZEN\n")
        with during(process) as run:
            (place.path / "freezer.state").write_text("THAWED")
            harness.wait_for(lambda: (place.path / "freezer.state").read_text() == "THAWED\n")
            time.sleep(1)
    assert by_state(run).get("stopped", 0) < 0.5 * run.stats["duration_s"], by_state(run)


@contextlib.contextmanager
def during(process, out="/dev/null"):
    """What is done inside is done while pybpf records; the run is complete afterwards."""
    run = harness.Run(None, "", "")
    argv = [harness.PYBPF, "-p", str(process.pid), "--mode=wall", "--idle", "-o", out, "--json-stats", "/dev/stdout"]
    with harness.started(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recording:
        harness.wait_for(lambda: harness.samples_now(recording.pid))
        yield run
        recording.send_signal(signal.SIGTERM)
        out, err = recording.communicate(timeout=harness.PATIENCE)
    run.code, run.err = recording.returncode, err.decode("utf-8", "replace")
    assert run.code == 0, run.err
    run.stats = json.loads(out)
