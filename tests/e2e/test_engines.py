# SPDX-License-Identifier: Apache-2.0
"""Pyroscope and Parca, where they are installed, have what pybpf sent or served: stacks, lines, values, labels."""

import contextlib
import http.server
import subprocess
import threading
import urllib.request
from collections import Counter

import pytest

import engines
import formats
import harness
import test_agent
import test_agent_push
import test_agent_serve

pytestmark = pytest.mark.usefixtures("profiler")

CPU = "process_cpu:cpu:nanoseconds:cpu:nanoseconds"
RATE = 199
PERIOD_NS = 10**9 // RATE
EXPORT = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"


def document(saved, *args):
    return test_agent.as_json(saved, *args)


def eventually(read, wanted):
    """Stores show what they took some time later."""
    with contextlib.suppress(AssertionError):
        harness.wait_for(lambda: read() == wanted, timeout=engines.PATIENCE, step=0.3)
    found = read()
    assert found == wanted, "%s in place of %s" % (found, wanted)


@pytest.fixture(scope="module")
def pyroscope(nothing_goes_on, tmp_path_factory):
    with engines.pyroscope(tmp_path_factory.mktemp("pyroscope")) as it:
        yield it


@pytest.fixture(scope="module")
def parca(nothing_goes_on, tmp_path_factory):
    with engines.parca(tmp_path_factory.mktemp("parca")) as it:
        yield it


def sampled(folder, urls, *args, modes=()):
    """Epochs of an agent with two services, sent to URLs; returns what it said."""
    python = harness.default_python()
    with harness.target(python, "parts.py") as one, harness.target(python, "shares.py") as two:
        arguments = ["-p", "%d,%d" % (one.pid, two.pid), "--service", args[0] + "=*parts*", "--service", args[1] + "=*shares*"]
        with test_agent_push.sending(folder, *arguments, "--host", "node-7", *args[2:], *urls) as process:
            harness.wait_for(lambda: all(len(test_agent.epochs(folder / mode)) >= 3 for mode in modes or [""]))
            return test_agent_push.without_delays(test_agent.end(process))


@pytest.mark.parametrize("path", ["", "/push.v1.PusherService/Push"], ids=["ingest", "push.v1"])
def test_pyroscope_has_what_is_pushed(pyroscope, tmp_path, path):
    """Each service has its stacks, with lines, the CPU time of their samples, and the labels."""
    name = "a" + str(len(path))
    said = sampled(tmp_path / "epochs", ["--pyroscope", pyroscope.url + path], name + "-shop", name + "-bank", "--label", "a.b=web")
    assert not said
    for service in name + "-shop", name + "-bank":
        profile = document(tmp_path / "epochs", "--service", service)
        selector = '{service_name="%s"}' % service
        wanted = engines.expected(profile, profile["measure"]["period_ns"])
        eventually(lambda: pyroscope.stacks(CPU, selector), wanted)
        assert sum(wanted.values()) > 0
        total, names = pyroscope.render(CPU, selector)
        assert total == sum(wanted.values()) and names >= {frame[0] for stack in wanted for frame in stack}
        series = pyroscope.series(selector)
        assert series and all((labels["host"], labels["a_b"]) == ("node-7", "web") for labels in series), series


def test_pyroscope_has_names_that_it_does_not_allow(pyroscope, tmp_path):
    """Underscores are in place of what is refused in the names of services and of labels."""
    names = "b: master (w@1)", "b (b)+é"
    said = sampled(tmp_path / "epochs", ["--pyroscope", pyroscope.url], *names, "--label", "1 é=x, {y}")
    assert not said
    for service, shown in zip(names, ("b__master__w_1_", "b__b____")):
        profile = document(tmp_path / "epochs", "--service", service)
        wanted = engines.expected(profile, profile["measure"]["period_ns"])
        eventually(lambda: pyroscope.stacks(CPU, '{service_name="%s"}' % shown), wanted)
        assert wanted


@pytest.mark.parametrize("mode", ["wall", "offcpu", "gil"])
def test_pyroscope_has_waits(pyroscope, tmp_path, mode):
    names = "c-%s-shop" % mode, "c-%s-bank" % mode
    urls = ["--pyroscope", pyroscope.url, "--otlp", pyroscope.url]
    assert not sampled(tmp_path / "epochs", urls, *names, "--mode", mode)
    kinds = {one for one in pyroscope.types() if one.split(":")[1] == mode}
    assert len(kinds) == 1, kinds
    for service in names:
        profile = document(tmp_path / "epochs", "--service", service)
        selector = '{service_name="%s",__otel__!="true"}' % service
        eventually(lambda: pyroscope.stacks(*kinds, selector), engines.expected(profile))


# Options -> the types of the profiles: which samples have them, those that wait or the others, and what each value is times.
RUNS = {
    "": {CPU: (False, None)},
    "--native": {CPU: (False, None)},
    "--mode=wall": {"off_cpu:off_cpu:nanoseconds::": (True, 1000), "cpu:cpu:nanoseconds:cpu:nanoseconds": (False, 1000)},
    "-e page-faults": {"page_faults:page_faults:count:page_faults:count": (False, 1)},
    "-e tracepoint:syscalls:sys_enter_write": {"%(0)s:%(0)s:count:%(0)s:count" % {"0": "syscalls_sys_enter_write"}: (False, 1)},
    "--mode=memory": {"memory_bytes:memory_bytes:bytes:memory_bytes:bytes": (False, 1)},
}


def recorded(tmp_path, options):
    """A saved profile whose host no other has."""
    saved, host = tmp_path / "run.pybpf", "run" + "".join(c if c.isalnum() else "-" for c in options)
    words = ["waits.py", "1", "sleep", "lock"] if "wall" in options else [formats.TARGET.name, "1"]
    done = harness.pybpf("-q", "--host", host, *options.split(), "-o", saved, "--", *harness.default_python().command(*words))
    assert done.code == 0, done.err
    return saved, host


def scaled(profile, waits, scale):
    return engines.expected(profile, scale or profile["measure"]["period_ns"], waits)


@pytest.mark.parametrize("options", RUNS)
def test_pyroscope_has_what_is_sent_by_otlp(pyroscope, tmp_path, options):
    """Each thread is a series, with the attributes of its process."""
    saved, host = recorded(tmp_path, options)
    done = harness.pybpf("report", saved, "-q", "-o", pyroscope.url)
    assert done.code == 0 and done.err == "", done.err
    profile, selector = document(saved), '{"host.name"="%s"}' % host
    for kind, (waits, scale) in RUNS[options].items():
        eventually(lambda kind=kind: pyroscope.stacks(kind, selector), scaled(profile, waits, scale))
    series = pyroscope.series(selector)
    assert {labels["thread_id"] for labels in series} <= {str(thread["tid"]) for thread in profile["threads"]}
    assert {labels["service_name"] for labels in series} == {profile["processes"][0]["name"]}


@pytest.mark.parametrize("path, kind", [("/ingest", "process_cpu"), ("/push.v1.PusherService/Push", "samples")])
def test_pyroscope_has_all_of_a_large_profile(tmp_path, path, kind):
    """It refuses what is larger, and takes the parts, with its limits of the rate as they are."""
    grown = tmp_path / "grown.pybpf"
    subprocess.run([str(harness.TOP / "build" / "grown-profiles"), "stacks", "1000000", str(grown)], check=True)
    with engines.pyroscope(tmp_path) as it:
        done = harness.pybpf("report", grown, "-q", "-f", "pprof", "-o", it.url + path)
        assert done.code == 0, done.err
        total = test_agent.values(document(grown))
        eventually(lambda: sum(it.stacks(kind + ":samples:count:samples:count", "{}").values()), total)


@pytest.mark.parametrize("options", ["-e page-faults", "--mode=wall"])
@pytest.mark.parametrize("path", ["/ingest", "/push.v1.PusherService/Push"])
def test_pyroscope_has_pprof_of_a_run(pyroscope, tmp_path, options, path):
    saved, host = recorded(tmp_path, options)
    done = harness.pybpf("report", saved, "-q", "-f", "pprof", "-o", pyroscope.url + path)
    assert done.code == 0 and done.err == "", done.err
    kind = "page_faults:page_faults:count:page_faults:count" if "page" in options else "wall:wall:microseconds:wall:microseconds"
    selector = '{host="%s",pyroscope_spy="%s"}' % (host, "pybpf" if path == "/ingest" else "")
    eventually(lambda: pyroscope.stacks(kind, selector), engines.expected(document(saved)))


def by_lines(stacks):
    """The same without names: Parca 0.28 takes those of the function before (pkg/profile/encode.go, FunctionIndex-1)."""
    found = Counter()
    for stack, value in stacks.items():
        found[tuple(line for _, _, line in stack)] += value
    return found


@pytest.mark.parametrize("options", RUNS)
def test_parca_has_what_is_sent_by_otlp(parca, tmp_path, options):
    """It takes OpenTelemetry's profiles by gRPC only, whose message is the body of HTTP's."""
    saved, host = recorded(tmp_path, options)
    body = formats.report(saved, ".otlp").read_bytes()
    message, answer = tmp_path / "message", tmp_path / "answer"
    message.write_bytes(b"\0" + len(body).to_bytes(4, "big") + body)
    argv = ["curl", "-sS", "--http2-prior-knowledge", "-H", "Content-Type: application/grpc", "-H", "TE: trailers", "-D", answer]
    done = subprocess.run([*argv, "-o", "/dev/null", "--data-binary", "@%s" % message, parca.url + EXPORT], capture_output=True, text=True)
    assert done.returncode == 0 and "grpc-status: 0" in answer.read_text().lower(), (done.stderr, answer.read_text())
    profile = document(saved)
    for kind, (waits, scale) in RUNS[options].items():
        what = "samples:count:cpu:nanoseconds" if kind == CPU else kind.split(":", 1)[1]
        query = 'pybpf:%s:delta{host_name="%s"}' % (what, host)
        eventually(lambda query=query: by_lines(parca.stacks(query)), by_lines(scaled(profile, waits, scale)))


def test_parca_has_what_it_scrapes(tmp_path):
    """CPU time, waits and the GIL: each value of what came over the wire, and nothing else."""
    python, kinds = harness.default_python(), {"profile": "process_cpu", "wall": "wall", "gil": "gil"}
    with contextlib.ExitStack() as stack:
        one = stack.enter_context(harness.target(python, "parts.py"))
        modes = ["--mode", "cpu", "--mode", "wall", "--mode", "gil", "--threads", "--native"]
        process, ask = stack.enter_context(test_agent_serve.served(tmp_path / "epochs", "-p", one.pid, *modes, "-F", RATE, "--max-cpu", "100%"))
        served = stack.enter_context(between(ask.address))
        parca = stack.enter_context(engines.parca(tmp_path, served.port, True, wall="/debug/pprof/wall", gil="/debug/pprof/gil"))
        harness.wait_for(lambda: all(len(served.bodies(kind)) >= 2 for kind in kinds))
        served.is_open = False
        for kind, name in kinds.items():
            sums = {}
            for body in served.bodies(kind):
                for what, stacks in engines.read_pprof(body).items():
                    sums.setdefault(what, Counter()).update(stacks)
            assert sums
            for what, wanted in sums.items():
                (known,) = [found for found in parca.types() if found.startswith(":".join((name, *what)) + ":")]
                if what == ("samples", "count") and kind == "profile":
                    wanted = Counter({key: value * PERIOD_NS for key, value in wanted.items()})
                eventually(lambda known=known: parca.stacks(known), wanted)
        test_agent.end(process)


class Between:
    """Hands requests on to the address, and keeps the answers."""

    def __init__(self, address):
        self.address, self.is_open, self.answers = address, True, []

    def bodies(self, kind):
        return [body for path, body in self.answers if path.split("?")[0] == "/debug/pprof/" + kind]


@contextlib.contextmanager
def between(address):
    it = Between(address)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            with urllib.request.urlopen(address + self.path, timeout=harness.PATIENCE) as answer:
                body = answer.read()
            if not it.is_open:
                return self.send_error(503)
            it.answers.append((self.path, body))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        it.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield it
        server.shutdown()
        thread.join()
