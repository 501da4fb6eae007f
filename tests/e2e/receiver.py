# SPDX-License-Identifier: Apache-2.0
"""A receiver of profiles that answers as a test wants it to, and a program that pushes to it."""
import contextlib
import http.server
import json
import os
import select
import ssl
import subprocess
import threading
import time
from dataclasses import dataclass, field

import harness

DRIVER = harness.TOP / "build" / "push-driver"
PROTOBUF = "application/x-protobuf"


@dataclass
class Answer:
    status: int = 200
    body: bytes = b""
    type: str = PROTOBUF
    headers: dict = field(default_factory=dict)
    pause: threading.Event = None  # is waited for before the answer
    endless: bool = False  # its headers do not end


@dataclass
class Request:
    path: str
    headers: dict
    body: bytes
    time: float
    status: int  # that it was answered with

    @property
    def name(self):
        """What the driver calls the body."""
        return self.body.split(b"\0", 1)[0].decode()


def send_headers_without_end(handler):
    """Until who gets them closes the connection."""
    handler.flush_headers()
    while True:
        handler.wfile.write(b"X-Filler: " + 1000 * b"x" + b"\r\n")


class Receiver:
    """
    Keeps what it gets. Its answers are those of a list, one after the other, and then 200; 503 for some names, and that
    of an outage as long as there is one.
    """

    def __init__(self, port=0, context=None):
        self.requests, self.answers, self.lock = [], [], threading.Lock()
        self.never, self.outage = (), None
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with receiver.lock:
                    request = Request(self.path, dict(self.headers), body, time.monotonic(), 0)
                    receiver.requests.append(request)
                    answer = receiver.outage or (receiver.answers.pop(0) if receiver.answers else Answer())
                    if receiver.never and request.name in receiver.never:
                        answer = Answer(503)
                    request.status = answer.status
                if answer.pause:
                    answer.pause.wait(harness.PATIENCE)
                self.send_response(answer.status)
                headers = {"Content-Type": answer.type, "Content-Length": str(len(answer.body)), **answer.headers}
                for name, value in headers.items():
                    self.send_header(name, value)
                if answer.endless:
                    send_headers_without_end(self)
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *args):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # who pushes has given up

        self.server = Server(("127.0.0.1", port), Handler)
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = "%s://localhost:%d/v1development/profiles" % ("https" if context else "http", self.server.server_port)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def names(self):
        return [request.name for request in self.requests]


@contextlib.contextmanager
def receiving(*answers, port=0, context=None):
    receiver = Receiver(port, context)
    receiver.answers += answers
    try:
        yield receiver
    finally:
        receiver.close()


def certificate(folder, name="localhost"):
    """A certificate that signs itself, and its key."""
    paths = folder / (name + ".crt"), folder / (name + ".key")
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    argv += ["-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:" + name, "-out", paths[0], "-keyout", paths[1]]
    subprocess.run(argv, check=True, capture_output=True)
    return paths


def server_context(paths, client=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*paths)
    if client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client)
    return context


class Pusher:
    def __init__(self, url, **options):
        argv = [str(DRIVER), url, *("%s=%s" % item for item in options.items())]
        environment = {key: value for key, value in os.environ.items() if "proxy" not in key.lower()}
        self.process = subprocess.Popen(
            harness.tied(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1,
            env=environment,
        )
        self.ready = self.process.stdout.readline() == "ready\n"

    def write(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def read(self):
        assert select.select([self.process.stdout], [], [], harness.PATIENCE)[0], "no answer"
        return json.loads(self.process.stdout.readline())

    def ask(self, line):
        self.write(line)
        return self.read()

    def send(self, name, size=1000):
        return self.ask("send %s %d" % (name, size))

    def counts(self):
        return self.ask("count")

    def until(self, condition):
        def look():
            counts = self.counts()
            return counts if condition(counts) else None

        return harness.wait_for(look)

    def end(self, seconds=harness.PATIENCE):
        """The last counts, and what was said."""
        counts = self.ask("end %g" % seconds)
        return counts, self.process.communicate(timeout=harness.PATIENCE)[1]

    def children(self):
        """The process that sends, and its keeper: (keeper, worker)."""
        keeper = only_child(self.process.pid)
        return keeper, harness.wait_for(lambda: only_child(keeper))


def only_child(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as children:
        pids = children.read().split()
    return int(pids[0]) if len(pids) == 1 else None


@contextlib.contextmanager
def pushing(url, **options):
    pusher = Pusher(url, **options)
    try:
        assert pusher.ready, pusher.process.stderr.read()
        yield pusher
    finally:
        harness.stop(pusher.process)
