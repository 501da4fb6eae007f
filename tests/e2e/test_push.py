# SPDX-License-Identifier: Apache-2.0
"""The process that sends profiles: what becomes of each body, whatever the receiver, the network or the machine does."""

import contextlib
import email.utils
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

import harness
import receiver
from receiver import Answer, pushing, receiving


def settled(counts):
    """Nothing is lost without a count, and nothing is counted twice."""
    dropped = sum(counts["dropped"].values())
    assert counts["submitted"] + counts["found"] == counts["sent"] + dropped + counts["waiting"] + counts["spooled"]
    return {cause: number for cause, number in counts["dropped"].items() if number}


def protobuf(number, payload):
    """A field that is bytes, of less than 128."""
    return bytes([number << 3 | 2, len(payload)]) + payload


def test_each_body_arrives_once_and_in_order(folder):
    token, headers = Path(folder, "token"), Path(folder, "headers")
    token.write_text("secret-of-test\n", encoding="ascii")
    headers.write_text("# who\nX-Scope-OrgID: team\n", encoding="ascii")
    for path in (token, headers):
        path.chmod(0o600)
    with receiving() as it, pushing(it.url, token=token, headers=headers) as pusher:
        for name in "abc":
            assert pusher.send(name, 300_000) == 0
        counts, err = pusher.end()
    assert settled(counts) == {} and counts["sent"] == 3 and counts["retried"] == 0
    assert err == ""
    assert it.names() == list("abc")
    for request in it.requests:
        assert len(request.body) == 300_000
        assert request.headers["Authorization"] == "Bearer secret-of-test"
        assert request.headers["X-Scope-OrgID"] == "team"
        assert request.headers["Content-Type"] == receiver.PROTOBUF


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_what_may_be_taken_later_is_sent_again(status):
    with receiving(Answer(status), Answer(status)) as it, pushing(it.url) as pusher:
        pusher.send("a")
        counts, err = pusher.end()
    assert settled(counts) == {} and counts["sent"] == 1 and counts["retried"] == 2
    assert it.names() == ["a"] * 3 and len({request.body for request in it.requests}) == 1
    assert "it answers %d; trying again" % status in err and "takes profiles again" in err
    assert len(err.splitlines()) == 2, err


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_receivers_time_is_kept(form):
    """A date is rounded down to a second, which may be missing."""
    value = "2" if form == "seconds" else email.utils.formatdate(time.time() + 3, usegmt=True)
    with receiving(Answer(429, headers={"Retry-After": value})) as it, pushing(it.url) as pusher:
        pusher.send("a")
        counts, _ = pusher.end()
    assert counts["sent"] == 1 and counts["retried"] == 1
    assert it.requests[1].time - it.requests[0].time >= 1.5


@pytest.mark.parametrize(
    "answer, says",
    [
        (Answer(400, protobuf(2, b"illegal wireType 7")), "it answers 400, illegal wireType 7"),
        (Answer(401, b"no token here\nsecond line", "text/plain; charset=utf-8"), "it answers 401, no token here;"),
        (Answer(404, b"<html>not here</html>", "text/html"), "it answers 404;"),
        (Answer(200, b"<html>welcome</html>", "text/html"), "it answers 200, a web page"),
        (Answer(302, headers={"Location": "http://127.0.0.1:1/"}), "it answers 302, a redirection, which is not followed"),
        (Answer(500, b"\xff\xfe\x00", "text/plain"), "it answers 500"),
    ],
    ids=lambda value: str(value.status) + value.type[5:9] if isinstance(value, Answer) else "",
)
def test_a_refusal_is_told_once_and_counted(answer, says):
    with receiving(answer, answer) as it, pushing(it.url) as pusher:
        pusher.send("a")
        pusher.send("b")
        pusher.send("c")
        counts, err = pusher.end()
    assert settled(counts) == {"refused": 2} and counts["sent"] == 1
    assert it.names() == list("abc")
    assert says in harness.one_sentence(err)


def test_partial_success_is_counted():
    part = Answer(200, protobuf(1, b"\x08\x03" + protobuf(2, b"too old")))
    with receiving(part, part) as it, pushing(it.url) as pusher:
        pusher.send("a")
        pusher.send("b")
        counts, err = pusher.end()
    assert settled(counts) == {} and counts["sent"] == 2 and counts["rejected_profiles"] == 6
    assert it.names() == list("ab")
    assert "rejected 3 profiles" in harness.one_sentence(err) and "too old" in err


def test_garbage_for_an_answer():
    garbage = Answer(200, b"\xff" * 100_000)
    with receiving(garbage) as it, pushing(it.url) as pusher:
        pusher.send("a")
        counts, err = pusher.end()
    assert settled(counts) == {} and counts["sent"] == 1 and err == ""


def test_headers_without_end():
    with receiving(Answer(200, endless=True)) as it, pushing(it.url) as pusher:
        pusher.send("a")
        counts, err = pusher.end()
    assert settled(counts) == {} and counts["sent"] == 1 and counts["retried"] == 1
    assert "the headers of its answer have more than 64 KiB; trying again" in err


def test_an_outage_with_a_bound_in_memory():
    """The oldest ones go; those that arrive at last are the newest."""
    port = harness.free_port()
    with pushing("http://localhost:%d/" % port, queue_max=250_000) as pusher:
        pusher.send("first", 100_000)
        pusher.until(lambda counts: counts["retried"] >= 1)
        for name in "abcd":
            assert pusher.send(name, 100_000) == 0
        counts = pusher.until(lambda counts: counts["dropped"]["queue_full"] == 2)
        # The one that is being sent does not count for the bound.
        assert counts["waiting"] == 3 and counts["waiting_bytes"] == 300_000
        with receiving(port=port) as it:
            counts, err = pusher.end()
    assert settled(counts) == {"queue_full": 2} and counts["sent"] == 3
    assert it.names() == ["first", "c", "d"]
    assert "Failed to connect" in err and "takes profiles again" in err


def test_an_outage_that_is_too_long():
    with pushing("http://localhost:%d/" % harness.free_port(), retry_s=0.1) as pusher:
        pusher.send("a")
        pusher.send("b")
        counts = pusher.until(lambda counts: counts["dropped"]["given_up"] == 2)
        assert counts["waiting"] == 0
        assert settled(pusher.end()[0]) == {"given_up": 2}


def test_no_time_is_left_at_the_end():
    with pushing("http://localhost:%d/" % harness.free_port()) as pusher:
        pusher.send("a")
        counts, _ = pusher.end(0.2)
    assert settled(counts) == {"ended": 1} and counts["gone"]


def test_a_receiver_that_does_not_answer():
    answer = Answer(pause=threading.Event())
    with receiving(answer) as it, pushing(it.url, timeout_s=0.3) as pusher:
        pusher.send("a")
        counts, err = pusher.end()
        answer.pause.set()
    assert settled(counts) == {} and counts["sent"] == 1 and counts["retried"] == 1
    assert "timed out" in err


def spool_folder(folder):
    path = Path(folder, "spool")
    path.mkdir(mode=0o700)
    return path


def test_a_spool_outlives_an_outage_and_a_restart(folder):
    """Bodies are sent once, the oldest first; two were being sent, or in memory, when the first process ended."""
    path = spool_folder(folder)
    with pushing("http://localhost:%d/" % harness.free_port(), spool=path, queue_max=150_000) as pusher:
        for name in "abcdef":
            pusher.send(name, 100_000)
        counts, _ = pusher.end(0.2)
    assert settled(counts) == {} and counts["spooled"] == 6
    assert all(file.stat().st_mode & 0o777 == 0o600 and file.stat().st_uid == os.getuid() for file in path.iterdir())
    with receiving() as it, pushing(it.url, spool=path) as pusher:
        counts = pusher.until(lambda counts: counts["sent"] == 6)
        assert counts["found"] == 6 and counts["spooled"] == 0
        pusher.send("g")
        counts, err = pusher.end()
    assert settled(counts) == {} and counts["sent"] == 7 and err == ""
    assert sorted(it.names()) == list("abcdefg") and it.names()[-1] == "g"
    assert all(file.stat().st_size == 0 for file in path.iterdir())


@pytest.mark.parametrize("status", [401, 403])
def test_a_spool_keeps_what_a_token_does_not_open(folder, status):
    """Tokens are read at the start, and may have been replaced since: the next process sends it with another one."""
    path = spool_folder(folder)
    with receiving(*[Answer(status)] * 300) as it, pushing(it.url, spool=path, retry_s=0.1) as pusher:
        pusher.send("a")
        pusher.send("b")
        pusher.until(lambda counts: counts["spooled"] == 2)
        counts, err = pusher.end(0.2)
    assert settled(counts) == {} and counts["spooled"] == 2 and counts["sent"] == 0
    assert "it answers %d; the spool keeps it" % status in harness.one_sentence(err)
    with receiving() as it, pushing(it.url, spool=path) as pusher:
        counts = pusher.until(lambda counts: counts["sent"] == 2)
    assert counts["found"] == 2 and sorted(it.names()) == ["a", "b"]


def test_a_body_that_is_never_taken_keeps_no_other_from_being_sent(folder):
    """It is given up when others were taken behind it twice."""
    with receiving() as it, pushing(it.url, spool=spool_folder(folder), retry_s=0.1) as pusher:
        it.never = ("wrong",)
        pusher.send("wrong")
        pusher.until(lambda counts: counts["spooled"] == 1)
        for number in range(1, 20):
            pusher.send("n%d" % number)
            counts = pusher.until(lambda counts: counts["sent"] == number)
            if counts["dropped"]["given_up"]:
                break
        counts, _ = pusher.end()
    assert settled(counts) == {"given_up": 1} and counts["spooled"] == 0
    assert counts["sent"] >= 2 and it.names().count("wrong") >= 2


def test_a_spool_has_a_bound(folder):
    """The oldest of eight files is emptied for the next bodies; a body that is too large for one is lost."""
    path = spool_folder(folder)
    with pushing("http://localhost:%d/" % harness.free_port(), spool=path, spool_max=800_000, queue_max=1) as pusher:
        pusher.send("first")
        pusher.until(lambda counts: counts["retried"] >= 1)
        for i in range(12):
            pusher.send("n%02d" % i, 60_000)
        pusher.send("large", 200_000)
        counts, _ = pusher.end(0.2)
    assert settled(counts).keys() == {"spool_full"}
    assert counts["spooled"] == 14 - counts["dropped"]["spool_full"]
    assert sum(file.stat().st_size for file in path.iterdir()) <= 800_000
    with receiving() as it, pushing(it.url, spool=path) as pusher:
        pusher.until(lambda now: now["sent"] == counts["spooled"])
    assert "large" not in it.names() and "n11" in it.names() and "n00" not in it.names()


def test_what_is_put_into_the_spool_at_the_last_moment_is_not_lost():
    """A process that was stopped has more messages than there is place for, so that it is told of the end by EOF."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as path:
        with pushing("http://localhost:%d/" % harness.free_port(), spool=path) as pusher:
            worker = pusher.children()[1]
            os.kill(worker, signal.SIGSTOP)
            while not pusher.counts()["dropped"]["queue_full"]:
                pusher.send("a")
            pusher.write("end 0")
            os.kill(worker, signal.SIGCONT)
            counts = pusher.read()
        assert settled(counts) == {"queue_full": 1} and counts["gone"]
        assert counts["spooled"] == counts["submitted"] - 1 > 1 and counts["waiting"] == 0
        with pushing("http://localhost:%d/" % harness.free_port(), spool=path) as pusher:
            pusher.until(lambda now: now["found"] == counts["spooled"])


def test_a_damaged_spool(folder):
    path = spool_folder(folder)
    with pushing("http://localhost:%d/" % harness.free_port(), spool=path, queue_max=1) as pusher:
        for name in "abc":
            pusher.send(name, 10_000)
        counts, _ = pusher.end(0.2)
    assert counts["spooled"] == 3
    file = max(path.iterdir(), key=lambda file: file.stat().st_size)
    os.truncate(file, file.stat().st_size - 1)  # the machine was switched off
    with receiving() as it, pushing(it.url, spool=path) as pusher:
        pusher.until(lambda counts: counts["sent"] == 2)
        counts, err = pusher.end()
    assert settled(counts) == {"spool_error": 1} and counts["found"] == 3
    assert len(it.names()) == 2
    assert "a profile that could not be sent is lost" in harness.one_sentence(err)


def test_a_full_disk(folder):
    path = spool_folder(folder)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=0700", "none", path], check=True)
    try:
        with pushing("http://localhost:%d/" % harness.free_port(), spool=path, queue_max=1) as pusher:
            pusher.send("a", 20_000)
            pusher.send("b", 1000)
            counts, err = pusher.end(0.2)
        assert settled(counts) == {"spool_error": 1} and counts["spooled"] == 1
        assert "it could not be put into the spool, or the spool was damaged: No space left on device" in err
    finally:
        subprocess.run(["umount", path], check=True)


def test_kill_of_the_process_that_sends(folder):
    """It begins once more; what it had in memory is counted, what it had on the disk is sent."""
    path = spool_folder(folder)
    with pushing("http://localhost:%d/" % (port := harness.free_port()), spool=path, queue_max=150_000) as pusher:
        for name in "abc":
            pusher.send(name, 100_000)
        before = pusher.until(lambda counts: counts["spooled"] >= 1 and counts["retried"] >= 1)
        os.kill(pusher.children()[1], signal.SIGKILL)
        # What was on its way to the process that was killed is the next one's.
        after = pusher.until(lambda counts: counts["restarts"] == 1 and counts["dropped"]["crashed"] + counts["spooled"] == 3)
        assert after["spooled"] >= before["spooled"]
        pusher.send("d")
        with receiving(port=port) as it:
            pusher.until(lambda counts: counts["sent"] == after["spooled"] + 1)
            counts, _ = pusher.end()
    assert settled(counts) == {"crashed": after["dropped"]["crashed"]}
    assert len(it.names()) == len(set(it.names())) == counts["sent"] and it.names()[-1] == "d"


def test_kill_of_its_keeper():
    with pushing("http://localhost:%d/" % harness.free_port()) as pusher:
        keeper, worker = pusher.children()
        os.kill(keeper, signal.SIGKILL)
        harness.wait_for(lambda: not Path("/proc/%d" % worker).exists())
        assert pusher.send("a") < 0
        assert pusher.counts()["gone"]
        counts, _ = pusher.end()
    assert settled(counts) == {"ended": 1}


def test_kill_of_who_pushes(folder):
    """Nothing goes on, and what was in memory is on the disk."""
    path = spool_folder(folder)
    with pushing("http://localhost:%d/" % harness.free_port(), spool=path) as pusher:
        pids = pusher.children()
        pusher.send("a")
        pusher.send("b")
        os.kill(pusher.process.pid, signal.SIGKILL)
        harness.wait_for(lambda: not any(Path("/proc/%d" % pid).exists() for pid in pids))
    with receiving() as it, pushing(it.url, spool=path) as pusher:
        counts = pusher.until(lambda counts: counts["sent"] == 2)
    assert sorted(it.names()) == ["a", "b"] and counts["found"] == 2


def test_certificates(folder):
    folder = Path(folder)
    server, client = receiver.certificate(folder), receiver.certificate(folder, "client")
    with receiving(context=receiver.server_context(server, client[0])) as it:
        with pushing(it.url) as pusher:
            pusher.send("stranger")
            counts, err = pusher.end()
        assert settled(counts) == {"not_trusted": 1}
        assert "certificate" in harness.one_sentence(err)
        with pushing(it.url, ca=server[0], certificate=client[0], key=client[1]) as pusher:
            pusher.send("a")
            counts, err = pusher.end()
        assert settled(counts) == {} and err == ""
        with pushing(it.url.replace("localhost", "127.0.0.1"), ca=server[0]) as pusher:
            pusher.send("another-name")
            assert settled(pusher.end()[0]) == {"not_trusted": 1}
    assert it.names() == ["a"]


def refused(url="http://localhost:1/", **options):
    pusher = receiver.Pusher(url, **options)
    with contextlib.closing(pusher.process.stdin):
        err = pusher.process.communicate(timeout=harness.PATIENCE)[1]
    assert not pusher.ready and pusher.process.returncode == 1
    return harness.one_sentence(err)


def test_bad_options(folder):
    folder = Path(folder)
    secret, headers, spool = folder / "token", folder / "headers", folder / "spool"
    secret.write_text("x", encoding="ascii")
    secret.chmod(0o640)
    assert "others than its owner may use %s" % secret in refused(token=secret)
    assert "cannot open %s/nowhere" % folder in refused(ca=folder / "nowhere")
    assert "go together" in refused(certificate=secret)
    headers.write_text("Good: one\nBad header\n", encoding="ascii")
    headers.chmod(0o600)
    assert "line 2 of %s is not a header" % headers in refused(headers=headers)
    spool.mkdir(mode=0o777)
    spool.chmod(0o777)
    assert "cannot open the spool folder %s: others may write to it (mode 0777)" % spool in refused(spool=spool)
    spool.chmod(0o700)
    with pushing("http://localhost:1/", spool=spool):
        assert "is in use by another pybpf" in refused(spool=spool)
    for url in ("localhost:4318", "file:///etc/passwd", "http://"):
        assert "not a URL of HTTP" in refused(url)
    assert "must not have a user and a password" in refused("https://me:secret@host/")
    assert "secret" not in refused("https://me:secret@host/")


def test_it_has_the_network_and_nothing_else():
    with pushing("http://localhost:1/") as pusher:
        pids = pusher.children()
        for pid in pids:
            status = dict(
                line.split(":\t", 1) for line in Path("/proc/%d/status" % pid).read_text(encoding="ascii").splitlines()
            )
            assert status["Uid"].split() == ["65534"] * 4 and status["Gid"].split() == ["65534"] * 4
            assert status["Groups"].split() == []
            assert all(int(status[name], 16) == 0 for name in ("CapPrm", "CapEff", "CapInh", "CapAmb", "CapBnd"))
            assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
            opened = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
            # The streams, and sockets: one to who pushes, and libcurl's own.
            assert all(name == "/dev/null" or name.startswith(("socket:", "pipe:", "anon_inode:")) for name in opened), opened
