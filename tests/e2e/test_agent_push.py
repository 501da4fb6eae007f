# SPDX-License-Identifier: Apache-2.0
"""pybpf agent that sends its epochs: what arrives is what was sampled, whatever happens in between."""

import contextlib
import gzip
import os
import re
import shutil
import signal
import subprocess
import urllib.parse
from pathlib import Path

import harness
from harness import process_names, pybpf
from protobuf import fields, number, of
from receiver import Answer, receiving
from test_agent import account, agent, as_json, asker, end, epochs, metrics, values

HOME = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}


def otlp_total(body):
    """The sum of all values: of resources, scopes, profiles, samples."""
    return sum(number(value, 0)[0] for value in of(gzip.decompress(body), 1, 2, 2, 2, 4))


def pprof_total(body):
    return sum(number(value, 0)[0] for value in of(gzip.decompress(body), 2, 2))


def pprof_labels(body):
    """The texts that the samples have as labels, as a dict for each sample."""
    data = gzip.decompress(body)
    texts = [text.decode() for text in of(data, 6)]
    for sample in of(data, 2):
        labels = [dict(fields(label)) for label in of(sample, 3)]
        yield {texts[label[1]]: texts[label[2]] for label in labels if 2 in label}


def attributes(body):
    """Those of each resource, as a dict each."""
    for resource in of(gzip.decompress(body), 1, 1):
        yield {
            next(of(one, 1)).decode(): next(of(next(of(one, 2)), 1)).decode() for one in of(resource, 1)
        }


def base(it):
    return it.url.rsplit("/v1", 1)[0]


@contextlib.contextmanager
def sending(folder, *args):
    with agent(folder, "--epoch", "1s", "-F", 499, "--max-cpu", "100%", *args, env=HOME) as process:
        yield process


def without_delays(said):
    """What the agent said, but for epochs that a busy machine made longer."""
    return "".join(line for line in said.splitlines(keepends=True) if " in place of " not in line)


def named(pid, name):
    return [one for one, its in process_names(pid).items() if its == name]


def test_what_arrives_is_what_was_sampled(tmp_path):
    """Each sample once, of each epoch and the last one, for each kind of receiver; processes by service.

    Sums are exact with --top-stacks, too, which adds up stacks.
    """
    folder = tmp_path / "epochs"
    python = harness.default_python()
    with receiving() as it, harness.target(python, "shares.py") as one, harness.target(python, "calls.py", "60") as two:
        arguments = ["-p", one.pid, "-p", two.pid, "--service", "shop=*shares*", "--service", "bank=*calls*"]
        arguments += ["--label", "team=web", "--label", "a.b=c,d", "--top-stacks", "2", "--host", "node-7"]
        urls = ["--otlp", base(it), "--pyroscope", base(it) + "/", "--pprof", base(it) + "/profiles?of=all"]
        with sending(folder, *arguments, *urls) as process:
            harness.wait_for(lambda: len(epochs(folder)) >= 2)
            assert not without_delays(end(process))
    profile = as_json(folder)
    total = values(profile)
    by_path = {}
    for request in it.requests:
        by_path.setdefault(request.path.split("?")[0], []).append(request)
    assert sorted(by_path) == ["/ingest", "/profiles", "/v1development/profiles"]
    otlp = [request.body for request in by_path["/v1development/profiles"]]
    assert sum(map(otlp_total, otlp)) == total == account(profile, "python", "without") > 0
    assert all(request.path == "/profiles?of=all" for request in by_path["/profiles"])
    # Its first value of each sample is the number of samples.
    assert sum(pprof_total(request.body) for request in by_path["/profiles"]) == total
    labels = [found for request in by_path["/profiles"] for found in pprof_labels(request.body)]
    assert all(found["team"] == "web" and found["a.b"] == "c,d" and found["service"] in ("shop", "bank") for found in labels)
    assert any(b"[other stacks]" in gzip.decompress(body) for body in otlp)
    resources = [found for body in otlp for found in attributes(body)]
    assert {found["service.name"] for found in resources} == {"shop", "bank"}
    assert all(found["team"] == "web" and found["a.b"] == "c,d" and found["host.name"] == "node-7" for found in resources)
    shares = {}
    for request in by_path["/ingest"]:
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query, strict_parsing=True)
        name = re.fullmatch(r"(\w+)\{team=web,a_b=c_d,host=node-7\}", query["name"][0]).group(1)
        shares[name] = shares.get(name, 0) + pprof_total(request.body)
    assert profile["facts"]["host"] == "node-7"
    assert shares == {name: values(as_json(folder, "--service", name)) for name in ("shop", "bank")}


def test_names_that_receivers_would_refuse(tmp_path):
    """A program without a name, and names that are not UTF-8: all that arrives is, and nothing is without a name."""
    folder, program = tmp_path / "epochs", tmp_path / "nameless.py"
    program.write_text(
        "import ctypes, sys\n"
        "ctypes.CDLL(None).prctl(15, sys.argv[1].encode('utf-8', 'surrogateescape'), 0, 0, 0)\n"
        "while True: sum(range(1000))\n"
    )
    python = harness.default_python().argv[0]
    environments = {**os.environ}, {**os.environb, b"OTEL_SERVICE_NAME": b"w\xff"}
    with receiving() as it, contextlib.ExitStack() as stack:
        pids = []
        for name, environment in ((b"", environments[0]), (b"n\xfe", environments[0]), (b"", environments[1])):
            command = [b"", os.fsencode(program), name]
            pids.append(stack.enter_context(harness.started(command, executable=python, env=environment)).pid)
        arguments = [word for pid in pids for word in ("-p", pid)]
        urls = ["--otlp", base(it), "--pyroscope", base(it), "--pprof", base(it) + "/profiles"]
        with sending(folder, *arguments, "--label", os.fsdecode(b"te\xffam=w\xfe"), "--label", "1=one", *urls) as process:
            harness.wait_for(lambda: len(epochs(folder)) >= 2)
            assert not without_delays(end(process))
    queries = []
    for request in it.requests:
        if request.path.startswith("/ingest"):
            queries.append(urllib.parse.parse_qs(urllib.parse.urlsplit(request.path).query, strict_parsing=True, errors="strict")["name"][0])
        elif request.path == "/profiles":
            assert all(found["te\\xffam"] == "w\\xfe" and found["1"] == "one" for found in pprof_labels(request.body))
        else:
            assert all(found["te\\xffam"] == "w\\xfe" and found["service.name"] for found in attributes(request.body))
    assert queries and all(re.fullmatch(r"[^{},=]+\{te_am=w\\xfe,_1=one,host=[^{},=]+\}", query) for query in queries), queries
    assert any(query.startswith("w_xff{") for query in queries)


def test_a_host_that_is_not_chosen(tmp_path):
    """It sends nothing, says so once, and keeps its files: the share is too small for any host."""
    folder = tmp_path / "epochs"
    with receiving() as it, harness.target(harness.default_python(), "shares.py") as target:
        with sending(folder, "-p", target.pid, "--otlp", base(it), "--hosts-share", "1e-18", "--listen", tmp_path / "http") as process:
            harness.wait_for(lambda: len(epochs(folder)) >= 2)
            now = metrics(asker(tmp_path / "http"))
            said = end(process)
    assert now["pybpf_host_sends"] == 0 and now['pybpf_epochs_unsent_total{mode="cpu"}'] == now["pybpf_epochs_total"] >= 2, now
    assert without_delays(said) == "pybpf: --hosts-share 1e-18: today (UTC) this host sends none; other hosts do\n"
    assert not it.requests and values(as_json(folder)) > 0
    for option, value in (("--hosts-share", "0"), ("--hosts-share", "10%"), ("--top-stacks", "0")):
        run = pybpf("agent", "--otlp", base(it), option, value)
        assert run.code == 2 and value in harness.one_sentence(run.err), run


def test_an_outage(tmp_path):
    """Nothing is lost of it, nor of an agent that ended in it: the spool has it at the next start."""
    folder, spool = tmp_path / "epochs", tmp_path / "spool"
    port = harness.free_port()
    with harness.target(harness.default_python(), "shares.py") as target:
        arguments = ["-p", target.pid, "--otlp", "http://localhost:%d" % port, "--spool", spool, "--listen", tmp_path / "http"]
        with sending(folder, *arguments) as process:
            harness.wait_for(lambda: epochs(folder))
            said = without_delays(end(process))
        waiting = re.search(r"pybpf: requests to \S+ that wait in %s/otlp: (\d+); they are sent after the next start" % spool, said)
        assert waiting and said.count("cannot send to") == 1 and len(said.splitlines()) == 2, said
        before = len(epochs(folder))
        with sending(folder, *arguments) as process:
            assert "cannot send to" in process.stderr.readline()
            harness.wait_for(lambda: len(epochs(folder)) > before)
            with receiving(port=port) as it:
                harness.wait_for(lambda: len(it.requests) > int(waiting.group(1)))
                now = metrics(asker(tmp_path / "http"))
                assert "takes profiles again" in harness.one_sentence(without_delays(end(process)))
    assert sum(otlp_total(request.body) for request in it.requests) == values(as_json(folder)) > 0
    # The first attempt failed, and was repeated.
    assert now['pybpf_requests_retried_total{receiver="otlp"}'] >= 1 and now['pybpf_requests_found_total{receiver="otlp"}'] == int(waiting.group(1)), now
    assert spool.stat().st_mode & 0o777 == 0o700


def test_what_is_refused_is_told(tmp_path):
    """A web page is no receiver, which is said with the count; files go on. What a receiver refuses of a request is counted."""
    folder = tmp_path / "epochs"
    page = Answer(200, b"<html>welcome</html>", "text/html")
    partial = Answer(200, b"\x0a\x02\x08\x03")  # partial_success, with rejected_profiles 3
    names = ['pybpf_requests_dropped_total{receiver="otlp",cause="refused"}', 'pybpf_profiles_rejected_total{receiver="otlp"}']
    with receiving(partial, *[page] * 9) as it, harness.target(harness.default_python(), "shares.py") as target:
        with sending(folder, "-p", target.pid, "--otlp", it.url, "--listen", tmp_path / "http") as process:
            now = harness.wait_for(lambda: metrics(asker(tmp_path / "http")) if len(it.requests) >= 3 else None)
            said = end(process)
    dropped, rejected = (now[name] for name in names)
    assert 1 <= dropped <= len(it.requests) - 1 and rejected == 3, now
    assert now['pybpf_requests_sent_total{receiver="otlp"}'] == 1, now
    assert said.count("a web page, which no receiver of profiles answers") == 1
    lost = re.findall(r"pybpf: requests lost on the way to %s: (\d+); the receiver refused them\n" % re.escape(it.url), said)
    # An epoch without a sample, as a short last one may be, is not sent.
    sent = [name for name in epochs(folder) if values(as_json(folder / name))]
    assert sum(map(int, lost)) == len(it.requests) - 1 == len(sent) - 1, said


def test_killed(tmp_path):
    """The process that sends is started again; without its keeper the agent ends; without the agent nothing stays."""
    folder = tmp_path / "epochs"
    with receiving() as it, harness.target(harness.default_python(), "shares.py") as target:
        with sending(folder, "-p", target.pid, "--otlp", it.url, "--listen", tmp_path / "http") as process:
            (sender,) = harness.wait_for(lambda: named(process.pid, "pybpf-push"))
            os.kill(sender, signal.SIGKILL)
            assert "ended by a signal, and was restarted" in process.stderr.readline()
            before = len(it.requests)
            harness.wait_for(lambda: len(it.requests) > before)
            assert metrics(asker(tmp_path / "http"))['pybpf_sender_restarts_total{receiver="otlp"}'] == 1
            os.kill(named(process.pid, "pybpf-pusher")[0], signal.SIGKILL)
            said = process.communicate(timeout=harness.PATIENCE)[1]
            assert process.returncode == 1 and "has ended: nothing can be sent any more\n" in said
            assert said.count("\n") == 1 or "; no time was left for them, or the process that sends is gone\n" in said
        with sending(folder, "-p", target.pid, "--otlp", it.url) as process:
            pids = harness.wait_for(lambda: named(process.pid, "pybpf-push") and process_names(process.pid))
            process.kill()
            process.wait()
            harness.wait_for(lambda: not any(Path("/proc/%d" % pid).exists() for pid in pids))


def test_a_hangup_reads_no_secrets(tmp_path):
    """Which is said, where there are some."""
    token, config = tmp_path / "token", tmp_path / "agent.yaml"
    token.write_text("abc\n", encoding="ascii")
    token.chmod(0o600)
    config.write_text("epoch: 1h\n", encoding="ascii")
    urls = ["--otlp", "http://localhost:%d" % harness.free_port(), "--http-token", token]
    with harness.target(harness.default_python(), "shares.py") as target:
        with agent(tmp_path / "epochs", "-p", target.pid, *urls, "--config", config, env=HOME) as process:
            harness.wait_for((tmp_path / "epochs").exists)
            process.send_signal(signal.SIGHUP)
            said = process.stderr.readline()
            end(process)
    assert said.endswith("; tokens, headers and certificates are read at the start only\n"), said


def test_without_what_keeps_files(tmp_path):
    """The agent ends, and its last epoch is sent: it is lost in the folder only."""
    with receiving() as it, harness.target(harness.default_python(), "shares.py") as target:
        with agent(tmp_path / "epochs", "-p", target.pid, "--otlp", it.url, "-F", 499, env=HOME) as process:
            harness.wait_for(lambda: harness.samples_now(process.pid))
            os.kill(named(process.pid, "pybpf-keeper")[0], signal.SIGKILL)
            err = process.communicate(timeout=harness.PATIENCE)[1]
    assert process.returncode == 1 and "no more epochs can be written" in err, err
    assert len(it.requests) == 1 and otlp_total(it.requests[0].body) > 0


def test_without_a_folder(tmp_path):
    """Files are kept only where they are asked for, or nothing is sent."""
    with receiving() as it, harness.target(harness.default_python(), "shares.py") as target:
        command = [harness.PYBPF, "agent", "-p", str(target.pid), "--epoch", "1s", "--pprof", it.url]
        with harness.started(command, stderr=subprocess.PIPE, text=True, env=HOME, cwd=tmp_path) as process:
            harness.wait_for(lambda: it.requests)
            assert not Path("/proc/%d/cwd" % process.pid).samefile("/")
            names = process_names(process.pid).values()
            assert "pybpf-push" in names and not any("keep" in name for name in names), names
            assert not end(process)


def test_bad_input(tmp_path):
    """Each in a sentence, before anything is sampled, and by --check."""
    token, config = tmp_path / "token", tmp_path / "agent.yaml"
    token.write_text("abc\n", encoding="ascii")
    token.chmod(0o644)
    for arguments, says in (
        (["--otlp", "collector:4318"], "--otlp: collector:4318: not a URL of HTTP"),
        (["--pyroscope", "http://localhost/ingest?name=x"], "pybpf adds its own query"),
        (["--pprof", "http://me:pw@localhost/"], "must not have a user and a password"),
        (["--label", "team"], "--label team: not a label"),
        (["--spool", tmp_path], "are for --otlp, --pyroscope or --pprof"),
        (["--otlp", "http://a/", "--pprof", "http://b/", "--http-token", token], "--otlp and --pprof are on two hosts"),
        (["--otlp", "http://a/", "--spool", tmp_path, "--spool-size", "1"], "not a size; it takes one from 1MiB to 1TiB"),
    ):
        run = pybpf("agent", *arguments)
        assert run.code == 2 and says in harness.one_sentence(run.err), run
    for check in ([], ["--check"]):
        run = pybpf("agent", "--otlp", "http://localhost:1/", "--http-token", token, *check)
        assert run.code == 1 and "others than its owner may use %s" % token in harness.one_sentence(run.err), run
    his = tmp_path / "his"
    his.write_text(40 * "x", encoding="ascii")
    his.chmod(0o600)
    shutil.chown(his, 54321)
    for arguments in (["--otlp", "http://localhost:1/", "--http-token", his], ["--listen", ":0", "--listen-token", his]):
        run = pybpf("agent", *arguments, "--check")
        assert run.code == 1 and "belongs to user 54321, who could choose it" in harness.one_sentence(run.err), run
        run = pybpf("agent", *arguments, "--check", env={**os.environ, "SUDO_UID": "54321", "SUDO_GID": "54321"})
        assert run.code == 0, run
    run = pybpf("agent", "--listen", ":0", "--listen-token", token, "--check")
    assert run.code == 1 and "others than its owner may use %s" % token in harness.one_sentence(run.err), run
    config.write_text("epoch: 5s\npprof: ftp://x\n", encoding="ascii")
    run = pybpf("agent", "--config", config, "--check")
    assert run.code == 2 and "line 2, column 8: --pprof: ftp://x: not a URL" in harness.one_sentence(run.err), run


def test_the_proxy_is_that_of_the_environment(tmp_path):
    """It alone knows the name of the receiver, and gets no request for a host of no_proxy."""
    with receiving() as proxy, receiving() as near, harness.target(harness.default_python(), "shares.py") as target:
        environment = {**HOME, "http_proxy": base(proxy), "no_proxy": "localhost"}
        arguments = ["-p", target.pid, "--epoch", "1s", "--otlp", "http://collector.invalid:4318", "--pprof", base(near) + "/upload"]
        with agent(tmp_path / "epochs", *arguments, env=environment) as process:
            harness.wait_for(lambda: proxy.requests and near.requests)
            said = end(process)
    assert {request.path for request in proxy.requests} == {"http://collector.invalid:4318/v1development/profiles"}
    assert {request.headers["Host"] for request in proxy.requests} == {"collector.invalid:4318"}
    assert {request.path for request in near.requests} == {"/upload"}
    assert not without_delays(said), said
