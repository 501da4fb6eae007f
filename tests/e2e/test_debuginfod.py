# SPDX-License-Identifier: Apache-2.0
"""Files for debuggers from servers of debuginfod: what comes is read if it is what was asked for, and nothing delays a run's end."""

import collections
import contextlib
import http.server
import os
import re
import shutil
import socket
import subprocess
import threading
import urllib.request
from pathlib import Path

import pytest

import harness
from harness import pybpf
from native_lines import LIBRARY, build_id, check_chains, make, record, run, stripped
from receiver import send_headers_without_end

pytestmark = pytest.mark.usefixtures("profiler")

NETWORK_LEVEL = {"Uid": "65534\t65534\t65534\t65534", "CapPrm": "0" * 16, "CapEff": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}


def fetchers():
    """What the kernel says of each process that fetches."""
    found = []
    for status in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):
            lines = dict(line.split(":\t", 1) for line in status.read_text(encoding="utf-8").split("\n") if ":\t" in line)
            if lines["Name"] == "pybpf-fetch":
                found.append({key: lines[key].strip() for key in NETWORK_LEVEL})
    return found


class Server:
    """Answers each path by answer(handler, build-id)."""

    def __init__(self, answer):
        self.asked, self.fetchers, self.over = [], [], threading.Event()
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                found = re.fullmatch("/buildid/([0-9a-f]+)/debuginfo", self.path)
                server.asked.append(found.group(1))
                server.fetchers += fetchers()
                answer(self, found.group(1))

            def send(self, body, status=200, size=None):
                self.send_response(status)
                self.send_header("Content-Length", str(size or len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        class Threads(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass  # who fetches has had enough

        self.server = Threads(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d" % self.server.server_port

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()


def debug_file(whole):
    path = whole.with_suffix(".debug")
    run("objcopy", "--only-keep-debug", whole, path)
    return path.read_bytes()


def made(folder, *names):
    """Libraries that differ in their names and build-ids, stripped; build-id -> name; and name -> file for debuggers."""
    (folder / "whole").mkdir()
    whole = [make(folder / "whole" / (name + ".so"), "-Wl,-soname,%s.so" % name) for name in names]
    return [stripped(one, folder) for one in whole], {build_id(one): one.stem for one in whole}, {one.stem: debug_file(one) for one in whole}


def environment(**variables):
    return {**{name: value for name, value in os.environ.items() if not name.startswith("DEBUGINFOD")}, **variables}


def names_in(saved):
    """File -> names of its functions."""
    found = collections.defaultdict(set)
    for stack, _ in pybpf("report", saved, "-f", "folded").stacks():
        for frame in stack:
            found[frame.file].add(frame.name)
    return found


def test_what_comes_is_read_if_it_was_asked_for(tmp_path):
    libraries, by_id, files = made(tmp_path, "right", "other", "page", "none", "huge", "cut")

    def answer(handler, asked):
        name = by_id.get(asked, "none")
        if name == "none":
            handler.send(b"not found", 404)
        elif name == "huge":
            handler.send(b"\x7fELF", size=1 << 40)
        else:
            handler.send({"right": files["right"], "other": files["right"], "page": b"<html>" * 99, "cut": files["cut"][:1500]}[name])

    with Server(answer) as it:
        # That there is a blank before it, and that is signed, is so in the environment of distributions.
        said = record(libraries, tmp_path / "p.pybpf", "--native", env=environment(DEBUGINFOD_URLS=" ima:enforcing %s/" % it.url))
    assert set(by_id) <= set(it.asked) and len(it.asked) == len(set(it.asked)), (it.asked, by_id)
    assert it.fetchers and all(one == NETWORK_LEVEL for one in it.fetchers), it.fetchers
    line = re.search("native symbols: files for debuggers: (.*)", said).group(1)
    causes = {cause: names for cause, names in re.findall(r"([^;:]*): ([^;:]*)(?:; |$)", line)}
    assert re.match(r"right.so \(", causes.pop("fetched")), line
    assert "none.so" in causes.pop("no server has that of"), line
    assert causes.pop("larger than 128 MiB") == "huge.so", line
    refused = causes.pop("refused, because what was sent is not the file that was asked for").split(", ")
    assert sorted(refused) == ["cut.so", "other.so", "page.so"] and not causes, line
    names = names_in(tmp_path / "p.pybpf")
    assert {"nl_go", "outer", "twice"} <= names["right.so"], names
    for name in ("other", "page", "none", "huge", "cut"):
        assert names[name + ".so"] and all(one == "nl_go" or one.startswith("[%s.so+0x" % name) for one in names[name + ".so"]), names


def test_a_server_that_is_silent_costs_its_time_and_no_name(tmp_path):
    """Likewise one whose headers do not end. Each is given up once; another one has the lines, and its time on a busy machine."""
    libraries, by_id, files = made(tmp_path, "right")
    closed = socket.create_server(("127.0.0.1", 0))
    nobody = "http://127.0.0.1:%d" % closed.getsockname()[1]
    closed.close()

    def be_silent(handler, _):
        handler.send(b"\x7fELF", size=5000)
        it.over.wait(harness.PATIENCE)

    def answer(handler, asked):
        handler.send(files["right"] if asked in by_id else b"", 200 if asked in by_id else 404)

    def talk_for_ever(handler, _):
        handler.send_response(200)
        send_headers_without_end(handler)

    with Server(be_silent) as it, Server(talk_for_ever) as talker, Server(answer) as other:
        urls = "%s %s %s %s" % (nobody, it.url, talker.url, other.url)
        said = record(libraries, tmp_path / "p.pybpf", "--native-lines", "--debuginfod", urls, env=environment(DEBUGINFOD_TIMEOUT="8"))
    assert said.count("it is not asked again") == 3 and len(it.asked) == len(talker.asked) == 1, said
    assert "cannot fetch from %s: the headers of its answer have more than 64 KiB; it" % talker.url in said, said
    assert "cannot fetch from %s: it has sent nothing for 8 s; it is not asked again" % it.url in said, said
    assert re.search(r"for debuggers: fetched: right.so \(", said), said
    check_chains(tmp_path / "p.pybpf")


def test_servers_that_nobody_named_are_not_asked(tmp_path):
    """Not even if a server that was named leads there."""
    libraries, _, files = made(tmp_path, "right")

    def lead_away(handler, asked):
        handler.send_response(302)
        handler.send_header("Location", "%s/buildid/%s/debuginfo" % (other.url, asked))
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    with Server(lambda handler, _: handler.send(files["right"])) as other, Server(lead_away) as it:
        said = record(libraries, tmp_path / "p.pybpf", "--native", env=environment(DEBUGINFOD_URLS=it.url))
    assert it.asked and not other.asked, (it.asked, other.asked)
    assert "cannot fetch from %s: it answers 302; it is not asked again" % it.url in said, said


def test_nobody_is_asked_without_need_or_against_the_option(tmp_path):
    """Neither of a file whose symbols are here, nor with --debuginfod=no."""
    libraries, _, _ = made(tmp_path, "right")
    with Server(lambda handler, _: handler.send(b"", 404)) as it:
        env = environment(DEBUGINFOD_URLS=it.url)
        said = record(libraries, tmp_path / "p.pybpf", "--native", "--debuginfod=no", env=env)
        assert "files for debuggers" not in said and it.asked == []
        said = record([tmp_path / "whole" / "right.so"], tmp_path / "p.pybpf", "--native", env=env)
        assert "right.so" not in said and build_id(libraries[0]) not in it.asked, said


@pytest.mark.parametrize(
    "options,sentence",
    [
        (["--native", "--debuginfod=ftp://host"], "ftp://host: not a URL of HTTP"),
        (["--native", "--debuginfod=http://host/?a=b"], "has no query"),
        (["--native", "--debuginfod="], "no server of debuginfod is given"),
        (["--debuginfod=http://host"], "--debuginfod is about the symbols of --native, which is missing"),
    ],
)
def test_wrong_options(options, sentence):
    done = pybpf(*options, "--", "true")
    assert done.code == 2 and sentence in done.err and len(done.err.splitlines()) == 1, done.err


def test_an_environment_that_cannot_be_used_costs_no_profile():
    done = pybpf("--native", "--", *harness.default_python().argv, "-c", "pass", env=environment(DEBUGINFOD_URLS="file:///srv"))
    assert done.code == 0 and "not fetched from the servers of DEBUGINFOD_URLS: file:///srv: not a URL of HTTP" in done.err, done.err


def is_there(url):
    with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
        return answer.status == 200
    return False


def test_debuginfod(tmp_path):
    """Elfutils' server."""
    program = shutil.which("debuginfod") or pytest.skip("debuginfod is not installed; tools/install-deps --test installs it")
    whole = make(tmp_path / LIBRARY)
    debug_file(whole)
    (tmp_path / "stripped").mkdir()
    library = stripped(whole, tmp_path / "stripped")
    whole.unlink()
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    with subprocess.Popen([program, "-F", "-p", str(port), "-d", ":memory:", tmp_path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            harness.wait_for(lambda: is_there("http://127.0.0.1:%d/buildid/%s/debuginfo" % (port, build_id(library))), step=0.1)
            said = record(library, tmp_path / "p.pybpf", "--native-lines", env=environment(DEBUGINFOD_URLS="http://127.0.0.1:%d" % port))
        finally:
            server.terminate()
    assert re.search(r"for debuggers: fetched: lines.so \(", said), said
    check_chains(tmp_path / "p.pybpf")
