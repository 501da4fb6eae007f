# SPDX-License-Identifier: Apache-2.0
"""How many requests web services answer while they are profiled, beside how many they answer alone."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import harness
import machine
import peers
from figures import Figure, Section, each, ratios
from peers import Missing

START_S, LOAD_S = 1.5, 3
SERVERS = {
    "gunicorn, 2 workers": lambda port: ["gunicorn", "-w", "2", "-b", "127.0.0.1:%d" % port, "service:application"],
    "uvicorn": lambda port: ["uvicorn", "--log-level", "critical", "--port", str(port), "service:asgi"],
}
MODES = {
    "cpu": ["--mode=cpu"],
    "wall": ["--mode=wall"],
    "wall, threads and times": ["--mode=wall", "--threads", "--timestamps"],
    "wall, --wakers": ["--mode=wall", "--wakers"],
    "gil": ["--mode=gil"],
}
QUIET = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


@contextlib.contextmanager
def serving(cpu, argv, port):
    argv = ["taskset", "-c", str(cpu), str(peers.services() / argv[0]), *argv[1:]]
    with harness.started(argv, cwd=machine.TARGETS, start_new_session=True, **QUIET) as process:
        try:
            harness.wait_for(lambda: process.poll() is not None or harness.answers(port))
            assert process.poll() is None, "%s does not start" % argv[3]
            yield process.pid
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def requests(port):
    """A second, of connections that send the next request when they have an answer."""
    argv = ["wrk", "-t1", "-c8", "-d%ds" % LOAD_S, "http://127.0.0.1:%d/" % port]
    told = subprocess.run(argv, capture_output=True, text=True, timeout=harness.PATIENCE, check=True).stdout
    return float(told.split("Requests/sec:")[1].split()[0])


@contextlib.contextmanager
def profiled(pid, options, folder):
    """While it samples; its profile is whole at the end."""
    path = folder / "service.pybpf"
    argv = [harness.PYBPF, "-q", "-p", pid, "--children", "-o", path, *options]
    with harness.started(list(map(str, argv)), **QUIET) as process:
        time.sleep(START_S)
        yield
        process.send_signal(signal.SIGINT)
        assert process.wait(harness.PATIENCE) == 0
    assert path.stat().st_size > 0


def one_round(bench, number, server, folder):
    """Requests a second (alone, profiled) in each mode: alone just before, as a machine's speed comes and goes."""
    port = harness.free_port()
    with serving(bench.cpu, SERVERS[server](port), port) as pid:
        requests(port)  # what is imported at the first ones
        found = {}
        for name in list(MODES)[:: -1 if number % 2 else 1]:
            alone = requests(port)
            with profiled(pid, MODES[name], folder):
                found[name] = alone, requests(port)
        return found


def measure(bench):
    section = Section("requests that a service answers", ["server", "pybpf", "alone, /s", "profiled, /s", "% of alone"])
    results = defaultdict(list)
    try:
        peers.services()
        if not shutil.which("wrk"):
            raise Missing("wrk is not installed; `tools/install-deps --test` installs it")
    except Missing as missing:
        bench.lack("service", str(missing))
        return []
    with tempfile.TemporaryDirectory() as folder:
        for number in bench.rounds("service"):
            for server in SERVERS:
                results[server].append(bench.attempt(server, one_round, bench, number, server, Path(folder)))
    for server, rounds in results.items():
        for name in MODES:
            alone = each(rounds, lambda one: one[name][0])
            speeds = each(rounds, lambda one: one[name][1])
            section.add(server, name, Figure(alone, 0), Figure(speeds, 0), Figure(ratios(speeds, alone, 100), 1))
    section.notes += ["8 connections of wrk; the service has one CPU, wrk and pybpf the others"]
    return [section]
