# SPDX-License-Identifier: Apache-2.0
"""pybpf dump of a server of 300 threads: each is there with its name, its state and its stack, and the server goes on."""

import contextlib
import json
import socket
import threading

import pytest

import harness
import pythons
from harness import pybpf
from test_dump import by_name, dump, stack

CLIENTS = 300
SPINNING = 1
# What is waited for in a lock of Python, and what is waited for as such.
CAUSES = {
    "lock": "[lock]",
    "condition": "[lock]",
    "event": "[lock]",
    "queue": "[lock]",
    "sleep": "[sleep]",
    "pipe": "[pipe: read]",
    "select": "[poll: select]",
}
KINDS = [*CAUSES, "echo"]
VERSIONS = [(2, 7), (3, 6), (3, 8)] + [version for version in pythons.SUPPORTED if version >= (3, 11)]
some_versions = pytest.mark.parametrize(
    "python",
    [
        item
        for item in pythons.of_each_version([item for item in pythons.interpreters() if item.kind != "stripped"])
        if item.version in VERSIONS
    ],
    ids=lambda item: item.name,
)


class Client:
    """A connection to the server, whose thread there has a name and something to do."""

    def __init__(self, port, name, does):
        self.name, self.does = name, does
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=harness.PATIENCE)
        self.port = self.socket.getsockname()[1]
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.say("%s %s" % (name, does))

    def say(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def hear(self):
        line = self.lines.readline()
        assert line.endswith("\n"), "%s was not answered" % self.name
        return line[:-1]

    def answers(self):
        self.say("still there")
        return self.hear() == "still there"

    def close(self):
        self.lines.close()
        self.socket.close()


@contextlib.contextmanager
def connected(port, wanted):
    clients = {}
    try:
        for name, does in wanted:
            clients[name] = Client(port, name, does)
        for client in clients.values():
            assert client.hear() == "begins"
        yield clients
    finally:
        for client in clients.values():
            client.close()


def stacks_as_told(port):
    """What sys._current_frames() has in the server."""
    client = Client(port, "asks", "stacks")
    try:
        return json.loads(client.hear())
    finally:
        client.close()


def all_asleep(pid, awake=()):
    """Does each thread wait for what it was told to wait for, but for those?"""
    threads = [thread for thread in dump(pid)["threads"] if thread["name"] not in awake]
    return all(thread["state"] not in ("running", "on CPU", "waiting for a CPU", "GIL") for thread in threads)


def check(snapshot, clients, said):
    threads = by_name(snapshot)
    assert len(snapshot["threads"]) == len(threads) == len(clients) + 1
    assert set(threads) == {*clients, "MainThread"}
    holder = threads["holds"]["tid"]
    for name, client in clients.items():
        thread = threads[name]
        assert thread["python"], name
        if client.does == "spin":
            assert thread["state"] in ("running", "GIL", "on CPU", "waiting for a CPU"), thread
            assert thread["frames"][-1]["function"].endswith("do_spin"), json.dumps(thread)
            continue
        own = CAUSES.get(client.does, "[network: tcp 127.0.0.1:%d]" % client.port)
        assert thread["cause"] == own, name
        assert stack(thread) == said[name] and not thread["moving"], name
        assert thread["lock_holder"] == (holder if client.does == "lock" else None), name
    assert any(frame["function"].endswith("serve_forever") for frame in threads["MainThread"]["frames"])
    assert sum(thread["has_gil"] for thread in snapshot["threads"]) <= 1


class Asking(threading.Thread):
    """Has a client's line answered again and again, until it is stopped."""

    def __init__(self, client):
        super().__init__()
        self.client, self.answered, self.done = client, 0, threading.Event()

    def run(self):
        while not self.done.is_set():
            assert self.client.answers()
            self.answered += 1

    def finish(self):
        self.done.set()
        self.join(harness.PATIENCE)
        assert not self.is_alive()


@some_versions
def test_a_server_of_300_threads(python):
    wanted = [("holds", "holds")]
    wanted += [("%s-%d" % (KINDS[i % len(KINDS)], i), KINDS[i % len(KINDS)]) for i in range(CLIENTS - len(wanted) - SPINNING)]
    with harness.target(python, "serving.py") as target, contextlib.ExitStack() as opened:
        port = target.says["port"]
        clients = opened.enter_context(connected(port, wanted))
        harness.wait_for(lambda: all_asleep(target.pid))
        said = stacks_as_told(port)
        harness.wait_for(lambda: len(dump(target.pid)["threads"]) == len(clients) + 1)
        spinning = [("spin-%d" % i, "spin") for i in range(SPINNING)]
        everyone = dict(clients, **opened.enter_context(connected(port, spinning)))
        assert len(everyone) == CLIENTS
        asking = Asking(next(client for client in clients.values() if client.does == "echo"))
        asked = asking.client.name
        asking.start()
        try:
            snapshots = [dump(target.pid, *args) for args in ((), ("--freeze",), ("--locals",), ())]
            answered = asking.answered
            harness.wait_for(lambda: asking.answered > answered or not asking.is_alive())
        finally:
            asking.finish()
        # The one that answered meanwhile was anywhere, and the others where they had been.
        others = {name: client for name, client in everyone.items() if name != asked}
        for snapshot in snapshots:
            mine = [thread for thread in snapshot["threads"] if thread["name"] == asked]
            assert len(mine) == 1 and "do_echo" in str(mine[0]["frames"])
            snapshot["threads"].remove(mine[0])
            check(snapshot, others, said)
        assert asking.answered > answered
        # Afterwards everyone who can answer does, also to somebody new, and all are where they were.
        assert all(client.answers() for client in clients.values() if client.does in ("echo", "holds"))
        assert set(stacks_as_told(port)) >= set(everyone)
        harness.wait_for(lambda: len(dump(target.pid)["threads"]) == len(everyone) + 1)
        harness.wait_for(lambda: all_asleep(target.pid, dict(spinning)))
        check(dump(target.pid), everyone, said)
        text = pybpf("dump", "-p", target.pid).out
    assert all(text.count(' "%s": [' % name) == 1 for name in everyone)
