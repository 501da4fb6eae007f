# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry's Collector takes what pybpf sends, and writes out what pybpf has."""

import gzip
import json
import subprocess
import urllib.error
import urllib.request
from collections import Counter

import pytest

import collector
import formats
import harness
import receiver
import test_agent
import test_agent_push

pytestmark = pytest.mark.usefixtures("profiler")

KINDS = {"python": "cpython", "native": "native", "kernel": "kernel", "note": None}


def document(saved):
    return json.loads(formats.report(saved, ".json").read_text(encoding="utf-8"))


def expected(profile, waits, scale=1):
    """The samples of a profile as the Collector should have them: those that wait, or the others."""
    frames, stacks = profile["frames"], profile["stacks"]
    found = Counter()
    for sample in profile["samples"]:
        path, at = [], sample["stack"]
        while at is not None:
            path.append(frames[stacks[at]["frame"]])
            at = stacks[at]["parent"]
        state = path[0].get("state")
        if bool(state) != waits:
            continue
        process = profile["processes"][sample["process"]]
        attributes = {"process.pid": str(process["pid"]), "pid": str(process["pid"])}
        if process["inner_pid"]:
            attributes["process.vpid"] = str(process["inner_pid"])
        if sample["thread"] is not None:
            thread = profile["threads"][sample["thread"]]
            attributes.update({"thread.id": str(thread["tid"]), "thread_id": str(thread["tid"]), "thread.name": thread["name"]})
        if state:
            attributes["thread.state"] = state
        rows = tuple((f["name"], f["file"] or "", f["line"] or 0, KINDS[f["kind"]]) for f in reversed(path))
        found[rows, tuple(sorted(attributes.items()))] += sample["value"] * scale
    return found


def sent(saved, it, requests=1):
    """What the Collector has of a saved profile that is sent to it, in so many requests."""
    before = len(it.lines())
    done = harness.pybpf("report", saved, "-q", "-o", it.url)
    assert done.code == 0 and done.err == "", done.err
    harness.wait_for(lambda: len(it.lines()) >= before + requests)
    return collector.profiles(it.requests(before))


def check_times(found, profile):
    assert found.start_ns == int(profile["facts"]["start_ns"])
    assert abs(found.duration_ns / 1e9 - float(profile["facts"]["duration_s"])) < 1e-6
    assert len(bytes.fromhex(found.id)) == 16


@pytest.fixture(scope="module")
def it(tmp_path_factory):
    with collector.running(tmp_path_factory.mktemp("collector")) as running:
        yield running


def test_cpu_samples(it, tmp_path):
    """Each stack, line, thread and value of a run, and its time and period."""
    saved, _ = formats.recorded(tmp_path)
    profile = document(saved)
    (found,) = sent(saved, it)
    assert found.type == ("samples", "count")
    assert (found.period_type, found.period) == (("cpu", "nanoseconds"), profile["measure"]["period_ns"])
    assert found.samples == expected(profile, waits=False)
    assert sum(found.samples.values()) > 100
    check_times(found, profile)
    name = profile["processes"][0]["name"]
    assert found.resource == {
        "service.name": name,
        "process.executable.name": name,
        "host.name": profile["facts"]["host"],
    }


def test_waits(it, tmp_path):
    """They are a profile of their own, in nanoseconds, by state."""
    saved = tmp_path / "wall.pybpf"
    command = harness.default_python().command("waits.py", "1", "sleep", "lock", "read")
    done = harness.pybpf("--mode=wall", "-q", "-o", saved, "--", *command)
    assert done.code == 0, done.err
    profile = document(saved)
    found = {entry.type: entry for entry in sent(saved, it)}
    assert found["off_cpu", "nanoseconds"].samples == expected(profile, waits=True, scale=1000)
    assert found["off_cpu", "nanoseconds"].period == 0
    running = expected(profile, waits=False, scale=1000)
    assert (found["cpu", "nanoseconds"].samples if running else Counter()) == running
    states = {dict(attributes)["thread.state"] for _, attributes in found["off_cpu", "nanoseconds"].samples}
    assert len(states) >= 2, states


def test_what_is_too_large_for_one_request(it, tmp_path):
    """It comes in several, each below the limit, and nothing is lost or doubled."""
    saved = tmp_path / "grown.pybpf"
    subprocess.run([str(harness.TOP / "build" / "grown-profiles"), "containers", "40000", str(saved)], check=True)
    samples = Counter()
    found = sent(saved, it, requests=2)
    for entry in found:
        samples.update(entry.samples)
    assert samples == expected(document(saved), waits=False)
    assert len({entry.resource["container.name"] for entry in found}) == len(found) == 40_000


SERVICE = ["--label", "team=web", "--service", "shop=*shares*", "--service", "shop=*sleepers*"]


def base(it):
    return it.url.rsplit("/v1", 1)[0]


def epochs_with_samples(folder):
    return sum(test_agent.values(test_agent.as_json(folder / name)) > 0 for name in test_agent.epochs(folder))


def check_epochs(folder, it, before=0):
    """The Collector has each epoch once, with the service and the labels."""
    with_samples = epochs_with_samples(folder)
    harness.wait_for(lambda: len(it.lines()) >= before + with_samples)
    found, samples = collector.profiles(it.requests(before)), Counter()
    for entry in found:
        samples.update(entry.samples)
    assert samples == expected(test_agent.as_json(folder), waits=False)
    assert len(found) == len({entry.id for entry in found}) == with_samples
    assert {(entry.resource["service.name"], entry.resource["team"]) for entry in found} == {("shop", "web")}


def test_epochs_of_the_agent(it, tmp_path):
    """All of them together are what its files have."""
    folder, before = tmp_path / "epochs", len(it.lines())
    with harness.target(harness.default_python(), "shares.py") as target:
        with test_agent_push.sending(folder, "-p", target.pid, "--otlp", base(it), *SERVICE) as process:
            harness.wait_for(lambda: len(test_agent.epochs(folder)) >= 2)
            assert not test_agent.end(process)
    check_epochs(folder, it, before)


def test_outages_of_the_collector(tmp_path):
    """Nothing is lost or doubled where it restarts, nor where the agent ends while it is away: the next one has the spool."""
    folder, spool, python = tmp_path / "epochs", tmp_path / "spool", harness.default_python()

    def wait_for_more():
        before = len(test_agent.epochs(folder))
        harness.wait_for(lambda: len(test_agent.epochs(folder)) >= before + 2)

    with collector.running(tmp_path) as it, harness.target(python, "shares.py") as busy, harness.target(python, "sleepers.py", "1") as idle:
        arguments = ["--otlp", base(it), "--spool", spool, *SERVICE]
        with test_agent_push.sending(folder, "-p", busy.pid, *arguments) as process:
            harness.wait_for(it.lines)
            it.stop()
            wait_for_more()
            before = len(it.lines())
            it.start()
            harness.wait_for(lambda: len(it.lines()) > before)
            it.stop()
            wait_for_more()
            said = test_agent.end(process)
        assert "that wait in %s/otlp: " % spool in said and said.count("takes profiles again") == 1, said
        with_samples = epochs_with_samples(folder)
        with test_agent_push.sending(folder, "-p", idle.pid, *arguments) as process:
            assert "cannot send to" in process.stderr.readline()
            it.start()
            harness.wait_for(lambda: len(it.lines()) >= with_samples)
            test_agent.end(process)
        check_epochs(folder, it)


def test_names_made_to_harm(it, tmp_path):
    saved = formats.made(tmp_path) / "hostile.pybpf"
    profile = document(saved)
    found = sent(saved, it)
    assert sum(sum(entry.samples.values()) for entry in found) == sum(sample["value"] for sample in profile["samples"])


def test_https(tmp_path):
    paths = receiver.certificate(tmp_path)
    with collector.running(tmp_path, certificate=paths) as it:
        url = it.url.replace("http://127.0.0.1", "https://localhost")
        saved = formats.made(tmp_path) / "recursive.pybpf"
        done = harness.pybpf("report", saved, "-q", "-o", url)
        assert done.code == 1 and "certificate" in done.err
        done = harness.pybpf("report", saved, "-q", "-o", url, "--http-ca", paths[0])
        assert done.code == 0 and done.err == "", done.err
        harness.wait_for(it.lines)


def test_what_the_collector_refuses(it, tmp_path):
    """Its own words are shown."""
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(
            urllib.request.Request(it.url, gzip.compress(b"\xff\xff"), {"Content-Type": receiver.PROTOBUF, "Content-Encoding": "gzip"})
        )
    assert refusal.value.code == 400
    saved = formats.made(tmp_path) / "recursive.pybpf"
    done = harness.pybpf("report", saved, "-q", "-o", it.url.replace("/v1development", "/v1"))
    assert done.code == 1 and "it answers 404, 404 page not found" in done.err
    with receiver.pushing(it.url) as pusher:
        pusher.send("garbage")
        counts, err = pusher.end()
    assert counts["dropped"]["refused"] == 1
    assert "it answers 400, " in harness.one_sentence(err)
