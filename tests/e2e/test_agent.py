# SPDX-License-Identifier: Apache-2.0
"""pybpf agent: epochs in a folder, and reports on them."""

import collections
import contextlib
import datetime
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import harness
import pythons
from harness import cpu_s, process_names, pybpf
from test_serve import UnixConnection

NAME = re.compile(r"\d{8}T\d{6}\.\d{3}Z-(\d+)ms-(\d{8})\.pybpf")


@contextlib.contextmanager
def agent(folder, *args, **options):
    command = [harness.PYBPF, "agent", "--dir", str(folder), *map(str, args)]
    with harness.started(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options) as process:
        yield process


def end(process):
    process.send_signal(signal.SIGTERM)
    err = process.communicate(timeout=harness.PATIENCE)[1]
    assert process.returncode == 0, err
    return err


@contextlib.contextmanager
def served(folder, *args, **options):
    """An agent that listens, and the function that asks it at its address: gives the status and the body of an answer."""
    with agent(folder, "--listen", ":0", "-v", *args, **options) as process:
        address = None
        while not address:
            line = process.stderr.readline()
            assert line, "it ended before it listened"
            address = re.search(r"serving profiles and metrics at (http://127\.0\.0\.1:\d+)", line)

        def ask(path, **headers):
            request = urllib.request.Request(address.group(1) + path, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=harness.PATIENCE) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as refused:
                return refused.code, refused.read()

        ask.address = address.group(1)
        yield process, ask


def metrics(ask, **headers):
    status, body = ask("/metrics", **headers)
    assert status == 200
    return {name: float(value) for name, value in re.findall(r"^(\w+(?:{.*})?) (\S+)$", body.decode(), re.MULTILINE)}


def asker(path):
    """The function that asks an agent that listens at a Unix socket, as served() gives it."""

    def ask(page):
        with contextlib.closing(UnixConnection(str(path))) as connection:
            connection.request("GET", page)
            answer = connection.getresponse()
            return answer.status, answer.read()

    return ask


def epochs(folder):
    return sorted(path.name for path in folder.glob("*.pybpf") if NAME.fullmatch(path.name)) if folder.exists() else []


def as_json(*args):
    run = pybpf("report", "-q", "-f", "json", *args)
    assert run.code == 0, run
    return json.loads(run.out)


def values(profile):
    return sum(sample["value"] for sample in profile["samples"])


def account(profile, *groups):
    return sum(entry["value"] for entry in profile["account"] if entry["group"] in groups)


def span(name):
    """Begin and end of an epoch by its name, in ms since 1970."""
    begin = datetime.datetime.strptime(name[:19] + "000+0000", "%Y%m%dT%H%M%S.%f%z")
    ms = round(begin.timestamp() * 1000)
    return ms, ms + int(NAME.fullmatch(name).group(1))


def test_epochs_add_up(tmp_path):
    """Each sample is in one epoch, also of the last one, that a signal ends; the spans follow each other."""
    folder = tmp_path / "epochs"
    with harness.target(harness.default_python(), "shares.py") as target:
        before = cpu_s(target.pid)
        with agent(folder, "-p", target.pid, "--epoch", "1s", "-F", 499, "--max-cpu", "100%") as process:
            harness.wait_for(lambda: len(epochs(folder)) >= 3)
            # On a busy machine an epoch may be late, which is said.
            assert not [line for line in end(process).splitlines() if "the machine was busy" not in line]
        used = cpu_s(target.pid) - before
    names = epochs(folder)
    assert sorted(path.name for path in folder.iterdir()) == names and folder.stat().st_mode & 0o777 == 0o700
    assert [int(NAME.fullmatch(name).group(2)) for name in names] == list(range(1, len(names) + 1))
    each = [as_json(folder / name) for name in names]
    for name, profile in zip(names, each):
        begin, stop = span(name)
        assert int(profile["facts"]["start_ns"]) // 1000000 == begin
        assert abs(float(profile["facts"]["duration_s"]) * 1000 - (stop - begin)) <= 1
    for one, following in zip(names, names[1:]):
        assert span(one)[0] < span(following)[0]
    everything = as_json(folder)
    assert values(everything) == sum(map(values, each)) == account(everything, "python", "without")
    assert 0 < values(everything) / 499 < used * 1.2


def test_reports_choose_spans_and_services(tmp_path, monkeypatch):
    folder = tmp_path / "epochs"
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.version=1.4%2B2")
    with harness.target(harness.default_python(), "shares.py") as target:
        with agent(folder, "-p", target.pid, "--epoch", "1s", "-F", 199, "--service", "shop=*python*") as process:
            harness.wait_for(lambda: len(epochs(folder)) >= 2)
            end(process)
    run = pybpf("report", folder, "--from", "-1h")
    assert run.code == 0 and re.search(r"\d+ epochs, from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d to ", run.err), run
    last = epochs(folder)[-1]
    since = span(last)[0] // 1000
    moment = datetime.datetime.fromtimestamp(since, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    wanted = [name for name in epochs(folder) if span(name)[1] > since * 1000]
    assert values(as_json(folder, "--from", moment)) == values(as_json(*(folder / name for name in wanted)))
    assert values(as_json(folder, "--service", "sh?p")) == values(as_json(folder)) > 0
    assert values(as_json(folder, "--service", "other")) == 0
    assert values(as_json(folder, "--service-version", "1.4+*")) == values(as_json(folder))
    assert values(as_json(folder, "--service-version", "1.5")) == 0
    run = pybpf("report", folder, "--to", "2001-01-01")
    assert run.code == 1 and "has no epoch in that span; it has some from" in run.err
    rows_of_epochs(folder)


def own_samples(*args):
    """The samples of each function that was running, by its name."""
    found = collections.Counter()
    for stack, count in pybpf("report", "-q", "-f", "folded", *args).stacks():
        found[stack[-1].name] += count
    return found


def test_two_times_are_compared(tmp_path):
    """Each side has the samples of its epochs, each of which is a run, and none of those before, between and after."""
    folder = tmp_path / "epochs"
    with harness.target(harness.default_python(), "shares.py") as target:
        with agent(folder, "-p", target.pid, "--epoch", "1s", "-F", 499, "--max-cpu", "100%") as process:
            harness.wait_for(lambda: len(epochs(folder)) >= 9)
            end(process)
    names = epochs(folder)
    # Whole seconds, which may be in the epoch before, too.
    moments = [span(names[i])[0] // 1000 for i in (2, 4, 6, 8)]
    spans = {"before": moments[:2], "after": moments[2:]}
    texts = [datetime.datetime.fromtimestamp(one, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") for one in moments]
    run = pybpf("diff", "-q", "-f", "json", "%s@%s..%s" % (folder, *texts[:2]), "%s@%s..%s" % (folder, *texts[2:]))
    assert run.code == 0, run
    compared = json.loads(run.out)
    for side, (since, until) in spans.items():
        chosen = [folder / name for name in names if span(name)[1] > since * 1000 and span(name)[0] < until * 1000]
        assert 1 <= len(chosen) < len(names) / 2 and len(compared[side]["runs"]) == len(chosen)
        assert compared[side]["samples"] == sum(values(as_json(path)) for path in chosen) > 0
        own = own_samples(*chosen)
        assert own["spin"] > 0
        for row in compared["functions"]:
            assert row["samples_" + side] == own[row["name"]], (side, row)


def test_two_versions_are_compared(tmp_path, monkeypatch):
    """Each side has the samples of its version; a run is an epoch with some of them. The other version and service are in neither."""
    folder, python, versions = tmp_path / "epochs", harness.default_python(), {"before": "1.4", "after": "1.5"}
    with contextlib.ExitStack() as stack:
        pids = []
        for program, version in (("shares.py", "1.4"), ("parts.py", "1.5"), ("parts.py", "1.4")):
            monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.version=" + version)
            pids.append(stack.enter_context(harness.target(python, program)).pid)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "")
        os.kill(pids[1], signal.SIGSTOP)
        services = ["--service", "shop=*shares*", "--service", "bank=*parts*"]
        with agent(folder, "-p", ",".join(map(str, pids)), "--epoch", "1s", "-F", 499, "--max-cpu", "100%", *services) as process:
            for pid, signo in ((pids[1], signal.SIGCONT), (pids[0], signal.SIGSTOP), (pids[0], signal.SIGCONT)):
                before = len(epochs(folder))
                harness.wait_for(lambda before=before: len(epochs(folder)) >= before + 3)
                os.kill(pid, signo)
            end(process)
    options = ["--before-version", "1.4", "--after-version", "1.5"]
    for words in ([], ["-p", ",".join(map(str, pids[:2]))]):
        for operands in ([folder], [folder, folder], ["--before", folder, "--after", folder]):
            run = pybpf("diff", "-q", "-f", "json", *options, *words, *operands)
            assert run.code == 0, run
            compared = json.loads(run.out)
            for side, version in versions.items():
                chosen = ["--service-version", version, *words]
                each = [values(as_json(folder / name, *chosen)) for name in epochs(folder)]
                with_samples = [one for one in each if one]
                assert 0 < len(with_samples) < len(each) or not words
                assert compared[side]["samples"] == sum(each) and len(compared[side]["runs"]) == len(with_samples)
                own = own_samples(folder, *chosen)
                assert sum(own.values()) > 0
                for row in compared["functions"]:
                    assert row["samples_" + side] == own[row["name"]], (side, row)
    for words, says in (
        (["--before-version", "1.4"], "--after-version is missing"),
        (["--after-version", "1.5"], "--before-version is missing"),
        ([*options, "--service-version", "1.4"], "--service-version 1.4: the sides have their own"),
        (["--before-version", "1.4", "--after-version", "1.4"], "are both 1.4"),
        (["--before-version", "", "--after-version", "1.4"], "needs a version"),
    ):
        run = pybpf("diff", folder, *words)
        assert run.code == 2 and says in harness.one_sentence(run.err), run
    run = pybpf("diff", folder, "--before-version", "1.4", "--after-version", "1.6")
    assert run.code == 1 and "--after-version 1.6: no profile has a sample of that version" in harness.one_sentence(run.err), run


def holds_back_hangups(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as status:
        return 1 << (signal.SIGHUP - 1) & int(re.search(r"SigBlk:\s*(\w+)", status.read()).group(1), 16)


def test_hangups_while_it_starts(tmp_path):
    """The file is read again when it samples; what it asks of the process meanwhile has its answer."""
    folder, path = tmp_path / "epochs", tmp_path / "agent.yaml"
    path.write_text("epoch: 1h\n")
    with harness.target(harness.default_python(), "shares.py") as target:
        with agent(folder, "-p", target.pid, "-F", 199, "--config", path) as process:
            harness.wait_for(lambda: holds_back_hangups(process.pid), step=0.0002)
            for _ in range(200):
                process.send_signal(signal.SIGHUP)
                time.sleep(0.002)
            harness.wait_for(lambda: harness.samples_now(process.pid))
            until = cpu_s(target.pid) + 0.2
            harness.wait_for(lambda: cpu_s(target.pid) > until)
            said = end(process).splitlines()
    assert said and all("was read again" in line for line in said), said
    assert values(as_json(folder)) > 0


def test_the_service_of_a_process_that_ends_within_an_epoch(tmp_path, monkeypatch):
    folder = tmp_path / "epochs"
    with agent(folder, "--epoch", "1h", "-F", 199, stdout=subprocess.DEVNULL) as process:
        harness.wait_for(folder.exists)
        for name in ("brief-one", "brief-two"):
            monkeypatch.setenv("OTEL_SERVICE_NAME", name)
            with harness.target(harness.default_python(), "shares.py") as target:
                until = cpu_s(target.pid) + 0.5
                harness.wait_for(lambda pid=target.pid, end_s=until: cpu_s(pid) > end_s)
        end(process)
    assert all(values(as_json(folder, "--service", name)) > 20 for name in ("brief-one", "brief-two"))


def give_title(pid, is_long):
    """Overwrites its arguments and its environment as setproctitle does, and so gunicorn and Celery."""
    with open("/proc/%d/stat" % pid, "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    begin, size = int(fields[45]), int(fields[48]) - int(fields[45])  # arg_start, env_end
    title = b"worker " + b"x" * size if is_long else b"worker"
    with open("/proc/%d/mem" % pid, "r+b", 0) as memory:
        memory.seek(begin)
        memory.write(title[: size - 1].ljust(size, b"\0"))


def test_the_environment_of_processes_with_a_title(tmp_path, monkeypatch):
    """The title is where the environment was, which Python has still."""
    folder, services = tmp_path / "epochs", {}
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "a=b,service.version=1.4")
    with contextlib.ExitStack() as stack:
        for i, item in enumerate(pythons.of_each_version(pythons.interpreters())):
            monkeypatch.setenv("OTEL_SERVICE_NAME", "shop-%s" % item.name)
            pid = stack.enter_context(harness.target(item, "standing.py")).pid
            services[pid] = "shop-%s" % item.name
            give_title(pid, i % 2)
        with agent(folder, "--mode=wall", *["-p%d" % pid for pid in services], "--epoch", "1s") as process:
            harness.wait_for(lambda: epochs(folder))
            end(process)
    assert {one["pid"]: one["service"] for one in as_json(folder)["processes"]} == services
    assert values(as_json(folder, "--service-version", "1.4")) == values(as_json(folder)) > 0


def rows_of_epochs(folder):
    """Each epoch's own rows, with its time, and its account in a row before them; filters hold for them, too."""
    run = pybpf("report", folder, "-f", "jsonl")
    assert run.code == 0 and re.fullmatch(r"pybpf: \d+ epochs, from .* to .*\n", run.err), run
    rows = [json.loads(line) for line in run.out.splitlines()]
    heads = [row for row in rows if row["type"] == "profile"]
    begins = sorted(span(name)[0] for name in epochs(folder))
    assert sorted(harness.utc_ms(row["begin_utc"]) for row in heads) == begins
    for name in epochs(folder):
        mine = [row for row in rows if harness.utc_ms(row["begin_utc"]) == span(name)[0]]
        samples = [row for row in mine if row["type"] == "sample"]
        one = as_json(folder / name)
        assert values({"samples": samples}) == values(one)
        assert sum(row["time_ns"] for row in samples) == values(one) * one["measure"]["period_ns"]
        assert all(abs(harness.utc_ms(row["end_utc"]) - span(name)[1]) <= 1 for row in mine)
        assert [row["account"] for row in mine if row["type"] == "profile"] == [one["account"]]
    assert {row["process"]["service"] for row in rows if row["type"] == "sample"} == {"shop"}
    assert {row["process"]["version"] for row in rows if row["type"] == "sample"} == {"1.4+2"}
    run = pybpf("report", folder, "-f", "jsonl", "--under", "large")
    assert {row["stack"][0]["name"] for row in map(json.loads, run.out.splitlines()) if row["type"] == "sample"} == {"large"}
    run = pybpf("report", folder, "-o", folder / "rows.jsonl", "--under", "nowhere")
    assert run.code == 1 and "no stack has a function of that name" in harness.one_sentence(run.err)
    assert not (folder / "rows.jsonl").exists()


def test_what_is_refused(tmp_path):
    """Each in a sentence, before anything is sampled."""
    folder = tmp_path / "epochs"
    with agent(folder, "--epoch", "1s") as process:
        harness.wait_for(lambda: epochs(folder))
        run = pybpf("agent", "--dir", folder)
        assert run.code == 1 and "another agent writes to" in harness.one_sentence(run.err)
        end(process)
    folder.chmod(0o777)
    (folder / "cpu").mkdir(mode=0o700)
    (folder / "otlp").mkdir(mode=0o700)
    sending = ["--otlp", "http://localhost:1/", "--spool", folder, "--dir", tmp_path / "other"]
    for arguments in ([], ["--mode=cpu", "--mode=gil"], sending):
        run = pybpf("agent", "--dir", folder, *arguments)
        assert run.code == 1 and "cannot use %s: others may write to it" % folder in harness.one_sentence(run.err), run
    for option, value in (("--epoch", "0"), ("--keep", "soon"), ("--keep-size", "2"), ("--service", "web")):
        run = pybpf("agent", option, value)
        assert run.code == 2 and value in harness.one_sentence(run.err), run


def test_killed(tmp_path):
    """Whole files stay of what is killed, and the next agent goes on with the numbers."""
    folder = tmp_path / "epochs"
    with agent(folder, "--epoch", "1s") as process:
        harness.wait_for(lambda: epochs(folder))
        process.kill()
        process.wait()
    with agent(folder, "--epoch", "1s") as process:
        before = len(epochs(folder))
        harness.wait_for(lambda: len(epochs(folder)) > before)
        end(process)
    names = epochs(folder)
    assert sorted(path.name for path in folder.iterdir()) == names
    assert [int(NAME.fullmatch(name).group(2)) for name in names] == list(range(1, len(names) + 1))
    assert as_json(folder)["format"] == "pybpf"


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_nobody_reads_what_it_says(kind, tmp_path):
    """Epochs go on and SIGTERM ends it, whatever it would say; who reads again is told how many messages are missing."""
    folder = tmp_path / "epochs"
    if kind == "pipe":
        reader, writer = os.pipe()
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    else:
        pair = socket.socketpair()
        pair[1].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        reader, writer = (one.detach() for one in pair)
    command = [harness.PYBPF, "agent", "--dir", str(folder), "-vv", "--epoch", "1s", "-p", str(os.getpid())]
    with open(reader, encoding="utf-8") as said:
        with harness.started(command, stdin=subprocess.DEVNULL, stderr=writer) as process:
            os.close(writer)
            harness.wait_for(lambda: process.poll() is not None or epochs(folder))
            for line in iter(said.readline, ""):
                assert line.startswith("pybpf: ") and line.endswith("\n"), line
                if "messages were dropped" in line:
                    break
            assert int(re.fullmatch("pybpf: messages were dropped, as nobody read stderr: ([0-9]+)\n", line).group(1)) > 0
            process.send_signal(signal.SIGTERM)
            assert process.wait(harness.PATIENCE) == 0


def test_a_stopped_maker(tmp_path):
    """What makes helpers stands still: that is said, the agent goes on, SIGTERM ends it in order, and nothing is left."""
    folder = tmp_path / "epochs"
    with agent(folder, "--epoch", "1s") as process:
        harness.wait_for(lambda: epochs(folder))
        names = process_names(process.pid)
        (maker,) = [pid for pid, name in names.items() if name == "pybpf-maker"]
        os.kill(maker, signal.SIGSTOP)
        # Without a helper it needs another one for the next question.
        for pid, name in names.items():
            if name == "pybpf-helper":
                os.kill(pid, signal.SIGKILL)
        with harness.target(harness.default_python(), "shares.py"):
            said = process.stderr.readline()
            while "does not answer" not in said:
                said = process.stderr.readline()
            assert "pybpf-maker, %d" % maker in said
            before = len(epochs(folder))
            harness.wait_for(lambda: len(epochs(folder)) > before)
            end(process)
    harness.wait_for(lambda: not Path("/proc/%d" % maker).exists())


def test_the_rate_is_lowered(tmp_path):
    """Beyond --max-cpu fewer samples are taken, and each counts for more: the CPU time in the profile stays the same."""
    folder = tmp_path / "epochs"
    with harness.target(harness.default_python(), "shares.py") as target:
        before = cpu_s(target.pid)
        with agent(folder, "-p", target.pid, "--epoch", "1s", "-F", 999, "--max-cpu", "0.001%", "--listen", tmp_path / "http") as process:
            said = ""
            # The signal comes in the epoch in which it is lowered.
            while "the rate is lowered to 250 Hz" not in said:
                said += process.stderr.readline()
            now = metrics(asker(tmp_path / "http"))
            said += end(process)
        used = cpu_s(target.pid) - before
    assert "the rate is lowered to 500 Hz" in said
    # On a busy machine it may have been lowered further when that was asked.
    assert now["pybpf_rate_divisor"] in (4, 2 ** said.count("the rate is lowered to ")), (now, said)
    everything = as_json(folder)
    assert "2" in everything["facts"]["weight"].split(", ")
    taken = account(everything, "python", "without")
    assert 0 < taken < values(everything)
    assert 0.5 < values(everything) / 999 / used < 1.5


def test_the_service_manager_is_told(tmp_path):
    """READY when it samples, WATCHDOG in the interval that the manager asks for, STOPPING before the last epoch is written."""
    address = str(tmp_path / "manager")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(harness.PATIENCE)
        environment = {**os.environ, "NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000"}
        with agent(tmp_path / "epochs", "--epoch", "1s", env=environment) as process:
            assert [manager.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
            end(process)
        said = []
        while said[-1:] != [b"STOPPING=1"]:
            said.append(manager.recv(100))
        assert set(said[:-1]) <= {b"WATCHDOG=1"}


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_unit_is_accepted(tmp_path):
    unit = tmp_path / "pybpf-agent.service"
    text = (harness.TOP / "docs" / "pybpf-agent.service").read_text(encoding="utf-8")
    unit.write_text(text.replace("/usr/bin/pybpf", str(harness.PYBPF)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0 and not done.stderr, done.stderr


WRONG_FILES = [
    ("epochs: 30s", "line 1, column 1: there is no option epochs; did you mean epoch"),
    ("keep: 1d\nepoch: never", "line 2, column 8: --epoch never: not the length of an epoch"),
    ("service:\n- shop=x\n- shop", "line 3, column 3: --service shop: not a rule"),
    ("kernel: 5", "line 1, column 9: kernel takes true or false"),
    ("epoch: {a: b}", "line 1, column 8: epoch takes a value"),
    ("service: [[a]]", "line 1, column 11: service takes a list of texts"),
    ("epoch: 1s\nepoch: 2s", "line 2, column 1: epoch occurs twice"),
    ("epoch: 1s\n keep: 1d", "line 2, column 6: this is not YAML"),
    ("- epoch", "line 1, column 1: the file is one mapping"),
    ("config: other", "line 1, column 1: there is no option config"),
    ("", "it is empty"),
    ("all: true\npid: 1", "line 2, column 1: --all and -p contradict each other"),
    ("pid: 1\nepoch: 1s\nall: true", "line 3, column 1: --all and -p contradict each other"),
    ("epoch: 1s\nlisten-token: /x", "line 2, column 1: --listen-token is for --listen, which is missing"),
    ("listen-mode: 0660\nlisten: :0", "line 1, column 1: --listen-mode is the mode of a Unix socket, but --listen :0 is"),
    ("threads: true\nsubprocesses: true\nall: true", "line 2, column 1: --children follows what"),
    ("epoch: 1s\nspool: /x\nkeep: 1d", "line 2, column 1: --label, --hosts-share"),
    ("otlp: http://a/\nhttp-token: /x\npprof: http://b/", "line 2, column 1: --http-headers, --http-token and --http-key are secrets of one"),
    ("epoch: 1s\nlisten: here", "line 2, column 9: --listen: cannot listen on here: write ADDRESS:PORT"),
    ("mode:\n- cpu\n- wall=shop\n- offcpu=shop", "line 4, column 3: --mode offcpu=shop: wall and offcpu cannot be measured together"),
    ("mode: [cpu, gil=]", "line 1, column 13: --mode gil=: the name of a service is missing"),
    ("mode: [wall=shop, wall]", "line 1, column 19: --mode wall: this mode is given both with services and without"),
    ("epoch: 5s\n---\nepoch: 6s\n", "line 2, column 1: a second document begins here"),
    ("epoch: 5s\n...\n]\n", "this is not YAML"),
    # Nothing is left out of epochs; reports take it.
    ("own: true", "line 1, column 1: there is no option own"),
    ('host: ""', "line 1, column 7: --host : not the name of a host"),
    ('host: "a\\nb"', "line 1, column 7: --host a\\x0ab: not the name of a host"),
    ("host: " + "a" * 256, "it takes 1 to 255 bytes"),
    ("[" * 70000, "it is no file of at most 64 KiB"),
]


@pytest.mark.parametrize("text, words", WRONG_FILES, ids=range(len(WRONG_FILES)))
def test_wrong_files_of_options(tmp_path, text, words):
    path = tmp_path / "agent.yaml"
    path.write_text(text)
    run = pybpf("agent", "--check", "--config", path)
    assert run.code == 2 and words in harness.one_sentence(run.err) and not run.out, run


OPEN_FILES = {
    "http-headers": "otlp: http://localhost:1/",
    "http-token": "otlp: http://localhost:1/",
    "http-key": "otlp: http://localhost:1/\nhttp-certificate: %s",
    "listen-token": "listen: :0",
}


@pytest.mark.parametrize("key", OPEN_FILES)
def test_secrets_that_others_may_read(tmp_path, key):
    """They are refused where the file of options names them; and those that are missing."""
    secret, config, certificate = tmp_path / "secret", tmp_path / "agent.yaml", tmp_path / "certificate"
    secret.write_text("0123456789abcdef: x\n", encoding="ascii")
    certificate.write_text("certificate\n", encoding="ascii")
    secret.chmod(0o644)
    before = OPEN_FILES[key].replace("%s", str(certificate))
    for path, words in ((secret, "others than its owner may use %s" % secret), (tmp_path / "none", "cannot open %s" % (tmp_path / "none"))):
        config.write_text("epoch: 5s\n%s\n%s: %s\nkeep: 1d\n" % (before, key, path), encoding="ascii")
        run = pybpf("agent", "--check", "--config", config)
        line = 3 + before.count("\n")
        assert run.code == 1 and "%s, line %d, column 1: " % (config, line) in harness.one_sentence(run.err) and words in run.err, run


def test_a_certificate_that_is_missing(tmp_path):
    key, config = tmp_path / "key", tmp_path / "agent.yaml"
    key.write_text("key\n", encoding="ascii")
    key.chmod(0o600)
    config.write_text("http-key: %s\notlp: http://localhost:1/\nhttp-certificate: /none\n" % key, encoding="ascii")
    run = pybpf("agent", "--check", "--config", config)
    assert run.code == 1 and "line 3, column 1: cannot open /none" in harness.one_sentence(run.err), run


def test_files_of_options(tmp_path):
    """Every key is an option; the command line counts more; who may change the file, chooses."""
    path = tmp_path / "agent.yaml"
    path.write_text("# Comment\nepoch: 30s\nservice: [shop=gunicorn*, 'db=pg*']\nkernel: true\nthreads: false\nnative: all\nuser: root\nown-path: acme\n")
    run = pybpf("agent", "--check", "--config", path)
    assert run.code == 0 and run.out == "The options are in order.\n" and not run.err, run
    assert pybpf("agent", "--check", "--config", path, "--epoch", "x").code == 2
    path.chmod(0o666)
    run = pybpf("agent", "--check", "--config", path)
    assert run.code == 2 and "others may write to it" in harness.one_sentence(run.err)


def test_a_fifo_is_no_file_of_options(tmp_path):
    """It has no writer: who read it would wait."""
    os.mkfifo(tmp_path / "fifo")
    run = pybpf("agent", "--check", "--config", tmp_path / "fifo", timeout=harness.PATIENCE)
    assert run.code == 2 and "it is no file of at most 64 KiB" in harness.one_sentence(run.err), run


def test_options_change_at_a_hangup(tmp_path):
    folder, path = tmp_path / "epochs", tmp_path / "agent.yaml"
    path.write_text("epoch: 1h\nfreq: 49\nservice: shop=x\n")
    ask = asker(tmp_path / "http")
    with agent(folder, "--config", path, "--keep", "2d", "--max-c", "50%", "--listen", tmp_path / "http") as process:
        harness.wait_for(lambda: harness.is_attached(process.pid))
        assert metrics(ask)["pybpf_reload_failed_total"] == 0
        path.write_text("epoch: 1x\n")
        process.send_signal(signal.SIGHUP)
        assert "line 1, column 8: --epoch 1x" in process.stderr.readline()
        assert "the options stay as they were" in process.stderr.readline()
        # What the next start would refuse.
        for text, words in (("freq: 0", "line 2, column 7: -F 0"), ("spool: x", "--spool and --http-... are for --otlp")):
            path.write_text("epoch: 1s\n%s\n" % text)
            process.send_signal(signal.SIGHUP)
            assert words in process.stderr.readline()
            assert "the options stay as they were" in process.stderr.readline()
        assert metrics(ask)["pybpf_reload_failed_total"] == 3
        # All that cannot change: another value, a new key, one that is gone.
        path.write_text("epoch: 1s\nkeep: 1h\nfreq: 99\nthreads: true\n")
        process.send_signal(signal.SIGHUP)
        assert process.stderr.readline().endswith("at the next start change: freq, threads, service\n")
        said = process.stderr.readline()
        assert "was read again: epochs of 1 s, which are kept for 172800 s" in said and said.endswith("--max-cpu 50 %\n")
        end(process)
    (name,) = epochs(folder)
    assert as_json(folder)["facts"]["freq_hz"] == "49"


def test_the_page_is_true(tmp_path):
    """The files of options of docs/agent.md and of the DaemonSet are accepted."""
    text = (harness.TOP / "docs" / "agent.md").read_text(encoding="utf-8")
    path = tmp_path / "agent.yaml"
    path.write_text("".join(line[4:] + "\n" for line in re.search(r"^    # /etc/pybpf/agent.yaml\n((?:    .*\n)+)", text, re.M).group(1).splitlines()))
    run = pybpf("agent", "--check", "--config", path)
    assert run.code == 0, run
    manifest = (harness.TOP / "docs" / "pybpf-agent.yaml").read_text(encoding="utf-8")
    path.write_text(re.search(r"^  agent.yaml: \|\n((?:    .*\n)+)", manifest, re.M).group(1))
    run = pybpf("agent", "--check", "--config", path)
    assert run.code == 0, run
