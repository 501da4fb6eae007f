# SPDX-License-Identifier: Apache-2.0
"""-o URL: profiles that are sent, and what becomes of those that are not."""

import gzip
import os
import re
import shutil
import subprocess
import urllib.parse
from pathlib import Path

import pytest

import formats
import harness
import receiver
from protobuf import of
from receiver import Answer, receiving
from test_agent_push import pprof_total

pytestmark = pytest.mark.usefixtures("profiler")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return formats.made(tmp_path_factory.mktemp("made")) / "recursive.pybpf"


def send(saved, url, *options, code=0):
    done = harness.pybpf("report", saved, "-q", "-o", url, *options)
    assert done.code == code, done.err
    return done.err


def ids_out(body):
    """A body without the random identifiers of its profiles."""
    return re.sub(rb"\x3a\x10.{16}", b"", body, flags=re.S)


def test_a_run_is_sent(tmp_path):
    with receiving() as it, harness.target(harness.default_python(), "calls.py", "4") as target:
        done = harness.pybpf("-p", target.pid, "-d", 0.3, "-F", 999, "-o", it.url, cwd=tmp_path)
    assert done.code == 0, done.err
    (request,) = it.requests
    assert request.path == "/v1development/profiles"
    assert request.headers["Content-Type"] == receiver.PROTOBUF and request.headers["Content-Encoding"] == "gzip"
    assert b"cpython" in gzip.decompress(request.body)
    assert re.search(r"pybpf: sent [\d.]+ KiB to %s\n" % re.escape(it.url), done.err)
    assert not list(tmp_path.iterdir())


def test_a_run_that_cannot_be_sent_is_kept(tmp_path):
    with receiving(Answer(400, b"no such tenant", "text/plain")) as it:
        with harness.target(harness.default_python(), "calls.py", "4") as target:
            done = harness.pybpf("-p", target.pid, "-d", 0.3, "-F", 999, "-q", "-o", it.url, cwd=tmp_path)
        assert done.code == 1
        (kept,) = tmp_path.iterdir()
        said = done.err.splitlines()
        assert len(said) == 2 and "it answers 400, no such tenant;" in said[0], done.err
        assert said[1].startswith("pybpf: the profile was not sent, and is in %s: `pybpf report %s -o" % (kept.name, kept.name))
        assert kept.stat().st_mode & 0o777 == 0o600
        assert send(kept, it.url) == ""
    refused, taken = it.requests
    assert ids_out(gzip.decompress(refused.body)) == ids_out(gzip.decompress(taken.body))


def test_the_body_is_the_formats_file(saved):
    """Also of a URL without a path, which is given OpenTelemetry's."""
    want = ids_out(formats.report(saved, ".otlp").read_bytes())
    with receiving() as it:
        for url in (it.url, it.url.rsplit("/v1", 1)[0], it.url.rsplit("v1", 1)[0]):
            send(saved, url)
    assert [request.path for request in it.requests] == ["/v1development/profiles"] * 3
    assert all(ids_out(gzip.decompress(request.body)) == want for request in it.requests)


def test_pprof_and_pyroscope(saved):
    pprof = formats.report(saved, ".pb.gz").read_bytes()
    with receiving() as it:
        base = it.url.rsplit("/v1", 1)[0]
        send(saved, base + "/upload?team=a", "-f", "pprof")
        send(saved, base + "/ingest", "-f", "pprof")
    plain, ingest = it.requests
    assert plain.path == "/upload?team=a" and plain.body == ingest.body == pprof
    assert "Content-Encoding" not in plain.headers
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(ingest.path).query, strict_parsing=True, keep_blank_values=True)
    assert ingest.path.startswith("/ingest?name=")
    assert re.fullmatch(r"[^{},=]+\{host=[^{},=]*\}", query["name"][0]) and query["format"] == ["pprof"]
    assert int(query["until"][0]) > int(query["from"][0])


def test_pyroscope_gets_a_large_profile_in_parts(tmp_path):
    """It refuses a profile with too many samples."""
    grown = tmp_path / "grown.pybpf"
    subprocess.run([str(harness.TOP / "build" / "grown-profiles"), "containers", "20000", str(grown)], check=True)
    total = pprof_total(formats.report(grown, ".pb.gz").read_bytes())
    with receiving() as it:
        for path in "/ingest", "/push.v1.PusherService/Push", "/upload":
            send(grown, it.url.rsplit("/v1", 1)[0] + path, "-f", "pprof")
    parts = [request.body for request in it.requests if request.path.startswith("/ingest")]
    counts = [len(list(of(gzip.decompress(body), 2))) for body in parts]
    assert sum(map(pprof_total, parts)) == total > 0
    assert sum(counts) == 20_000 and len(counts) > 1 and max(counts) <= 4000, counts
    pushed = [list(of(request.body, 1, 2, 1)) for request in it.requests if request.path.startswith("/push.v1")]
    assert [len(list(of(gzip.decompress(body), 2))) for (body,) in pushed] == counts
    assert pprof_total(it.requests[-1].body) == total


def test_pyroscope_gets_deep_stacks_in_parts(tmp_path):
    """It refuses a profile with more than 2 MiB, which it makes of OTLP's, too: 6,000 samples, each of 1,000 frames."""
    grown = tmp_path / "grown.pybpf"
    subprocess.run([str(harness.TOP / "build" / "grown-profiles"), "leaves", "6000", str(grown)], check=True)
    total = pprof_total(formats.report(grown, ".pb.gz").read_bytes())
    with receiving() as it:
        send(grown, it.url.rsplit("/v1", 1)[0] + "/ingest", "-f", "pprof")
        send(grown, it.url)
    parts = [request.body for request in it.requests if request.path.startswith("/ingest")]
    sizes = [len(gzip.decompress(body)) for body in parts]
    assert len(sizes) > 1 and max(sizes) <= 2 << 20, sizes
    assert sum(map(pprof_total, parts)) == total > 0
    profiles = [profile for request in it.requests[len(parts):] for profile in of(gzip.decompress(request.body), 1, 2, 2)]
    samples = [len(list(of(profile, 2))) for profile in profiles]
    assert len(samples) > 1 and sum(samples) == 6000, samples


def test_headers_and_a_token(saved, tmp_path):
    token = tmp_path / "token"
    token.write_text("abc\n", encoding="ascii")
    token.chmod(0o600)
    with receiving() as it:
        send(saved, it.url, "--http-token", token)
    assert it.requests[0].headers["Authorization"] == "Bearer abc"
    token.chmod(0o604)
    assert "chmod 600 it" in harness.one_sentence(send(saved, "http://localhost:1/", "--http-token", token, code=1))


def test_no_authority_but_the_named_ones(saved, tmp_path):
    """Those of the system are not trusted as well: the server's own is in the folder that libcurl was built with."""
    folder = tmp_path / "system"
    folder.mkdir()
    server, other = receiver.certificate(folder), receiver.certificate(tmp_path, "other.test")
    shutil.copy(server[0], folder / "ca-certificates.crt")
    subprocess.run(["openssl", "rehash", folder], check=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SSL_CERT")}

    def send_with(*options):
        command = [harness.PYBPF, "report", saved, "-q", "-o", it.url, *options]
        enter = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/ssl/certs && exec "$@"', folder, *command]
        return subprocess.run([*map(str, enter)], capture_output=True, text=True, env=environment, timeout=harness.PATIENCE)

    with receiving(context=receiver.server_context(server)) as it:
        assert send_with().returncode == 0
        refused = send_with("--http-ca", other[0])
    assert refused.returncode == 1 and "certificate" in refused.stderr and len(it.requests) == 1, refused.stderr


def test_an_empty_profile_is_not_sent(saved):
    with receiving() as it:
        assert "no sample is left" in harness.one_sentence(send(saved.parent / "empty.pybpf", it.url))
    assert not it.requests


@pytest.mark.parametrize(
    "options, says",
    [
        (["-o", "http://localhost:1", "-f", "text"], "otlp (the default) and pprof can be sent"),
        (["-o", "http://"], "not a URL of HTTP"),
        (["-o", "https://me:pw@localhost/"], "must not have a user and a password"),
        (["-o", "x.otlp", "--http-ca", "ca.pem"], "are for -o URL"),
        (["-o", "http://localhost:1/", "--http-ca", "/nowhere/ca.pem"], "cannot open /nowhere/ca.pem"),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
def test_bad_input(saved, options, says, tmp_path):
    done = harness.pybpf("report", saved, "-q", *options, cwd=tmp_path)
    assert done.code != 0 and says in harness.one_sentence(done.err)
    assert not Path(tmp_path, "x.otlp").exists()


def test_push_v1(saved):
    """A URL of Pyroscope's push.v1 gets its request: one series with labels, and the pprof that a file would have."""
    with receiving() as it:
        url = it.url.rsplit("/v1", 1)[0] + "/push.v1.PusherService/Push"
        assert send(saved, url, "-f", "pprof") == ""
    (request,) = it.requests
    assert request.path == "/push.v1.PusherService/Push" and request.headers["Content-Type"] == "application/proto"
    (series,) = of(request.body, 1)
    labels = {next(of(one, 1)).decode(): next(of(one, 2)).decode() for one in of(series, 1)}
    assert labels == {"__name__": "process_cpu", "service_name": "python3"}
    (pprof,) = of(series, 2, 1)
    written = formats.report(saved, ".pb.gz").read_bytes()
    assert pprof_total(pprof) == pprof_total(written) > 0 and gzip.decompress(pprof) == gzip.decompress(written)
    (number,) = of(series, 2, 2)
    assert re.fullmatch(rb"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", number)
