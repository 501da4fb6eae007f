# SPDX-License-Identifier: Apache-2.0
"""What a profile holds beside its stacks: times, threads, containers, sources, facts, the account."""

import gzip
import json
import os
import socket
import subprocess
import time

import pytest

import formats
import harness

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 999


def record(pid, path, *args, seconds=1):
    run = harness.pybpf("-p", pid, "-d", seconds, "-F", RATE, "-o", path, *args)
    assert run.code == 0, run.err
    return run


def record_busy(pid, path, *args, fewest=100):
    """As record(), of a program that always has something to do, for as long as it takes to meet it that often."""
    for seconds in 0.5, 2, 8, 32:
        record(pid, path, *args, seconds=seconds)
        profile = as_json(path)
        if account(profile)["python", "python"] >= fewest:
            break
    return profile


def report(path, name, *args):
    done = subprocess.run(
        [harness.PYBPF, "report", "-q", str(path), "-f", name, *args], stdout=subprocess.PIPE, check=True
    )
    return done.stdout


def as_json(path, *args):
    return json.loads(report(path, "json", *args))


def account(profile):
    return {(entry["group"], entry["key"]): entry["value"] for entry in profile["account"]}


def test_times_of_all_samples(spinning, tmp_path):
    path = tmp_path / "spin.pybpf"
    before = time.time()
    profile = record_busy(spinning.pid, path, "--timestamps")
    after = time.time()
    events, samples = profile["events"], profile["samples"]
    total = sum(sample["value"] for sample in samples)
    assert sum(event[2] for event in events) == total == account(profile)["python", "python"]
    assert account(profile)["incomplete", "untimed"] == 0
    times = [event[0] for event in events]
    start = int(profile["facts"]["start_ns"]) / 1e9
    # Some are taken after the end of the run: timers are stopped one after the other.
    assert times == sorted(times) and 0 <= times[0]
    assert before <= start <= start + times[-1] / 1e9 <= after
    assert before <= start + float(profile["facts"]["duration_s"]) <= after
    by_sample = [0] * len(samples)
    for _, sample, value in events:
        by_sample[sample] += value
    assert by_sample == [sample["value"] for sample in samples]


def test_times_of_processes_that_end(tmp_path):
    """What they left in the kernel is taken while the run goes on: with their times."""
    path = tmp_path / "forks.pybpf"
    python = harness.default_python()
    counted = tmp_path / "stats.json"
    options = ["-F", RATE, "--timestamps", "--json-stats", counted, "-o", path]
    run = harness.pybpf(*options, "--", *python.command("forks.py", "20", "10", "40"))
    assert run.code == 0, run.err
    profile = as_json(path)
    assert len(profile["processes"]) > 15
    samples, timed = profile["samples"], [0] * len(profile["samples"])
    for _, sample, value in profile["events"]:
        timed[sample] += value
    # A copy that was sampled before its interpreter was known has no times: counted, and in a row without Python.
    early = [profile["stacks"][s["stack"]] for s, value in zip(samples, timed) if value < s["value"]]
    untimed = json.loads(counted.read_text(encoding="utf-8"))["incomplete"]["untimed"]
    assert sum(timed) + untimed == sum(sample["value"] for sample in samples) and untimed < 0.1 * sum(timed)
    assert {profile["frames"][stack["frame"]]["name"] for stack in early} <= {"[no interpreter]"}


def test_saved_profiles_have_times(spinning, tmp_path):
    """So that a later report has them; unless they are not wanted. Other formats have them only where they are used."""
    path = tmp_path / "spin.pybpf"
    run = record(spinning.pid, path, seconds=0.3)
    profile = as_json(path)
    assert sum(event[2] for event in profile["events"]) == sum(sample["value"] for sample in profile["samples"]) > 0
    assert "the time of" in run.err
    later = harness.pybpf("report", path, "-o", tmp_path / "later.html")
    assert later.code == 0 and "does not say when" not in later.err
    record(spinning.pid, path, "--no-timestamps", seconds=0.3)
    assert not as_json(path).get("events")
    later = harness.pybpf("report", path, "-o", tmp_path / "later.html")
    assert later.code == 0 and "does not say when" in later.err
    again = harness.pybpf("report", path, "-o", tmp_path / "again.pybpf")
    assert again.code == 0 and "does not say when" not in again.err
    run = record(spinning.pid, tmp_path / "spin.speedscope.json", seconds=0.3)
    assert "the time of" in run.err
    run = record(spinning.pid, tmp_path / "spin.speedscope.json", "--no-timestamps", seconds=0.3)
    assert "the time of" not in run.err
    run = record(spinning.pid, tmp_path / "spin.folded", seconds=0.3)
    assert "the time of" not in run.err


FLAT = "import time\nend = time.process_time() + %s\nwhile time.process_time() < end: pass"


@pytest.mark.parametrize("limit", [48, 38], ids=["by their share", "by what else there is"])
def test_times_are_bounded(limit, tmp_path):
    """Times take a quarter of the memory at most: beyond it no sample is lost, and each is counted as without time."""
    path, stats = tmp_path / "long.pybpf", tmp_path / "stats.json"
    most = limit * 2**20 // 4 // 64
    # Few stacks leave the memory to times, and this rate fills it in some 8 s of CPU time.
    rate, python = 20000, [*harness.default_python().argv, "-S"]
    command = [*python, "-c", FLAT % (1.4 * most / rate)]
    limits = ["--max-memory", limit, "--max-stacks", 1024]
    run = harness.pybpf("-F", rate, *limits, "--json-stats", stats, "-o", path, "--", *command)
    assert run.code == 0, run.err
    profile, counted = as_json(path), json.loads(stats.read_text(encoding="utf-8"))
    events, samples = len(profile["events"]), sum(sample["value"] for sample in profile["samples"])
    untimed = counted["incomplete"]["untimed"]
    assert samples >= counted["samples"]["python"] > 1.1 * most
    assert events + untimed == samples
    # A busy machine reads the ring buffer late, which costs times, too.
    assert 0.1 * most < events <= most
    assert "further samples are counted without their time" in run.err
    assert "%d without their time" % untimed in run.err
    # No stack is lost for the sake of times.
    assert not counted["lost"]["memory_limit"]
    # The first ones are those that have times.
    last = profile["events"][-1][0] / 1e9
    assert last < float(profile["facts"]["duration_s"])
    # A timeline has those with times where they were, and the others aside.
    timeline = tmp_path / "long.speedscope.json"
    assert harness.pybpf("report", "-q", path, "-o", timeline).code == 0
    names = [profile["name"] for profile in json.loads(timeline.read_text(encoding="utf-8"))["profiles"]]
    assert {True, False} == {"times unknown" in name for name in names}


def test_threads_are_known_and_stand_only_where_wanted(tmp_path):
    path = tmp_path / "threads.pybpf"
    with harness.target(harness.default_python(), "threads.py") as running:
        record(running.pid, path)
    profile = as_json(path)
    assert len({thread["tid"] for thread in profile["threads"]}) > 1
    assert {profile["processes"][thread["process"]]["pid"] for thread in profile["threads"]} == {running.pid}
    total = sum(sample["value"] for sample in profile["samples"])
    plain = harness.parse_all(report(path, "folded").decode())
    told_apart = harness.parse_all(report(path, "folded", "--threads").decode())
    assert harness.total(plain) == harness.total(told_apart) == total
    tids = {"(%d)" % thread["tid"] for thread in profile["threads"]}
    assert all(stack[0].text.rpartition(" ")[2] in tids for stack, _ in told_apart)
    assert not any(stack[0].text.rpartition(" ")[2] in tids for stack, _ in plain)


def test_facts(spinning, tmp_path):
    path = tmp_path / "spin.pybpf"
    begin = time.monotonic()
    record(spinning.pid, path, seconds=0.5)
    took = time.monotonic() - begin
    profile = as_json(path)
    facts = profile["facts"]
    assert facts["host"] == socket.gethostname() and facts["kernel"] == os.uname().release
    assert facts["freq_hz"] == str(RATE) and 0.5 <= float(facts["duration_s"]) <= took
    assert profile["measure"] == {"name": "samples", "unit": "count", "period_ns": 10**9 // RATE}
    entries = account(profile)
    lost = sum(value for (group, _), value in entries.items() if group == "lost")
    without = sum(value for (group, _), value in entries.items() if group == "without")
    assert entries["asked", "asked"] == lost + without + entries["python", "python"]


def test_the_host_has_the_name_that_is_given(spinning, tmp_path):
    path = tmp_path / "spin.pybpf"
    record(spinning.pid, path, "--host", "node-7", seconds=0.1)
    assert as_json(path)["facts"]["host"] == "node-7"


SCRIPT = """\
import time

def work():  # the one
    total = 0
    for i in range(10000):
        total += i * i
    return total

print('{"pid": %d}' % __import__("os").getpid(), flush=True)
while True:
    work()
"""


def saved_sources(path, *args):
    """File -> text, of a report that is made of it."""
    html = path.with_suffix(".html")
    html.write_bytes(report(path, "html", *args))
    data = formats.html_data(html)
    return {data["strings"][file]: data["strings"][text] for file, text in zip(*map(data["sources"].get, ("file", "text")))}


def script_of(tmp_path, interpreter, text=SCRIPT):
    script = tmp_path / "private_program.py"
    script.write_text(text, encoding="utf-8")
    return script, [*interpreter.argv, str(script)]


@pytest.fixture
def own_script(tmp_path):
    interpreter = harness.default_python()
    script, argv = script_of(tmp_path, interpreter)
    with harness.started(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        yield script, process


def test_source_as_it_ran(own_script, tmp_path):
    script, process = own_script
    path = tmp_path / "out.pybpf"
    record(process.pid, path, seconds=0.5)
    assert saved_sources(path)[script.name] == SCRIPT
    assert not saved_sources(path, "--no-source")
    record(process.pid, path, "--no-source", seconds=0.5)
    assert not saved_sources(path)


def test_source_that_was_changed_is_left_out(own_script, tmp_path):
    """Its lines are not those that ran."""
    script, process = own_script
    time.sleep(0.1)
    script.write_text("# something else\n" + SCRIPT, encoding="utf-8")
    path = tmp_path / "out.pybpf"
    run = record(process.pid, path, "-v", seconds=0.5)
    assert script.name not in saved_sources(path)
    assert "private_program.py: its source is left out: " in run.err


def test_source_after_the_program_has_ended(tmp_path):
    script, argv = script_of(tmp_path, harness.default_python(), SCRIPT.replace("while True", "for _ in range(500)"))
    path = tmp_path / "out.pybpf"
    run = harness.pybpf("-F", RATE, "-o", path, "--", *argv)
    assert run.code == 0, run.err
    assert "# the one" in saved_sources(path)[script.name]


def test_anonymous(own_script, tmp_path):
    """Nothing of the program's own words is in the file."""
    _, process = own_script
    path = tmp_path / "out.pybpf"
    record(process.pid, path, "--anonymize", "--timestamps", seconds=1.5)
    content = gzip.decompress(path.read_bytes().partition(b"\n")[2])
    host = socket.gethostname().encode()
    for word in b"private_program", b"work", b"python3", b"# the one", str(tmp_path).encode(), host:
        assert word not in content, word
    assert sum(sample["value"] for sample in as_json(path)["samples"]) > 30
