# SPDX-License-Identifier: Apache-2.0
"""The queries of docs/databases.md, run by DuckDB on the rows of epochs, have what pybpf report has of the same epochs."""

import collections
import datetime
import json
import re
import subprocess

import pytest

import formats
import harness
import peers

PAGE = harness.TOP / "docs" / "databases.md"
RUN = """
import duckdb, json, sys
results = []
for query in json.load(sys.stdin):
    done = duckdb.execute(query)
    results.append({"columns": [one[0] for one in done.description or []], "rows": done.fetchall()})
print(json.dumps(results, default=str))
"""


def queries():
    """The statements of the page, by its headings."""
    found, heading = {}, ""
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        heading = part.split("\n", 1)[0]
        for block in re.findall(r"(?:^(?:    .*)?\n)+", part, flags=re.M):
            text = "\n".join(line[4:] for line in block.splitlines()).strip()
            if re.match("SELECT|WITH|CREATE|COPY", text):
                found.setdefault(heading, []).append(text)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = formats.made(tmp_path_factory.mktemp("made")) / "epochs"
    run = harness.pybpf("report", folder, "-q", "-o", folder / "shop.jsonl")
    assert run.code == 0, run
    return folder


@pytest.fixture(scope="module")
def answers(folder):
    """What DuckDB answers, by heading: a list of rows as dicts for each statement."""
    python = peers.databases() / "python"
    by_heading = queries()
    statements = [statement for group in by_heading.values() for statement in group]
    done = subprocess.run([python, "-c", RUN], cwd=folder, input=json.dumps(statements), capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    results = iter(json.loads(done.stdout))
    return {
        heading: [[dict(zip(one["columns"], row)) for row in one["rows"]] for one in (next(results) for _ in group)]
        for heading, group in by_heading.items()
    }


def whole_samples(*args):
    """The samples of a report: each with its process, thread, stack of frames, root first, and time in s."""
    run = harness.pybpf("report", "-q", "-f", "json", *args)
    assert run.code == 0, run
    profile = json.loads(run.out)
    for sample in profile["samples"]:
        at, stack = sample["stack"], []
        while at is not None:
            stack.insert(0, profile["frames"][profile["stacks"][at]["frame"]])
            at = profile["stacks"][at]["parent"]
        yield profile["processes"][sample["process"]], profile["threads"][sample["thread"]], stack, sample


def seconds(sample):
    return sample["value"] / 1e6


def test_rows_have_all(folder):
    """The sum of each epoch, its account and its time: without any database."""
    rows = [json.loads(line) for line in (folder / "shop.jsonl").read_text(encoding="utf-8").splitlines()]
    by_time = collections.Counter()
    for row in rows:
        by_time[row["begin_utc"]] += row["time_ns"] if row["type"] == "sample" else 0
    assert len(by_time) == 4 and sum(row["type"] == "profile" for row in rows) == 5
    for begin, ns in by_time.items():
        moment = harness.utc_ms(begin) // 1000
        span = [datetime.datetime.fromtimestamp(at, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ") for at in (moment, moment + 1)]
        wanted = sum(sample["value"] for *_, sample in whole_samples(folder, "--from", span[0], "--to", span[1]))
        assert ns == wanted * 1000 > 0


def test_functions_of_a_service_over_a_day(folder, answers):
    own, total = collections.Counter(), collections.Counter()
    for _, _, stack, sample in whole_samples(folder, "--from", "2026-11-26T00:00Z", "--to", "2026-11-27T00:00Z", "--service", "shop"):
        own[stack[-1]["name"], stack[-1]["file"]] += seconds(sample)
        for frame in {(frame["name"], frame["file"]) for frame in stack}:
            total[frame] += seconds(sample)
    rows = {(row["name"], row["file"]): row for row in answers["Functions of a service over a day"][0]}
    assert set(rows) == set(total)
    for frame, row in rows.items():
        assert row["self"] == pytest.approx(own[frame]) and row["total"] == pytest.approx(total[frame])


def test_the_share_of_each_service_by_hour(folder, answers):
    rows = answers["The share of each service, by hour"][0]
    hours = {row["hour"] for row in rows}
    assert len(hours) == 4
    for hour in hours:
        begin = datetime.datetime.fromisoformat(hour)
        span = [at.strftime("%Y-%m-%dT%H:%MZ") for at in (begin, begin + datetime.timedelta(hours=1))]
        by_service = collections.Counter()
        for process, _, _, sample in whole_samples(folder, "--from", span[0], "--to", span[1]):
            by_service[process["service"]] += sample["value"]
        wanted = {service: value / sum(by_service.values()) for service, value in by_service.items()}
        assert {row["service"]: row["share"] for row in rows if row["hour"] == hour} == pytest.approx(wanted)


def test_what_a_service_waits_for(folder, answers):
    times, counts = collections.Counter(), collections.Counter()
    for _, _, stack, sample in whole_samples(folder, "--service", "shop"):
        state = stack[-1].get("state", "on CPU")
        times[state] += seconds(sample)
        counts[state] += sample["count"]
    rows = {row["state"]: row for row in answers["What a service waits for"][0]}
    assert {state: row["seconds"] for state, row in rows.items()} == pytest.approx(dict(times)) and len(rows) == 2
    assert {state: float(row["waits"]) for state, row in rows.items()} == counts


def test_two_versions_of_a_service(folder, answers):
    shares = {}
    for version in ("1.4", "1.5"):
        own, whole = collections.Counter(), 0
        for _, _, stack, sample in whole_samples(folder, "--service", "shop", "--service-version", version):
            whole += sample["value"]
            for name in {frame["name"] for frame in stack}:
                own[name] += sample["value"]
        shares[version] = {name: value / whole for name, value in own.items()}
    rows = answers["Two versions of a service"][0]
    assert {row["name"]: row["before"] for row in rows} == pytest.approx(shares["1.4"])
    assert {row["name"]: row["after"] for row in rows} == pytest.approx(shares["1.5"])
    assert any(abs(row["before"] - row["after"]) > 0.01 for row in rows)


def test_threads_of_a_container(folder, answers):
    times = collections.Counter()
    for process, thread, _, sample in whole_samples(folder, "--container", "front-1"):
        times[process["pid"], thread["tid"], thread["name"]] += seconds(sample)
    rows = {(row["pid"], row["tid"], row["name"]): row["seconds"] for row in answers["Threads of a container"][0]}
    assert rows == pytest.approx(dict(times)) and len(rows) == 2


def test_parquet(folder, answers):
    """It has the rows that the table has."""
    assert answers["Into DuckDB, and Parquet"]
    count = "SELECT count(*), sum(time_ns) FROM 'shop.parquet'"
    done = subprocess.run([peers.databases() / "python", "-c", RUN], cwd=folder, input=json.dumps([count]), capture_output=True, text=True, timeout=harness.PATIENCE)
    rows = [json.loads(line) for line in (folder / "shop.jsonl").read_text(encoding="utf-8").splitlines()]
    samples = [row["time_ns"] for row in rows if row["type"] == "sample"]
    count, total = json.loads(done.stdout)[0]["rows"][0]
    assert (count, int(total)) == (len(samples), sum(samples))
