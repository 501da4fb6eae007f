# SPDX-License-Identifier: Apache-2.0
"""pybpf agent --listen: profiles of the next seconds, metrics and health, while epochs go on."""

import concurrent.futures
import gzip
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

import harness
from harness import cpu_s, process_names
from test_agent import agent, as_json, asker, end, epochs, metrics, served, values
from protobuf import of
from test_agent_push import HOME, pprof_total
from test_agent_waits import pprof_sums
from test_output_failures import below, held, objects
from test_serve import PROMETHEUS, query

TIME_NS, DURATION_NS = 9, 10  # Profile.time_nanos, duration_nanos
SECRET = "0123456789abcdef" * 4


def test_profiles_beside_epochs(tmp_path):
    """Two clients at a time have the samples of their seconds; the epochs lose none of them, and have none twice."""
    folder = tmp_path / "epochs"
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(folder, "-p", target.pid, "--epoch", "1s", "-F", 499, "--max-cpu", "100%") as (process, ask):
            with concurrent.futures.ThreadPoolExecutor(2) as clients:
                before = cpu_s(target.pid)
                asked = [clients.submit(ask, "/debug/pprof/profile?seconds=%d" % seconds) for seconds in (1, 2)]
                answers = [one.result() for one in asked]
                used = cpu_s(target.pid) - before
            status, text = ask("/debug/pprof/wall?seconds=1")
            assert status == 404 and b"This agent measures something else" in text
            now = metrics(ask)
            end(process)
    assert [status for status, _ in answers] == [200, 200]
    taken = [pprof_total(body) for _, body in answers]
    assert 0 < taken[0] < taken[1] <= 499 * used * 1.2
    everything = as_json(folder)
    assert taken[1] < values(everything) == sum(values(as_json(folder / name)) for name in epochs(folder))
    assert now['pybpf_samples_taken_total{mode="cpu"}'] <= values(everything) and now["pybpf_epochs_total"] >= 1
    # The two profiles, and the one of a mode that is not measured.
    assert [now['pybpf_http_requests_total{outcome="%s"}' % outcome] for outcome in ("answered", "wrong", "unavailable")] == [2, 1, 0]


def on_the_page():
    """The metrics of docs/serving.md -> the names of their labels."""
    page = (harness.TOP / "docs" / "serving.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`pybpf_.*?) \| (.*?) \|", page, re.MULTILINE)
    return {name: set(re.findall(r"`(mode|receiver|cause|outcome)`", labels)) for names, labels in rows for name in re.findall(r"`(\w+)`", names)}


def test_the_page_has_all_metrics():
    source = (harness.TOP / "user" / "agent" / "metrics.c").read_text(encoding="utf-8")
    assert set(on_the_page()) == set(re.findall(r'"(pybpf_\w+)"', source))


def test_promtool(tmp_path):
    """Debian's takes the metrics of an agent that writes, sends and serves, with two modes. They have the labels of the page."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed; tools/install-deps --test installs it")
    arguments = ["--otlp", "http://localhost:%d" % harness.free_port(), "--mode", "cpu", "--mode", "wall", "--epoch", "1s"]
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, *arguments, env=HOME) as (process, ask):
            harness.wait_for(lambda: metrics(ask)["pybpf_epochs_total"] >= 1)
            _, body = ask("/metrics")
            end(process)
    assert b"pybpf_wait_seconds_without_stack_total" in body and b"pybpf_requests_dropped_total" in body, body.decode()
    rows = re.findall(r"^(pybpf_\w+)(?:{(.*)})? ", body.decode(), re.MULTILINE)
    assert rows and all(set(re.findall(r"(\w+)=", labels)) == on_the_page()[name] for name, labels in rows), body.decode()
    done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, timeout=harness.PATIENCE)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done.stderr.decode()


def test_prometheus(tmp_path):
    """A real one scrapes an agent with two modes, with its token."""
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed; tools/install-deps --test installs it")
    secret, config, port = tmp_path / "token", tmp_path / "config", harness.free_port()
    secret.write_text(SECRET + "\n", encoding="ascii")
    secret.chmod(0o600)
    arguments = ["--listen-token", secret, "--mode", "cpu", "--mode", "wall", "--epoch", "1s"]
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, *arguments) as (process, ask):
            config.write_text(PROMETHEUS % (secret, ask.address[len("http://"):]), encoding="utf-8")
            argv = ["prometheus", "--config.file=%s" % config, "--storage.tsdb.path=%s" % (tmp_path / "data"), "--web.listen-address=127.0.0.1:%d" % port]
            with harness.started(harness.tied(argv), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
                harness.wait_for(lambda: query(port, "pybpf_epochs_total").get("", 0) >= 1)
                lost = query(port, "pybpf_samples_lost_total{mode=%22wall%22}")
                taken = query(port, "pybpf_samples_taken_total{mode=%22cpu%22}")
            now = metrics(ask, Authorization="Bearer " + SECRET)
            end(process)
    causes = {name for name in now if name.startswith('pybpf_samples_lost_total{mode="wall"')}
    assert causes == {'pybpf_samples_lost_total{mode="wall",cause="%s"}' % cause for cause in lost} and lost
    assert 0 < taken[""] <= now['pybpf_samples_taken_total{mode="cpu"}']


def test_a_port_that_is_taken(tmp_path):
    """A second agent there ends with a sentence before it samples, and the first one goes on."""
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid) as (process, ask):
            address = ask.address[len("http://"):]
            run = harness.pybpf("agent", "-p", target.pid, "--dir", tmp_path / "second", "--listen", address)
            assert run.code == 1 and "another program does" in harness.one_sentence(run.err) and address in run.err, run
            assert not epochs(tmp_path / "second") and ask("/healthz")[0] == 200
            end(process)


def test_nothing_stays_of_one_that_is_killed(tmp_path):
    """Neither its processes nor what it had in the kernel."""
    arguments = ["--mode", "cpu", "--mode", "wall", "--epoch", "1s", "--otlp", "http://localhost:%d" % harness.free_port()]
    before = objects()
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, *arguments, env=HOME) as (process, ask):
            harness.wait_for(lambda: metrics(ask)["pybpf_epochs_total"])
            assert {kind for kind, _ in objects() - before} >= {"prog", "map"}
            pids = below(process.pid)
            assert len(pids) >= 5, pids
            process.kill()
            process.wait()
            for pid in pids:
                harness.wait_for(lambda pid=pid: not os.path.exists("/proc/%d" % pid))
    harness.wait_for(lambda: not objects() - before - held(), 30, 1)


def test_go_tool_pprof(tmp_path):
    """It reads a pulled profile: the CPU time of the target's functions, by their names."""
    if not shutil.which("go"):
        pytest.skip("go is not installed; tools/install-deps --test installs it")
    path = tmp_path / "profile.pb.gz"
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, "-F", 499, "--max-cpu", "100%") as (process, ask):
            status, body = ask("/debug/pprof/profile?seconds=2")
            end(process)
    assert status == 200
    path.write_bytes(body)
    done = subprocess.run(["go", "tool", "pprof", "-top", "-unit", "ms", path], capture_output=True,
                          env={**os.environ, "PPROF_TMPDIR": str(tmp_path)}, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    total = re.search(r"Total samples = (\S+)ms", done.stdout)
    shares = {name: float(share) for share, name in re.findall(r"(\S+)% +(\S+)$", done.stdout, re.MULTILINE)}
    assert abs(float(total.group(1)) - pprof_sums(body)["cpu", "nanoseconds"] / 1e6) <= 0.01, done.stdout
    assert shares["work"] == 100 and shares["large"] > shares["small"] > 0, done.stdout
    assert abs(shares["large"] + shares["small"] - 100) <= 0.02, done.stdout


def test_the_memory_limit_is_of_one_epoch(tmp_path):
    """Where one epoch reaches it, what is lost is counted, and the next one has samples of stacks that nobody knew."""
    lost, taken = ('pybpf_samples_%s' % name for name in ('lost_total{mode="cpu",cause="memory_limit"}', 'taken_total{mode="cpu"}'))
    limits = ["--max-memory", 48, "--epoch", "4s", "-F", 4999, "--max-cpu", "100%"]
    with harness.target(harness.default_python(), "paths.py", "250") as target:
        with served(tmp_path / "epochs", "-p", target.pid, *limits) as (process, ask):
            before = harness.wait_for(lambda: metrics(ask) if metrics(ask)[lost] else None)
            after = harness.wait_for(lambda: metrics(ask) if metrics(ask)["pybpf_epochs_total"] >= before["pybpf_epochs_total"] + 2 else None)
            said = end(process)
    assert after[taken] > before[taken], (before, after)
    assert "the memory limit of 48 MiB is reached" in said and "samples, and the stacks of 0.000 s of waits" in said, said


def test_a_profile_that_takes_the_memory_of_others_is_given_up(tmp_path):
    """It outlives the epochs: what is sampled in them would be lost in its place."""
    limits = ["--max-memory", 48, "--epoch", "2s", "-F", 4999, "--max-cpu", "100%"]
    with harness.target(harness.default_python(), "paths.py", "250") as target:
        with served(tmp_path / "epochs", "-p", target.pid, *limits) as (process, ask):
            status, text = ask("/debug/pprof/profile?seconds=100")
            assert ask("/healthz")[0] == 200
            end(process)
    assert status == 503 and b"near its memory limit, and this profile was the largest one" in text, text


def test_health_and_readiness(tmp_path):
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, "--epoch", "1s") as (process, ask):
            assert ask("/healthz") == (200, b"ok\n")
            harness.wait_for(lambda: ask("/readyz") == (200, b"ready\n"))
            assert metrics(ask)["pybpf_epochs_total"] >= 1
            end(process)


def test_what_it_costs(tmp_path):
    """Held against the kernel's clocks of its processes, its memory and its maps."""
    receiver = "http://localhost:%d" % harness.free_port()
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, "--epoch", "1s", "--otlp", receiver, env=HOME) as (process, ask):
            first = harness.wait_for(lambda: metrics(ask) if metrics(ask)["pybpf_epochs_total"] >= 1 else None)
            names = process_names(process.pid)
            mine = [pid for pid, name in names.items() if pid == process.pid or name in ("pybpf-serve", "pybpf-push", "pybpf-keeper")]
            before = sum(map(cpu_s, mine))
            # What the one that keeps the folder takes for an epoch is known when it has written the next one.
            now = harness.wait_for(lambda: metrics(ask) if metrics(ask)["pybpf_epochs_total"] >= first["pybpf_epochs_total"] + 3 else None)
            after = sum(map(cpu_s, process_names(process.pid)))
            kib = dict(re.findall(r"^(\w+):\s+(\d+) kB", Path("/proc/%d/status" % process.pid).read_text(encoding="utf-8"), re.M))
            maps = {words["map_id"]: int(words["memlock"]) for words in harness.fdinfo(process.pid) if "map_id" in words}
            end(process)
    assert len(mine) == 4, names
    assert before <= now["pybpf_cpu_seconds_total"] <= after, (before, now, after)
    parts = ["pybpf_server_cpu_seconds_total", 'pybpf_sender_cpu_seconds_total{receiver="otlp"}', 'pybpf_files_cpu_seconds_total{mode="cpu"}']
    assert all(0 < now[part] for part in parts) and sum(now[part] for part in parts) < now["pybpf_cpu_seconds_total"], now
    # Beside its own memory there is what it maps of the kernel's, which counts as that of maps.
    assert 0.9 * int(kib["RssAnon"]) < now["pybpf_resident_memory_bytes"] / 1024 < int(kib["VmRSS"]), (kib, now)
    assert abs(now['pybpf_map_memory_bytes{mode="cpu"}'] - sum(maps.values())) < 0.1 * sum(maps.values()), (maps, now)


def test_without_what_serves_it_ends(tmp_path):
    """So that a service manager starts it again; what was sampled is written."""
    folder = tmp_path / "epochs"
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(folder, "-p", target.pid) as (process, ask):
            assert ask("/healthz")[0] == 200
            (worker,) = [pid for pid, name in process_names(process.pid).items() if name == "pybpf-serve"]
            os.kill(worker, signal.SIGKILL)
            assert metrics(ask)["pybpf_http_restarts_total"] == 1
            keeper = [pid for pid, name in process_names(process.pid).items() if name == "pybpf-server"]
            os.kill(keeper[0], signal.SIGKILL)
            err = process.communicate(timeout=harness.PATIENCE)[1]
            assert process.returncode == 1 and "has ended: profiles and metrics are no longer served" in err, err
    assert len(epochs(folder)) == 1


def test_more_profiles_than_are_made_at_a_time(tmp_path):
    """Eight are; one of nine clients is told so, which is counted apart from what was wrong to ask for."""
    with harness.target(harness.default_python(), "shares.py") as target, concurrent.futures.ThreadPoolExecutor(9) as clients:
        with served(tmp_path / "epochs", "-p", target.pid) as (process, ask):
            asked = [clients.submit(ask, "/debug/pprof/profile?seconds=100") for _ in range(9)]
            (refused,), others = concurrent.futures.wait(asked, harness.PATIENCE, concurrent.futures.FIRST_COMPLETED)
            missing = ask("/debug/pprof/gil?seconds=1")
            now = metrics(ask)
            end(process)
    assert refused.result() == (503, b"Too many profiles are made at this moment; try again later.\n")
    assert [one.result() for one in others] == 8 * [(503, b"pybpf ends.\n")]
    assert missing[0] == 404 and b"This agent measures something else" in missing[1]
    counts = {outcome: now['pybpf_http_requests_total{outcome="%s"}' % outcome] for outcome in ("wrong", "unavailable")}
    assert counts == {"wrong": 1, "unavailable": 1}, counts


def test_the_end_comes_while_a_client_waits(tmp_path):
    """It is told so, and the last epoch is written as without it."""
    folder = tmp_path / "epochs"
    with harness.target(harness.default_python(), "shares.py") as target, concurrent.futures.ThreadPoolExecutor(1) as clients:
        with served(folder, "-p", target.pid, "--epoch", "1s", "-F", 499, "--max-cpu", "100%") as (process, ask):
            asked = clients.submit(ask, "/debug/pprof/profile?seconds=100")
            taken = metrics(ask)['pybpf_samples_taken_total{mode="cpu"}']
            # Two epochs: the first one may have begun before the client came.
            until = metrics(ask)["pybpf_epochs_total"] + 2
            harness.wait_for(lambda: metrics(ask)["pybpf_epochs_total"] >= until)
            end(process)
            assert asked.result() == (503, b"pybpf ends.\n")
    assert len(epochs(folder)) > until and values(as_json(folder)) > taken


def test_many_requests_cost_little(tmp_path):
    """At most 32 requests are answered in a second, whoever asks: what they cost would lower the rate of samples."""
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, "--epoch", "1s") as (process, ask):
            begin = time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(4) as clients:
                answers = list(clients.map(ask, ["/metrics"] * 100))
            passed = time.monotonic() - begin
            # More than are open at a time: the oldest make room for who asks.
            idle = [socket.create_connection(ask.address[len("http://"):].split(":")) for _ in range(64)]
            now = metrics(ask)
            for one in idle:
                one.close()
            end(process)
    assert now["pybpf_http_clients_cut_total"] >= 1, now
    assert {status for status, _ in answers} == {200}
    assert len(answers) <= 16 + 32 * passed


def test_profiles_begin_together(tmp_path):
    """All maps are read for a beginning: one is of all who have asked by then, and the next one a second later."""
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, "--epoch", "1s", "-F", 499, "--max-cpu", "100%") as (process, ask):
            metrics(ask)  # it samples now
            with concurrent.futures.ThreadPoolExecutor(8) as clients:
                asked = []
                for _ in range(8):
                    asked.append(clients.submit(ask, "/debug/pprof/profile?seconds=1"))
                    time.sleep(0.1)
                answers = [one.result() for one in asked]
            end(process)
    assert [status for status, _ in answers] == 8 * [200]
    begins = sorted({next(of(gzip.decompress(body), TIME_NS)) for _, body in answers})
    # How long the maps are read before a beginning, and when the clock is read after it, depends on the machine.
    assert all(after - before > 500_000_000 for before, after in zip(begins, begins[1:])), begins
    assert all(pprof_total(body) > 0 for _, body in answers)


def test_requests_add_up(tmp_path):
    """What an earlier agent has left is sent, or waits, beside what was submitted: it is counted."""
    arguments = ["--otlp", "http://localhost:%d" % harness.free_port(), "--spool", tmp_path / "spool", "--epoch", "1s"]
    with harness.target(harness.default_python(), "shares.py") as target:
        for what in ("submitted", "found"):
            least = ("pybpf_epochs_total", 'pybpf_requests_%s_total{receiver="otlp"}' % what)
            with served(tmp_path / "epochs", "-p", target.pid, *arguments, env=HOME) as (process, ask):
                now = harness.wait_for(lambda: metrics(ask) if all(metrics(ask)[name] for name in least) else None)
                end(process)
    counts = {name: now['pybpf_requests_%s{receiver="otlp"}' % name] for name in ("submitted_total", "found_total", "sent_total", "waiting")}
    dropped = sum(value for name, value in now.items() if name.startswith("pybpf_requests_dropped_total"))
    assert counts["found_total"] >= 1 and counts["sent_total"] == 0
    assert counts["submitted_total"] + counts["found_total"] == counts["waiting"] + dropped
    assert now['pybpf_samples_unsent_total{receiver="otlp",mode="cpu"}'] == 0


def test_the_size_of_the_queue(tmp_path):
    """What waits in memory while a receiver is away, and then in the spool, which has the agent's end."""
    spool = tmp_path / "spool"
    arguments = ["--otlp", "http://localhost:%d" % harness.free_port(), "--spool", spool]
    in_memory, on_disk = ('pybpf_requests_%s_bytes{receiver="otlp"}' % place for place in ("waiting", "spooled"))
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, *arguments, "--epoch", "1s", env=HOME) as (process, ask):
            first = harness.wait_for(lambda: metrics(ask) if metrics(ask)[in_memory] else None)
            end(process)
        with served(tmp_path / "epochs", "-p", target.pid, *arguments, "--epoch", "1h", env=HOME) as (process, ask):
            later = harness.wait_for(lambda: metrics(ask) if metrics(ask)[on_disk] else None)
            size = sum(path.stat().st_size for path in (spool / "otlp").iterdir())
            end(process)
    assert first[on_disk] == 0 and later[in_memory] == 0
    assert 0 < later[on_disk] == size


def test_whether_the_host_sends_is_known_later(tmp_path):
    """With the first epoch: before, there is no number that an alert could take for an answer."""
    arguments = ["--otlp", "http://localhost:%d" % harness.free_port(), "--hosts-share", "1", "--epoch", "5s"]
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, *arguments, env=HOME) as (process, ask):
            before = metrics(ask)
            after = harness.wait_for(lambda: metrics(ask) if metrics(ask)["pybpf_epochs_total"] else None)
            end(process)
    assert "pybpf_host_sends" not in before or before["pybpf_epochs_total"], before
    assert after["pybpf_host_sends"] == 1


def test_what_no_request_is_made_for(tmp_path):
    """As the labels are too long for a query: samples are counted, and of waits their time, each by its mode."""
    arguments = ["--pyroscope", "http://localhost:%d" % harness.free_port(), "--label", "long=" + 9000 * "x", "--max-cpu", "100%", "--mode", "cpu", "--mode", "wall"]
    with harness.target(harness.default_python(), "shares.py") as target:
        begin = time.monotonic()
        with served(tmp_path / "epochs", "-p", target.pid, "--epoch", "1s", "-F", 99, *arguments, env=HOME) as (process, ask):
            now = harness.wait_for(lambda: metrics(ask) if metrics(ask)["pybpf_epochs_total"] >= 2 else None)
            passed = time.monotonic() - begin
            assert "the name with its labels is too long" in end(process)
    rows = {name: value for name, value in now.items() if "unsent_total" in name}
    assert set(rows) == {'pybpf_%s_unsent_total{receiver="pyroscope",mode="%s"}' % row for row in (("samples", "cpu"), ("wait_seconds", "wall"))}
    samples, waits = rows.values()
    assert 0 < samples <= now['pybpf_samples_taken_total{mode="cpu"}']
    # All time of its two threads.
    assert 2 * now["pybpf_epoch_seconds"] < waits <= 2 * passed, now


@pytest.mark.parametrize("mode", ["wall", "gil"])
def test_modes_have_profiles_of_their_own(tmp_path, mode):
    """A wait that goes on is in it, so that it has as much of each thread as it is long."""
    with harness.target(harness.default_python(), "parts.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, "--mode", mode, "--epoch", "5s") as (process, ask):
            status, body = ask("/debug/pprof/%s?seconds=1" % mode)
            assert status == 200
            status, text = ask("/debug/pprof/profile?seconds=1")
            assert status == 404 and b"This agent measures something else: --mode=cpu has" in text
            end(process)
    profile = gzip.decompress(body)
    length_us = next(of(profile, DURATION_NS)) / 1000
    assert length_us >= 1_000_000
    time_us = pprof_sums(body)[mode, "microseconds"]
    # The length is told in milliseconds.
    rounding = 5 * 501 + sum(1 for _ in of(profile, 2))
    assert mode == "gil" or abs(time_us - 5 * length_us) <= rounding, (time_us, length_us)
    assert 0 < time_us <= 5 * length_us + rounding
    assert as_json(tmp_path / "epochs")["measure"]["name"] == mode


def test_a_token(tmp_path):
    secret = tmp_path / "token"
    secret.write_text(SECRET + "\n", encoding="ascii")
    secret.chmod(0o600)
    with harness.target(harness.default_python(), "shares.py") as target:
        with served(tmp_path / "epochs", "-p", target.pid, "--listen-token", secret) as (process, ask):
            assert ask("/metrics")[0] == 401
            assert ask("/metrics", Authorization="Bearer " + SECRET)[0] == 200
            end(process)
    run = harness.pybpf("agent", "--listen-token", secret)
    assert run.code == 2 and "--listen-token is for --listen, which is missing" in run.err


GROUP = 54321


def connects(path, uid, gid):
    """Can a user of one group connect to a Unix socket?"""
    program = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    command = ["/usr/bin/python3", "-c", program, path]
    return not subprocess.run(command, user=uid, group=gid, extra_groups=[], stderr=subprocess.DEVNULL, timeout=harness.PATIENCE).returncode


@pytest.mark.parametrize("mode, who", [(None, [0]), ("0660", [0, GROUP]), ("666", [0, GROUP, GROUP + 1])])
def test_the_mode_of_a_socket(mode, who):
    """By it the owner, a group or all can connect; that all can is said."""
    with tempfile.TemporaryDirectory() as folder, harness.target(harness.default_python(), "shares.py") as target:
        shutil.chown(folder, group=GROUP)
        os.chmod(folder, 0o2755)
        path, config = Path(folder, "http"), Path(folder, "agent.yaml")
        config.write_text("listen: %s\n%s" % (path, "listen-mode: %s\n" % mode if mode else ""), encoding="ascii")
        with agent(Path(folder, "epochs"), "-p", target.pid, "--config", config) as process:
            harness.wait_for(lambda: harness.is_attached(process.pid))
            status = path.stat()
            found = [gid for gid in (0, GROUP, GROUP + 1) if connects(path, gid, gid)]
            assert metrics(asker(path))["pybpf_epochs_total"] == 0
            said = end(process)
    assert found == who and status.st_mode & 0o777 == int(mode or "600", 8) and status.st_gid == GROUP
    assert said == ("" if len(who) < 3 else "pybpf: every user of this machine can read profiles at unix:%s; a token, or a Unix socket with mode 0600, keeps others out\n" % path)


@pytest.mark.parametrize("arguments, words", [
    (["--listen", "/run/x", "--listen-mode", "0888"], "--listen-mode 0888: not the mode of a socket"),
    (["--listen", "/run/x", "--listen-mode", "rw"], "not the mode of a socket; it takes an octal number from 0600 to 0777"),
    (["--listen", "/run/x", "--listen-mode", "0060"], "not the mode of a socket"),
    (["--listen", "/run/x", "--listen-mode", "04755"], "not the mode of a socket"),
    (["--listen", "/run/x", "--listen-mode", ""], "not the mode of a socket"),
    (["--listen", ":0", "--listen-mode", "0660"], "--listen :0 is an address of TCP"),
    (["--listen-mode", "0660"], "--listen-mode is for --listen, which is missing"),
])
def test_modes_that_are_refused(arguments, words):
    run = harness.pybpf("agent", "--check", *arguments)
    assert run.code == 2 and words in harness.one_sentence(run.err), run
