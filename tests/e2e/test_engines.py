# SPDX-License-Identifier: Apache-2.0
"""Parca, where it is installed, has what pybpf sent or served: stacks, lines, values."""

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
    assert found == wanted, (found - wanted, wanted - found)


@pytest.fixture(scope="module")
def parca(nothing_goes_on, tmp_path_factory):
    with engines.parca(tmp_path_factory.mktemp("parca")) as it:
        yield it


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
