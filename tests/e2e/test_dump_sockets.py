# SPDX-License-Identifier: Apache-2.0
"""pybpf dump: whom a unix socket is connected to, also where another user wants to be taken for that."""

import json
import os
import pwd
import subprocess
from pathlib import Path

import pytest

import harness
from harness import pybpf
from test_dump import by_name, dump

# A name with a newline, behind which stands what /proc/net/unix has of a socket: its address, counters, state, inode and name.
FORGER = r"""
import json, socket, sys
held = []
for number, inode in enumerate(json.loads(sys.argv[1])):
    name = "\0%d\n0000000000000000: 00000003 00000000 00000000 0001 03 %d /run/postgresql/.s.PGSQL.5432" % (number, inode)
    held.append(socket.socket(socket.AF_UNIX))
    held[-1].bind(name)
print("[]"); sys.stdout.flush()
sys.stdin.read()
"""


def wait_until_asleep(pid):
    """It sleeps only after it has said that it is there."""
    harness.wait_for(lambda: harness.state(pid) == "S")


def causes(pid, *args):
    wait_until_asleep(pid)
    return {name: thread["cause"] for name, thread in by_name(dump(pid, *args)).items()}


def expected(says):
    return {
        "MainThread": "[sleep]",
        "pair": "[network: unix]",
        "path": "[network: unix %s]" % says["path"],
        "abstract": "[network: unix @peers-%d]" % says["inside"],
        "odd": "[network: unix @odd\nname%d]" % says["inside"],
        "bound": "[network: unix %s.d]" % says["path"],
        "accepted": "[network: unix %s]" % says["path"],
    }


def test_whom_a_unix_socket_is_connected_to():
    with harness.target(harness.default_python(), "peers.py") as target:
        found = causes(target.pid)
        text = pybpf("dump", "-p", target.pid, "--no-source").out
        wanted = expected(dict(target.says, inside=target.pid))
    assert found == wanted
    # A newline in a name begins no line.
    assert "[network: unix @odd\\x0aname%d]" % target.pid in text


def test_a_name_that_shows_another_users_socket():
    """A socket pair without a name is only called that, whatever another user calls his own sockets."""
    nobody = pwd.getpwnam("nobody")
    with harness.target(harness.default_python(), "peers.py") as target:
        argv = ["/usr/bin/setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups"]
        argv += ["/usr/bin/python3", "-c", FORGER, json.dumps(list(target.says["inodes"].values()))]
        with harness.started(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as forger:
            harness.read_ready_line(forger)
            # Whoever reads the lines of this file takes them for true.
            lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
            inode = str(target.says["inodes"]["pair"])
            assert any(line.split()[6:] == [inode, "/run/postgresql/.s.PGSQL.5432"] for line in lines)
            found = causes(target.pid)
            wanted = expected(dict(target.says, inside=target.pid))
    assert found == wanted


@pytest.mark.parametrize("options", [["--net"], ["--net", "--user", "--map-root-user"]], ids=["net", "net-of-a-user"])
def test_a_socket_in_another_network(options):
    argv = ["/usr/bin/unshare", *options, *harness.default_python().command("peers.py")]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        says = harness.read_ready_line(process)
        found = causes(process.pid)
        everywhere = pybpf("dump", "--all", "--json", "--no-source")
    assert found == expected(dict(says, inside=process.pid))
    rows = [json.loads(line) for line in everywhere.out.splitlines()]
    (snapshot,) = [row for row in rows if row["pid"] == process.pid]
    assert {name: thread["cause"] for name, thread in by_name(snapshot).items()} == found


def test_it_stays_in_its_own_network():
    """Sockets of another network are asked for there; names of users are looked up in its own."""
    argv = ["/usr/bin/unshare", "--net", *harness.default_python().command("peers.py")]
    with harness.started(argv, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        watch = [harness.PYBPF, "dump", "-p", str(process.pid), "--watch", "60s", "--no-source"]
        with harness.started(watch, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as watching:
            while b"network" not in watching.stdout.readline():
                assert watching.poll() is None
            where = [os.readlink("/proc/%s/ns/net" % pid) for pid in ("self", watching.pid, process.pid)]
    assert where[0] == where[1] != where[2], where


def test_ones_own_process_without_rights():
    """The kernel tells everybody whom sockets of his own network are connected to."""
    nobody = pwd.getpwnam("nobody")
    as_nobody = ["/usr/bin/setpriv", "--reuid", str(nobody.pw_uid), "--regid", str(nobody.pw_gid), "--clear-groups"]
    with harness.for_everybody(harness.PYBPF, harness.TOP / "tests/targets/peers.py") as (binary, program):
        with harness.started([*as_nobody, "/usr/bin/python3", "-B", program], stdout=subprocess.PIPE, bufsize=0) as process:
            says = harness.read_ready_line(process)
            wait_until_asleep(process.pid)
            argv = [*as_nobody, binary, "dump", "-p", str(process.pid), "--json", "--no-source"]
            run = subprocess.run(argv, capture_output=True, text=True)
    assert not run.returncode, run.stderr
    found = {name: thread["cause"] for name, thread in by_name(json.loads(run.stdout)).items()}
    assert found == expected(dict(says, inside=process.pid))
