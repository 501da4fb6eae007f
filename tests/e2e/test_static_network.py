# SPDX-License-Identifier: Apache-2.0
"""The static binary sends and serves from a root that has nothing but what the network needs: names and certificates."""

import contextlib
import gzip
import os
import re
import shutil
import subprocess
import urllib.request

import pytest

import formats
import harness
import nameserver
import receiver
from receiver import receiving
from test_agent import end
from test_agent_push import base
from test_static import enter, needs_static

pytestmark = [pytest.mark.usefixtures("profiler"), needs_static]

NETWORK = {"PATH": os.environ["PATH"]}


@pytest.fixture
def root(tmp_path):
    """The binary, a saved profile, and a name server's address."""
    root = tmp_path / "root"
    for folder in ("proc", "sys", "dev", "etc", "tmp"):
        (root / folder).mkdir(parents=True)
    shutil.copy(harness.STATIC, root / "pybpf")
    formats.made(root)
    (root / "etc/resolv.conf").write_text("nameserver %s\n" % nameserver.ADDRESS)
    return root


@contextlib.contextmanager
def receiving_tls(root):
    """A receiver by its name, and its certificate in the root as one of an authority."""
    paths = receiver.certificate(root / "tmp", nameserver.NAME)
    with receiving(context=receiver.server_context(paths)) as it, nameserver.answering():
        yield it, named(it), paths[0]


def named(it):
    return base(it).replace("localhost", nameserver.NAME)


def send(root, url, *options, **environment):
    done = subprocess.run(enter(root, "report", "/recursive.pybpf", "-o", url, *options), capture_output=True, text=True,
                          env={**NETWORK, **environment}, timeout=harness.PATIENCE)
    assert "system call" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("by_tcp", [False, True], ids=["UDP", "TCP"])
def test_a_name_by_a_name_server(root, by_tcp):
    with receiving() as it, nameserver.answering(by_tcp):
        done = send(root, named(it))
    assert done.returncode == 0 and "sent " in done.stderr, done.stderr
    (request,) = it.requests
    assert b"cpython" in gzip.decompress(request.body)


def test_a_name_of_the_file_of_hosts(root):
    (root / "etc/resolv.conf").unlink()
    (root / "etc/hosts").write_text("127.0.0.1 %s\n" % nameserver.NAME)
    with receiving() as it:
        done = send(root, named(it))
    assert done.returncode == 0 and len(it.requests) == 1, done.stderr


def test_a_name_that_is_not_there(root):
    with nameserver.answering():
        done = send(root, "http://elsewhere.test:1/v1")
    assert done.returncode == 1 and "Could not resolve host: elsewhere.test" in done.stderr, done.stderr


@pytest.mark.parametrize("place", ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"])
def test_authorities_where_distributions_have_them(root, place):
    with receiving_tls(root) as (it, url, certificate):
        path = root / place[1:]
        path.parent.mkdir(parents=True)
        shutil.copy(certificate, path)
        done = send(root, url)
    assert done.returncode == 0 and len(it.requests) == 1, done.stderr


def test_a_folder_of_authorities(root):
    with receiving_tls(root) as (it, url, certificate):
        (root / "etc/ssl/certs").mkdir(parents=True)
        shutil.copy(certificate, root / "etc/ssl/certs/one.pem")
        subprocess.run(["openssl", "rehash", root / "etc/ssl/certs"], check=True)
        done = send(root, url)
    assert done.returncode == 0 and len(it.requests) == 1, done.stderr


def test_no_authority(root):
    """One sentence says so; a file that is named by the variable, wherever it is, or by the option is trusted."""
    with receiving_tls(root) as (it, url, certificate):
        refused = send(root, url)
        place = "/tmp/" + certificate.name
        for done in send(root, url, SSL_CERT_FILE=place), send(root, url, "--http-ca", place):
            assert done.returncode == 0, done.stderr
    first, second = refused.stderr.splitlines()
    assert refused.returncode == 1 and "no authority's certificate is on this machine, or in this container; name a file" in first
    assert second == "pybpf: the profile was not sent" and len(it.requests) == 2


def test_the_option_is_in_place_of_all_others(root):
    with receiving_tls(root) as (it, url, certificate):
        other = receiver.certificate(root / "tmp", "other.test")[0]
        (root / "certs").mkdir()
        shutil.copy(certificate, root / "certs/one.pem")
        subprocess.run(["openssl", "rehash", root / "certs"], check=True)
        assert send(root, url, SSL_CERT_DIR="/certs").returncode == 0
        refused = send(root, url, "--http-ca", "/tmp/" + other.name, SSL_CERT_DIR="/certs")
    assert refused.returncode == 1 and "certificate" in refused.stderr and len(it.requests) == 1, refused.stderr


def test_an_agent_sends_and_serves(root, tmp_path):
    """Epochs are sent, also by a name that is known only after the agent has begun, and metrics are served."""
    (root / "etc/resolv.conf").unlink()
    with receiving() as it, harness.target(harness.default_python(), "shares.py") as target:
        command = enter(root, "agent", "-v", "-p", target.pid, "--epoch", "1s", "--otlp", named(it), "--listen", ":0")
        with harness.started(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=NETWORK) as process:
            address = None
            while not address:
                line = process.stderr.readline()
                assert line, "it ended before it listened"
                address = re.search(r"serving profiles and metrics at (http://127\.0\.0\.1:\d+)", line)
            line = ""
            while "trying again" not in line:
                line = process.stderr.readline()
                assert line, "it ended before it could not send"
            assert "Could not resolve host: " + nameserver.NAME in line
            (root / "etc/resolv.conf").write_text("nameserver %s\n" % nameserver.ADDRESS)
            with nameserver.answering():
                harness.wait_for(lambda: len(it.requests) >= 2)
                with urllib.request.urlopen(address.group(1) + "/metrics", timeout=harness.PATIENCE) as answer:
                    metrics = answer.read().decode()
                said = end(process)
    assert re.search(r"^pybpf_requests_sent_total\{.*\} [1-9]", metrics, re.M), metrics
    assert "system call" not in said, said
