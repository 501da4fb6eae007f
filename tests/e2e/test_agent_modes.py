# SPDX-License-Identifier: Apache-2.0
"""pybpf agent with several modes: each has its own profiles, of the services that it is for, at the same time."""

import concurrent.futures
import contextlib
import os
import signal

import harness
from harness import cpu_s, pybpf
from receiver import receiving
from test_agent import agent, as_json, end, epochs, span, values
from test_agent_push import HOME, base, named, otlp_total, pprof_total
from test_agent_serve import metrics, served
from test_agent_waits import by_thread, length_us, pprof_sums

THREADS = 5  # of parts.py


@contextlib.contextmanager
def two_services():
    """Arguments that choose two processes, whose services are shop and busy; and their PIDs."""
    with harness.target(harness.default_python(), "parts.py") as shop, harness.target(harness.default_python(), "shares.py") as busy:
        yield ["-p", "%d,%d" % (shop.pid, busy.pid), "--service", "shop=*parts*", "--service", "busy=*shares*"], shop.pid, busy.pid


def services(profile):
    return {process["service"] for process in profile["processes"]}


def overlap(one, other):
    return span(one)[0] < span(other)[1] and span(other)[0] < span(one)[1]


def test_cpu_time_of_all_and_waits_of_one(tmp_path):
    """Each profile is what an agent with this mode alone would have; the epochs are those of the same time."""
    folder = tmp_path / "epochs"
    with two_services() as (arguments, shop, busy):
        before = cpu_s(shop) + cpu_s(busy)
        modes = ["--mode", "wall=sh?p", "--mode", "cpu", "--threads", "--epoch", "1s", "-F", 199, "--max-cpu", "100"]
        with served(folder, *arguments, *modes) as (process, ask):
            with concurrent.futures.ThreadPoolExecutor(3) as clients:
                asked = [clients.submit(ask, "/debug/pprof/%s?seconds=1" % what) for what in ("profile", "wall", "gil")]
            (cpu, pulled), (wall, pulled_waits), (gil, _) = [one.result() for one in asked]
            harness.wait_for(lambda: all(len(epochs(folder / mode)) >= 2 for mode in ("cpu", "wall")))
            now = metrics(ask)
            end(process)
        used = cpu_s(shop) + cpu_s(busy) - before
    assert (cpu, wall, gil) == (200, 200, 404)
    assert 0 < now['pybpf_samples_taken_total{mode="wall"}'] < now['pybpf_samples_taken_total{mode="cpu"}']
    assert sorted(path.name for path in folder.iterdir()) == ["cpu", "wall"]
    names = {mode: epochs(folder / mode) for mode in ("cpu", "wall")}
    assert len(names["cpu"]) == len(names["wall"]) and all(map(overlap, names["cpu"], names["wall"]))
    samples = as_json(folder, "--mode", "cpu")
    assert services(samples) == {"shop", "busy"} and samples["measure"]["name"] == "samples"
    assert 0 < pprof_total(pulled) < values(samples) and values(samples) / 199 < used * 1.2
    waits = [as_json(folder / "wall" / name) for name in names["wall"]]
    for profile in waits:
        threads = by_thread(profile)
        exact = max(us for us, rows in threads.values() if rows == 2)
        assert services(profile) == {"shop"} and len(threads) == THREADS
        # Threads that are there when a run begins are found one after the other, some microseconds later.
        late_us = 5000 if profile is waits[0] else 0
        assert -501 - late_us <= exact - length_us(profile) <= 501
        assert all(abs(us - exact) <= rows + late_us for us, rows in threads.values()), threads
    assert 0 < pprof_sums(pulled_waits)["wall", "microseconds"] < values(as_json(folder, "--mode=wall"))
    refusals(folder)


def refusals(folder):
    for arguments, words in (
        (["report", folder], "has epochs of several modes, which cannot be added up: choose one of cpu, wall with --mode"),
        (["diff", str(folder) + "@..", folder], "choose one of cpu, wall with --mode"),
        (["report", folder, "--mode", "gil"], "has no epochs of --mode=gil: it has those of cpu, wall"),
        (["report", folder / "cpu", "--mode", "cpu"], "has no folder for --mode=cpu"),
    ):
        run = pybpf(*arguments)
        assert run.code == 1 and words in harness.one_sentence(run.err), run


def test_services_that_come_and_go(tmp_path, monkeypatch):
    """Those that start later, or once more; not those of other names; and their copies."""
    folder = tmp_path / "epochs"
    with agent(folder, "--mode", "wall=modes-shop*", "--epoch", "1s", "--max-cpu", "100") as process:
        harness.wait_for(lambda: epochs(folder))
        pids = []
        for name in ("modes-shop", "modes-other", "modes-shop-2", "modes-shop"):
            monkeypatch.setenv("OTEL_SERVICE_NAME", name)
            with harness.target(harness.default_python(), "parts.py") as target:
                pids.append(target.pid)
                before = len(epochs(folder))
                harness.wait_for(lambda known=before: len(epochs(folder)) >= known + 2)
        end(process)
    found = {(one["pid"], one["service"]) for one in as_json(folder)["processes"]}
    assert found == {(pids[0], "modes-shop"), (pids[2], "modes-shop-2"), (pids[3], "modes-shop")}


def test_receivers_get_all_modes(tmp_path):
    folder = tmp_path / "epochs"
    with receiving() as it, two_services() as (arguments, *_):
        urls = ["--otlp", base(it), "--pprof", base(it) + "/profiles"]
        with agent(folder, *arguments, *urls, "--mode=cpu", "--mode=wall=shop", "--mode=gil=busy", "--epoch=1s", "--max-cpu=100", env=HOME) as process:
            harness.wait_for(lambda: len(epochs(folder / "cpu")) >= 2)
            end(process)
    each = [pprof_sums(request.body) for request in it.requests if request.path == "/profiles"]
    total = {mode: values(as_json(folder, "--mode", mode)) for mode in ("cpu", "wall", "gil")}
    # Profiles of waits say how many samples there were on CPUs, too.
    of_waits = [one for one in each if ("waits", "count") in one]
    assert sum(one["samples", "count"] for one in each if one not in of_waits) == total["cpu"] > 0
    for mode in "wall", "gil":
        assert sum(one.get((mode, "microseconds"), 0) for one in of_waits) == total[mode]
    assert total["wall"] > 0
    otlp = sum(otlp_total(request.body) for request in it.requests if request.path.startswith("/v1"))
    assert otlp == total["cpu"] + 1000 * (total["wall"] + total["gil"])


def test_one_keeper_is_killed(tmp_path):
    """All ends with the last epoch of the others, and with a sentence."""
    folder, path = tmp_path / "epochs", tmp_path / "agent.yaml"
    path.write_text("mode:\n- cpu\n- gil\nepoch: 1h\n")
    with two_services() as (arguments, *_):
        with agent(folder, *arguments, "--config", path) as process:
            keepers = harness.wait_for(lambda: named(process.pid, "pybpf-keeper"))
            harness.wait_for((folder / "gil").exists)
            path.write_text("mode: cpu\nepoch: 1h\n")
            process.send_signal(signal.SIGHUP)
            assert process.stderr.readline().endswith("at the next start change: mode\n")
            os.kill(keepers[0], signal.SIGKILL)
            err = process.communicate(timeout=harness.PATIENCE)[1]
    assert process.returncode == 1 and "the process that keeps the files" in err
    assert sorted(len(epochs(folder / mode)) for mode in ("cpu", "gil")) == [0, 1]


def test_the_command_line_replaces_the_modes_of_the_file(tmp_path):
    """One mode has its epochs in the folder itself, beside which those of several are refused."""
    folder, path = tmp_path / "epochs", tmp_path / "agent.yaml"
    path.write_text("mode:\n- wall\n- gil\nepoch: 1s\n")
    with two_services() as (arguments, *_):
        with agent(folder, *arguments, "--config", path, "--mode", "cpu") as process:
            harness.wait_for(lambda: epochs(folder))
            end(process)
        assert as_json(folder)["measure"]["name"] == "samples"
        with agent(folder, *arguments, "--config", path) as process:
            harness.wait_for(lambda: epochs(folder / "gil"))
            end(process)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["gil", "wall"]
    run = pybpf("report", folder)
    assert run.code == 1 and "gil with --mode; those of an earlier agent are its files *.pybpf" in harness.one_sentence(run.err)
    assert as_json(folder, "--mode", "gil")["measure"]["name"] == "gil"
