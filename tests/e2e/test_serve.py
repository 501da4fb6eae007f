# SPDX-License-Identifier: Apache-2.0
"""The process that serves profiles and metrics by HTTP, driven by build/serve-driver in place of the agent."""

import contextlib
import gzip
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

import harness
from test_rights import check_rights, children, status

BUILD = Path(harness.PYBPF).parent
TOKEN = "0123456789abcdef-token"
NOBODY = 65534


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=harness.PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(harness.PATIENCE)
        self.sock.connect(self.path)


class Server:
    """The driver: what it was asked for, and what it answers."""

    def __init__(self, process):
        self.process = process
        self.address = self.told()["address"]

    def told(self):
        line = self.process.stdout.readline()
        assert line, "the driver has ended"
        return json.loads(line)

    def tell(self, *words):
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()

    def answer_all(self):
        """From now on; what the driver has said before was read."""
        self.tell("auto")
        assert self.told() == {"auto": True}

    def counts(self):
        """The counts as they are now; what the driver said before is skipped."""
        self.tell("count")
        while True:
            told = self.told()
            if "requests" in told:
                return told

    def connect(self):
        if self.address.startswith("unix:"):
            return UnixConnection(self.address[5:])
        host, port = self.address[7:].rsplit(":", 1)
        return http.client.HTTPConnection(host.strip("[]"), int(port), timeout=harness.PATIENCE)

    def ask(self, path, method="GET", **headers):
        """A request whose answer is not waited for."""
        connection = self.connect()
        connection.request(method, path, headers={key.replace("_", "-"): value for key, value in headers.items()})
        return connection

    def get(self, path, method="GET", **headers):
        with contextlib.closing(self.ask(path, method, **headers)) as connection:
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()

    def raw(self):
        connection = self.connect()
        connection.connect()
        return connection.sock

    @property
    def pids(self):
        """The keeper, and the process that serves, which is waited for: it may have been killed."""
        (keeper,) = children(self.process.pid)
        harness.wait_for(lambda: [pid for pid in children(keeper) if alive(pid)])
        return keeper, children(keeper)[0]


@contextlib.contextmanager
def serving(*words, driver="serve-driver", confine=True, said=()):
    """words: of the driver. said: what each line on stderr has in it, but for who can read profiles."""
    argv = harness.tied([str(BUILD / driver), *map(str, words), *(["confine=1"] if confine else [])])
    with tempfile.TemporaryFile() as err:
        with harness.started(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=err) as process:
            yield Server(process)
        err.seek(0)
        lines = [line for line in err.read().decode().splitlines() if "can read profiles" not in line]
    assert len(lines) == len(said) and all(part in line for part, line in zip(said, lines)), lines


@pytest.fixture
def server():
    with serving("127.0.0.1:0") as one:
        yield one


def refused(*words):
    done = subprocess.run([BUILD / "serve-driver", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert done.returncode == 1
    return harness.one_sentence(done.stderr.decode())


def alive(pid):
    with contextlib.suppress(OSError):
        return status(pid)["State"][0] != "Z"
    return False


ANSWERS = [
    ("/debug/pprof/profile", "profile", 30),
    ("/debug/pprof/profile?seconds=1", "profile", 1),
    ("/debug/pprof/wall?debug=0&seconds=120", "wall", 120),
    ("/debug/pprof/gil?seconds=007", "gil", 7),
    ("/metrics", "metrics", 0),
]


def test_requests_are_handed_on_and_answered(server):
    server.answer_all()
    for path, what, seconds in ANSWERS:
        code, headers, body = server.get(path)
        asked, answered = server.told(), server.told()
        assert (asked["what"], asked["seconds"]) == (what, seconds)
        assert answered == {"answered": asked["id"], "error": 0}
        assert code == 200 and body and headers["Connection"] == "close"
        if seconds:
            assert headers["Content-Type"] == "application/octet-stream" and what.encode() in gzip.decompress(body)
    server.tell("count")
    assert server.told()["answered"] == len(ANSWERS)


WRONG = [
    ("GET", "/debug/pprof/profile?seconds=%s" % value, 400)
    for value in ("0", "121", "-1", "1.5", "", "x", "1x", "99999999999999999999", "4294967297", "%2031", "%00")
] + [
    ("GET", "/", 404),
    ("GET", "/metrics/", 404),
    ("GET", "/debug/pprof/", 404),
    ("GET", "/debug/pprof/../../etc/passwd", 404),
    ("GET", "/" + 4000 * "a", 404),
    ("POST", "/metrics", 405),
    ("PUT", "/nowhere", 405),
    ("DELETE", "/healthz", 405),
    ("OPTIONS", "*", 405),
]


def test_wrong_requests_have_a_sentence(server):
    for method, path, want in WRONG:
        code, headers, body = server.get(path, method)
        assert code == want, (method, path, body)
        assert headers["Content-Type"].startswith("text/plain")
        assert re.fullmatch(rb"[A-Z][^\n]*\.\n", body)
        assert (headers.get("Allow") == "GET, HEAD") == (code == 405)
    for method, path, _ in WRONG[:14]:
        code, _, body = server.get(path, "HEAD")
        assert code in (400, 404) and body == b""
    counts = server.counts()
    assert counts["wrong"] == counts["requests"] == len(WRONG) + 14 and counts["answered"] == 0


def test_head_takes_no_profile(server):
    code, headers, body = server.get("/debug/pprof/profile?seconds=100", "HEAD")
    assert code == 200 and headers["Content-Type"] == "application/octet-stream" and body == b""
    assert "Content-Length" not in headers
    server.answer_all()
    code, headers, body = server.get("/metrics", "HEAD")
    assert code == 200 and int(headers["Content-Length"]) > 100 and body == b""
    assert server.told()["what"] == "metrics"
    counts = server.counts()
    assert counts["answered"] == counts["requests"] == 2


@pytest.mark.parametrize("address", ["[::1]:0", ":0", "localhost:0", "127.1.2.3:0"])
def test_addresses(address):
    with serving(address) as server:
        want = {"[::1]:0": "http://[::1]:", "127.1.2.3:0": "http://127.1.2.3:"}.get(address, "http://127.0.0.1:")
        assert server.address.startswith(want) and not server.address.endswith(":0")
        server.answer_all()
        assert server.get("/healthz")[0] == 200


def test_where_it_cannot_listen(server, tmp_path):
    port = server.address.rpartition(":")[2]
    assert "another program does" in refused("127.0.0.1:" + port)
    for address in ("", "6060", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:6060", "[::1]", "[127.0.0.1]:1", "example.org:80", "256.0.0.1:80", 100 * "1"):
        assert "write ADDRESS:PORT" in refused(address)
    assert "Cannot assign" in refused("192.0.2.1:6060")
    tmp_path.chmod(0o755)
    (tmp_path / "file").touch()
    assert "is not a socket" in refused(tmp_path / "file")
    assert "Is a directory" in refused("%s/" % tmp_path)
    assert "at most 107 bytes" in refused(tmp_path / (100 * "n"))
    assert "No such file" in refused(tmp_path / "none" / "socket")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    assert "may write to its folder" in refused(tmp_path / "shared" / "socket")
    (tmp_path / "his").mkdir()
    shutil.chown(tmp_path / "his", 54321)
    assert "not root's" in refused(tmp_path / "his" / "socket")
    assert sorted(os.listdir(tmp_path)) == ["file", "his", "shared"]


@pytest.fixture
def place():
    """A folder with a short name, which only root may write to."""
    with tempfile.TemporaryDirectory(prefix="pybpf-serve-") as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_unix_socket(place):
    path = place / "socket"
    for mode, option in ((0o600, []), (0o666, ["mode=0666"])):
        # The second one takes the place of what the first one has left.
        with serving(path, *option) as server:
            assert server.address == "unix:%s" % path
            assert path.stat().st_mode & 0o777 == mode
            server.answer_all()
            assert server.get("/metrics", Host="any.example")[0] == 200
            assert "another program does" in refused(path)
            server.tell("end")
            assert server.process.wait(harness.PATIENCE) == 0


def token_file(place, text, mode=0o600):
    (place / "token").write_text(text)
    (place / "token").chmod(mode)
    return "token=%s" % (place / "token")


def test_token(place):
    with serving("127.0.0.1:0", token_file(place, TOKEN + "\nremark\n")) as server:
        server.answer_all()
        for sent in (None, "", TOKEN, "Bearer", "Bearer ", "Bearer x", "Basic " + TOKEN, "Bearer " + TOKEN[:-1], "Bearer %sx" % TOKEN, "Bearer " + 2 * TOKEN):
            code, headers, body = server.get("/metrics", **({} if sent is None else {"Authorization": sent}))
            assert code == 401 and headers["WWW-Authenticate"] == "Bearer" and body.count(b"\n") == 1
        assert server.get("/nowhere")[0] == 401
        for sent in ("Bearer " + TOKEN, "bearer  " + TOKEN):
            assert server.get("/metrics", Authorization=sent)[0] == 200
        # Who asks whether pybpf is well needs none; with one, the host's name is any.
        assert server.get("/healthz")[0] == 200 and server.get("/readyz")[0] == 503
        assert server.get("/debug/pprof/wall?seconds=1", Authorization="Bearer " + TOKEN, Host="any.example")[0] == 200
        assert server.counts()["denied"] == 11


def test_tokens_that_are_refused(place):
    assert "chmod 600" in refused("127.0.0.1:0", token_file(place, TOKEN, 0o640))
    for text, why in (("", "can be guessed"), ("short\n", "can be guessed"), ("two words, and a blank", "has a blank"), (5000 * "t", "longer"), ("\u00e9" * 20, "not of ASCII")):
        assert why in refused("127.0.0.1:0", token_file(place, text))
    assert "No such file" in refused("127.0.0.1:0", "token=%s/none" % place)
    assert "is not a file" in refused("127.0.0.1:0", "token=%s" % place)


def test_a_page_in_a_browser_is_kept_out(server):
    """A name of its owner's may lead to this machine."""
    server.answer_all()
    for host in ("page.example", "page.example:6060", "127.0.0.1.page.example", "[::1", "1", "", "[localhost", 300 * "h"):
        assert server.get("/healthz", Host=host)[0] in (403, 400), host
    for host in ("127.0.0.1", "127.0.0.1:6060", "localhost:6060", "LocalHost", "[::1]:6060"):
        assert server.get("/healthz", Host=host)[0] == 200, host


def test_a_client_that_leaves_is_told(server):
    first, second = server.ask("/debug/pprof/profile?seconds=60"), server.ask("/debug/pprof/profile?seconds=60")
    one, two = server.told()["id"], server.told()["id"]
    first.close()
    assert server.told() == {"cancelled": one}
    server.tell("answer", one, 3)
    assert server.told() == {"answered": one, "error": -2}  # ENOENT
    server.tell("answer", two, 3)
    assert second.getresponse().read() == b"xxx"
    second.close()
    assert server.told() == {"answered": two, "error": 0}
    counts = server.counts()
    assert (counts["left"], counts["answered"]) == (1, 1)


def test_a_killed_server_is_started_again():
    with serving("127.0.0.1:0", said=["crashed"]) as server:
        waiting = server.ask("/debug/pprof/profile?seconds=60")
        lost = server.told()["id"]
        for _ in range(2):
            keeper, pid = server.pids
            os.kill(pid, signal.SIGKILL)
            harness.wait_for(lambda: server.pids[1] != pid)
            assert server.pids[0] == keeper
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            waiting.getresponse()
        waiting.close()
        assert server.told() == {"cancelled": lost}
        server.answer_all()
        assert server.get("/metrics")[0] == 200
        assert server.told()["id"] > lost
        counts = server.counts()
        assert counts["restarts"] == 2 and not counts["gone"]


def test_a_killed_keeper_ends_the_serving(server):
    waiting = server.ask("/metrics")
    asked = server.told()["id"]
    keeper, pid = server.pids
    os.kill(keeper, signal.SIGKILL)
    assert server.told() == {"cancelled": asked}
    assert server.told() == {"gone": True}
    harness.wait_for(lambda: not alive(pid))
    waiting.close()
    assert server.counts()["gone"]


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_it_ends_with_the_process_that_samples(how):
    with serving("127.0.0.1:0", confine=how == "ended") as server:
        waiting = server.ask("/debug/pprof/gil")
        server.told()
        pids = server.pids
        if how == "killed":
            server.process.kill()
        else:
            server.tell("end")
        harness.wait_for(lambda: not any(alive(pid) for pid in pids))
        response = waiting.getresponse()
        assert response.status == 503 and response.read() == b"pybpf ends.\n"
        waiting.close()
        with pytest.raises(ConnectionRefusedError):
            server.raw()


def open_files(pid):
    """What its descriptors lead to; some may be closed meanwhile."""
    files = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(FileNotFoundError):
            files[int(fd)] = os.readlink("/proc/%d/fd/%s" % (pid, fd))
    return files


def test_rights(server):
    """Nobody's, without capabilities, and with no other files than sockets and what libmicrohttpd waits by."""
    assert server.get("/nowhere")[0] == 404
    for pid in server.pids:
        check_rights(pid, set())
        told = status(pid)
        assert told["Uid"].split() == told["Gid"].split() == 4 * [str(NOBODY)]
        assert told["Groups"].split() == []
        files = open_files(pid)
        assert files[0] == files[1] == "/dev/null"
        others = [path for fd, path in files.items() if fd > 2]
        assert all(re.match(r"socket:|anon_inode:\[event(fd|poll)\]$", path) for path in others), others
    for pid in server.pids:
        # Nor may others of that user look into it.
        as_nobody = ["setpriv", "--reuid", str(NOBODY), "--clear-groups", "cat", "/proc/%d/maps" % pid]
        assert subprocess.run(as_nobody, capture_output=True).returncode != 0


def test_too_many_requests_wait(server):
    waiting = [server.ask("/debug/pprof/profile?seconds=60") for _ in range(40)]
    ids = [server.told()["id"] for _ in range(32)]
    harness.wait_for(lambda: server.counts()["unavailable"] == 8)
    for one in ids:
        server.tell("answer", one, 100)
    answers = sorted((response.status, response.read()) for response in (one.getresponse() for one in waiting))
    assert [code for code, _ in answers] == 32 * [200] + 8 * [503]
    assert answers[0][1] == 100 * b"x" and b"try again later" in answers[-1][1]
    for one in waiting:
        one.close()


def test_probes_need_no_place_and_no_token(place):
    """Requests that wait, with a token or not, do not make pybpf look ill; nor do probes take a place from others."""
    with serving("127.0.0.1:0", token_file(place, TOKEN)) as server:
        waiting = [server.ask("/debug/pprof/profile?seconds=60", Authorization="Bearer " + TOKEN) for _ in range(32)]
        ids = [server.told()["id"] for _ in waiting]
        for _ in range(40):
            code, headers, body = server.get("/healthz")
            assert (code, body) == (200, b"ok\n") and headers["Content-Type"].startswith("text/plain")
        assert server.get("/healthz", "HEAD")[::2] == (200, b"")
        assert server.get("/readyz?verbose")[::2] == (503, b"The first epoch has not ended yet.\n")
        server.tell("ready")
        harness.wait_for(lambda: server.get("/readyz")[::2] == (200, b"ready\n"))
        counts = server.counts()
        assert counts["answered"] >= 42 and counts["requests"] == counts["answered"] + counts["unavailable"] + len(ids)
        for one in waiting:
            one.close()


def test_slow_clients_keep_nobody_out(server):
    """The oldest of too many is cut, and not one that waits for a profile."""
    patient = server.ask("/debug/pprof/profile?seconds=60")
    asked = server.told()["id"]
    idle = [server.raw() for _ in range(200)]
    for one in idle:
        with contextlib.suppress(OSError):
            one.sendall(b"GET /healthz HTTP/1.1\r\n")
    server.answer_all()
    assert server.get("/healthz")[0] == 200
    server.tell("answer", asked, 5)
    assert patient.getresponse().read() == b"xxxxx"
    patient.close()
    assert server.counts()["cut"] >= 200 - 64
    for one in idle:
        one.close()


def test_large_answers(server):
    size = 20 << 20
    one, two = server.ask("/debug/pprof/profile"), server.ask("/debug/pprof/profile")
    first, second = server.told()["id"], server.told()["id"]
    server.tell("answer", first, size)
    assert server.told()["error"] == 0
    assert one.getresponse().read() == size * b"x"
    server.tell("answer", second, (64 << 20) + 1)
    assert server.told()["error"] == -7  # E2BIG
    response = two.getresponse()
    assert response.status == 503 and b"larger than 64 MiB" in response.read()
    one.close()
    two.close()


def test_too_much_for_slow_readers(server):
    """What is sent and not read is bounded, and nobody else waits for it."""
    slow = [server.ask("/debug/pprof/profile") for _ in range(3)]
    for one in [server.told()["id"] for _ in slow]:
        server.tell("answer", one, 30 << 20)
        assert server.told()["error"] == 0
    codes = [one.getresponse().status for one in slow]
    assert sorted(codes) == [200, 200, 503]
    server.answer_all()
    assert server.get("/healthz")[0] == 200
    for one in slow:
        one.close()
    # Their bodies are gone with them.
    harness.wait_for(lambda: not [path for path in open_files(server.pids[1]).values() if "memfd" in path])


def limit_files(pid, number):
    """As the user of that process: root in a container may lack the capability."""
    as_nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    subprocess.run([*as_nobody, "prlimit", "--pid", str(pid), "--nofile=%d:" % number], check=True)


def test_an_answer_without_a_descriptor_ends_nothing(server):
    """Its client is told so, and the next one is served."""
    waiting = server.ask("/metrics")
    asked = server.told()["id"]
    pid = server.pids[1]
    limit_files(pid, 3)
    server.tell("answer", asked, 5)
    response = waiting.getresponse()
    assert response.status == 503 and b"no memory for the answer" in response.read()
    waiting.close()
    limit_files(pid, 160)
    assert server.told() == {"answered": asked, "error": 0}
    server.answer_all()
    assert server.get("/metrics")[0] == 200
    counts = server.counts()
    assert server.pids[1] == pid and counts["restarts"] == 0
    assert (counts["requests"], counts["answered"], counts["unavailable"]) == (2, 1, 1)


def test_bodies_and_large_headers_are_refused(server):
    server.answer_all()
    with contextlib.closing(server.raw()) as one:
        one.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n" + 1000 * b"b")
        with contextlib.suppress(ConnectionError):
            assert one.recv(1000) == b""
    with contextlib.closing(server.raw()) as one:
        with contextlib.suppress(ConnectionError):
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + 100000 * b"h" + b"\r\n\r\n")
            assert re.match(rb"HTTP/1.1 (431|413) ", one.recv(1000))
    assert server.get("/metrics")[0] == 200
    assert server.told()["what"] == "metrics"


def test_a_request_without_an_answer_ends(server):
    """And who does not go on for as long is not well."""
    server.tell("ill")
    assert server.told() == {"ill": True}
    code, _, body = server.get("/metrics")
    assert code == 503 and b"did not answer in time" in body
    asked = server.told()["id"]
    assert server.told() == {"cancelled": asked}
    with contextlib.closing(server.raw()) as one:
        one.sendall(b"GET /healthz HT")
        assert one.recv(1) == b""
    for path in ("/healthz", "/readyz"):
        code, _, body = server.get(path)
        assert code == 503 and body == b"Sampling has not gone on for 10 s, or pybpf ends.\n"
    counts = server.counts()
    assert (counts["unavailable"], counts["left"], counts["cut"]) == (3, 0, 1)


def test_garbage():
    """Bytes of any kind, and clients that leave at any time, beside requests that are answered; with sanitizers."""
    rng = random.Random(20261127)
    words = [b"GET ", b"/metrics", b"/debug/pprof/profile?seconds=", b" HTTP/1.1\r\n", b"Host: 127.0.0.1\r\n", b"\r\n\r\n", b"Content-Length: -1\r\n",
             b"Transfer-Encoding: chunked\r\n\r\n", b"ffffffff\r\n", b"Connection: keep-alive\r\n", b"\0", b"%00", b"?&=&seconds", b"Authorization: Bearer "]
    with serving("127.0.0.1:0", driver="serve-driver-san", confine=False) as server:
        server.answer_all()
        threading.Thread(target=lambda: [None for _ in server.process.stdout], daemon=True).start()
        pid = server.pids[1]
        for i in range(3000):
            with contextlib.closing(server.raw()) as one, contextlib.suppress(ConnectionError):
                parts = [rng.choice(words) if rng.random() < 0.8 else rng.randbytes(rng.randrange(40)) for _ in range(rng.randrange(20))]
                one.sendall(b"".join([b"GET /healthz HTTP/1.1\r\n"] * (i % 2) + parts))
                if rng.random() < 0.5:
                    one.shutdown(socket.SHUT_WR)
        # Requests of clients that have left may still fill its places.
        harness.wait_for(lambda: server.get("/metrics")[0] == 200)
        assert server.pids[1] == pid
        server.tell("end")
        # Nothing of the side that answered is left, either.
        assert server.process.wait(harness.PATIENCE) == 0


def resident_kib(pid):
    return int(status(pid)["VmRSS"].split()[0])


def test_memory_is_flat(server):
    """The memory of the process that serves, over thousands of requests that were answered, refused and left."""
    server.answer_all()
    threading.Thread(target=lambda: [None for _ in server.process.stdout], daemon=True).start()
    pid = server.pids[1]

    def some(count):
        for _ in range(count):
            assert server.get("/metrics")[0] == 200
            assert server.get("/debug/pprof/profile?seconds=1")[0] == 200
            assert server.get("/nowhere")[0] == 404
            server.ask("/debug/pprof/wall?seconds=5").close()
        return resident_kib(pid)

    before = some(300)
    assert some(3000) <= before + 256
    assert len(os.listdir("/proc/%d/fd" % pid)) <= 8


def test_go_tool_pprof(server, tmp_path):
    if not shutil.which("go"):
        pytest.skip("go is not installed; tools/install-deps --test installs it")
    server.answer_all()
    argv = ["go", "tool", "pprof", "-seconds", "2", "-top", server.address + "/debug/pprof/wall"]
    done = subprocess.run(argv, capture_output=True, env={**os.environ, "PPROF_TMPDIR": str(tmp_path)}, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    asked = server.told()
    assert (asked["what"], asked["seconds"]) == ("wall", 2)
    # 100 of 111 samples.
    assert re.search(r"^ *\S+ 90.09% .* wall$", done.stdout.decode(), re.M), done.stdout.decode()


def test_promtool(server):
    """Debian's, with its own rules for names."""
    if not shutil.which("promtool"):
        pytest.skip("promtool is not installed; tools/install-deps --test installs it")
    server.answer_all()
    _, _, body = server.get("/metrics")
    done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, timeout=harness.PATIENCE)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done.stderr.decode()


PROMETHEUS = """
scrape_configs:
  - job_name: pybpf
    scrape_interval: 1s
    authorization: {credentials_file: %s}
    static_configs: [{targets: ["%s"]}]
"""


def free_port():
    with contextlib.closing(socket.socket()) as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def query(port, what):
    """The values that a prometheus has for it, by the label of the cause."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=harness.PATIENCE)
    with contextlib.closing(connection), contextlib.suppress(ConnectionError):
        connection.request("GET", "/api/v1/query?query=" + what)
        response = connection.getresponse()
        if response.status == 200:
            found = json.loads(response.read())["data"]["result"]
            return {row["metric"].get("cause", ""): float(row["value"][1]) for row in found}
    return {}


def test_prometheus(place, tmp_path):
    """A real one scrapes, with the token."""
    if not shutil.which("prometheus"):
        pytest.skip("prometheus is not installed; tools/install-deps --test installs it")
    port = free_port()
    with serving("127.0.0.1:0", token_file(place, TOKEN)) as server:
        server.answer_all()
        (tmp_path / "config").write_text(PROMETHEUS % (place / "token", server.address[7:]))
        argv = ["prometheus", "--config.file=%s" % (tmp_path / "config"), "--storage.tsdb.path=%s" % (tmp_path / "data"), "--web.listen-address=127.0.0.1:%d" % port]
        with harness.started(harness.tied(argv), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            harness.wait_for(lambda: query(port, "up") == {"": 1})
            assert query(port, "pybpf_samples_total") == {"": 4711}
            assert query(port, "pybpf_lost_samples_total") == {"ring full": 3, 'a "quoted\\\n\ufffd name"': 0}


def test_curl(place):
    """As docs/serving.md has it."""
    curl = shutil.which("curl") or pytest.skip("there is no curl")
    with serving(place / "socket", token_file(place, TOKEN)) as server:
        server.answer_all()
        argv = [curl, "-sS", "--fail-with-body", "--unix-socket", place / "socket", "-H", "Authorization: Bearer " + TOKEN]
        done = subprocess.run([*argv, "http://pybpf/debug/pprof/profile?seconds=5"], capture_output=True, timeout=harness.PATIENCE)
        assert done.returncode == 0 and b"app.py" in gzip.decompress(done.stdout)
        done = subprocess.run([*argv, "http://pybpf/debug/pprof/profile?seconds=500"], capture_output=True, timeout=harness.PATIENCE)
        assert done.returncode == 22 and b"from 1 to 120" in done.stdout
