# SPDX-License-Identifier: Apache-2.0
"""The descriptors that each process of a run holds: what it does not hold, a taken-over one cannot misuse."""

import collections
import contextlib
import fcntl
import os
import re
import subprocess

import pytest

import harness
from test_rights import children, committer_of, forkserver_of, opener_of, running

pytestmark = pytest.mark.usefixtures("profiler")

NULL = "/dev/null"
# What the running pybpf has open: its programs, their attachments, what they write to, and how it waits for that.
SAMPLING = {"bpf-map", "bpf-prog", "bpf_link", "bpf-stats", "btf", "perf_event", "eventpoll", "signalfd"}
MOST_HELPERS = 3


def descriptors(pid):
    """What /proc/PID/fd has, by number."""
    links = {}
    for name in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            links[int(name)] = os.readlink("/proc/%d/fd/%s" % (pid, name))
    return links


def descriptors_at_rest(pid):
    """The same of the main process, but for those that it has for a moment: it reads how large its maps are."""

    def read():
        links = descriptors(pid)
        return None if any("/fdinfo/" in link for link in links.values()) else links

    return harness.wait_for(read)


def kind_of(link):
    if link.startswith("anon_inode:"):
        return link.partition(":")[2].strip("[]")
    return "socket" if link.startswith("socket:") else link


def kinds(links, begin=3):
    return collections.Counter(kind_of(link) for fd, link in links.items() if fd >= begin)


def inodes(links):
    """The inodes of its sockets."""
    return {int(link[8:-1]) for link in links.values() if link.startswith("socket:[")}


@contextlib.contextmanager
def handed_on(path):
    """A descriptor that the caller's shell has left open, with a number that pybpf does not reach by itself."""
    fd = os.open(path, os.O_RDONLY)
    high = fcntl.fcntl(fd, fcntl.F_DUPFD, 500)
    os.close(fd)
    os.set_inheritable(high, True)
    try:
        yield high
    finally:
        os.close(high)


def test_each_process_of_a_run(spinning, tmp_path):
    """Main, forkserver, helpers, committer and opener; each has what its work needs, and no end of a socket that another one has."""
    left_open = tmp_path / "left-open"
    left_open.write_text("")
    html, stats = tmp_path / "p.html", tmp_path / "stats.json"
    with handed_on(left_open) as high, running(
        "-o", html, "--json-stats", stats, "-p", spinning.pid, "-d", 4, pass_fds=[high]
    ) as process:
        forkserver = forkserver_of(process.pid)
        committer, helpers = committer_of(process.pid), children(forkserver)
        main = descriptors_at_rest(process.pid)
        forkservers, committers, openers = map(descriptors, (forkserver, committer, opener_of(process.pid)))
        helping = [descriptors(pid) for pid in helpers]
        err = os.readlink("/proc/%d/fd/2" % process.pid)
    assert 1 <= len(helpers) <= MOST_HELPERS

    # The forkserver: its socket, whose other end the main process has.
    assert kinds(forkservers) == {"socket": 1}
    assert [forkservers[fd] for fd in range(3)] == [NULL] * 3
    # A helper: its socket, and how long it has waited for a CPU.
    for pid, links in zip(helpers, helping):
        assert kinds(links) == {"socket": 1, "/proc/%d/schedstat" % pid: 1}
        assert [links[fd] for fd in range(3)] == [NULL] * 3
    # The opener: its socket, stderr, and the program that it attaches.
    assert kinds(openers) == {"socket": 1, "bpf-prog": 1}
    assert [openers[fd] for fd in range(3)] == [NULL, NULL, err]
    # The committer: its socket, stderr, and for each output the folder, and the file twice: to name it and to close it.
    assert [committers[fd] for fd in range(3)] == [NULL, NULL, err]
    (to_committer,) = inodes(committers)
    rest = collections.Counter(committers.values()) - collections.Counter([NULL, NULL, err, "socket:[%d]" % to_committer])
    assert rest.pop(str(tmp_path)) == 2
    # Likewise for what is written if the disk has no room, where there is a folder on another one.
    spare = [folder for folder in ("/tmp", "/var/tmp", "/dev/shm") if rest.pop(folder, 0)]
    assert len(spare) <= 1 and set(rest.values()) == {2} and len(rest) == 2 + len(spare)
    folders = "|".join(re.escape(folder) for folder in (str(tmp_path), *spare))
    assert all(re.fullmatch(r"(%s)/(#\d+ \(deleted\)|\.pybpf-\w+)" % folders, name) for name in rest), rest

    # The main process: the other ends, what it samples with, its outputs' streams, and what its caller handed on.
    assert main[high] == str(left_open)
    own = kinds(main)
    assert own.pop(str(left_open)) == 1
    for name in rest:
        assert own.pop(name) == 1
    assert own.pop("socket") == len(inodes(main)) == 3 + len(helpers)
    assert own.pop("pidfd") == len(helpers)
    assert set(own) <= SAMPLING, own
    # No two processes have the same end of a socket.
    ends = [inode for links in [main, forkservers, committers, openers, *helping] for inode in inodes(links)]
    assert len(ends) == len(set(ends))
    for links in [forkservers, committers, openers, *helping]:
        assert str(left_open) not in links.values()


COMMAND = "import os; print(*('%s %s' % (f, os.readlink('/proc/self/fd/' + f)) for f in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + f)), sep='\\n', flush=True)"


@pytest.mark.parametrize("user", [None, "nobody"])
def test_the_command(tmp_path, user):
    """It gets the standard streams, and what pybpf's caller handed on unless it runs as another user; nothing else."""
    left_open = tmp_path / "left-open"
    left_open.write_text("")
    with handed_on(left_open) as high:
        done = subprocess.run(
            [harness.PYBPF, "-q", "-o", tmp_path / "p.html", *(["--as", user] if user else []), "--", "/usr/bin/python3", "-c", COMMAND],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[high],
            timeout=4 * harness.PATIENCE,
            check=True,
        )
    rows = dict(row.split(" ", 1) for row in done.stdout.decode().splitlines())
    assert {"0", "1", "2"} <= set(rows) and rows["0"] == NULL
    beyond = {int(fd): link for fd, link in rows.items() if int(fd) > 2}
    assert beyond == ({} if user else {high: str(left_open)})
