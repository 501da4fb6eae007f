# SPDX-License-Identifier: Apache-2.0
"""pybpf report: what was saved comes back in any format, merged, filtered and anonymized, without sampling again."""

import gzip
import os
import re
import resource
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import containers
import harness
from harness import Expectation, one_sentence, parse, pybpf, total
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("profiler")
RATE = 499
MAGIC = b"pybpf profile 1\n"


@dataclass
class Saved:
    path: Path
    says: dict
    pid: int
    stats: dict


def save(folder, name, target, *args, rate=RATE, seconds=1.5):
    path = folder / (name + ".pybpf")
    with harness.target(harness.default_python(), target) as running:
        run = harness.record(running.pid, "-o", path, *args, seconds=seconds, rate=rate)
    return Saved(path, running.says, running.pid, run.stats)


@pytest.fixture(scope="module")
def folder(profiler, tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def threads(folder):
    return save(folder, "threads", "threads.py")


@pytest.fixture(scope="module")
def spin(folder):
    return save(folder, "spin", "spin.py", "--no-timestamps")


@pytest.fixture(scope="module")
def timed(folder):
    return save(folder, "timed", "threads.py")


def report(*args, **options):
    run = pybpf("report", *args, **options)
    assert run.code == 0, run.err
    return run


def folded(*args):
    """The stacks of a report."""
    run = report("-f", "folded", *args)
    return parse(run.out)


def names(stacks):
    return {frame.name for stack, _ in stacks for frame in stack}


def formats():
    """All that there are, by the sentence about one that there is not."""
    run = pybpf("report", "-f", "no-such-format", "x.pybpf")
    assert run.code == 2
    found = one_sentence(run.err).partition("there are ")[2].split(", ")
    assert "folded" in found and "pybpf" in found, run.err
    return found


def test_the_same_stacks(spin):
    stacks = folded(spin.path)
    assert total(stacks) == spin.stats["samples"]["python"] > 10
    Expectation(spin.says).check(stacks)


def test_the_same_as_folded_at_once(tmp_path):
    """A run that is long over, from its file: nothing of the process is there any more."""
    script = tmp_path / "short.py"
    script.write_text("def work():\n    return sum(i * i for i in range(4000000))\n\nwork()\n", encoding="utf-8")
    path = tmp_path / "short.pybpf"
    run = pybpf("-F", 999, "-o", path, "--", harness.default_python().argv[0], script)
    assert run.code == 0, run.err
    stacks = folded(path)
    assert str(total(stacks)) == re.search(r"(\d+) with Python frames", run.err).group(1)
    at_work = sum(count for stack, count in stacks if any(frame.name == "work" and frame.line == 2 for frame in stack))
    assert at_work > 0.5 * total(stacks)


def test_as_saved_again(threads, tmp_path):
    """Through report into another saved profile, and again: nothing is lost on the way."""
    again, third = tmp_path / "again.pybpf", tmp_path / "third.pybpf"
    report(threads.path, "-o", again)
    report(again, "-o", third)
    assert unpacked(again) == unpacked(third)
    for more in ([], ["--threads"], ["--by=container"]):
        assert sorted(map(str, folded(threads.path, *more))) == sorted(map(str, folded(third, *more)))


def test_table_and_account(spin):
    run = report(spin.path)
    rows = run.out.splitlines()
    head = [row.split() for row in rows].index(["self", "self%", "total", "total%", "function"])
    assert rows[head + 1].endswith("inner (spin.py)")
    assert rows[head + 1].split()[0] == str(sum(n for stack, n in folded(spin.path) if stack[-1].name == "inner"))
    assert "%d in the profiled processes" % spin.stats["samples"]["asked"] in run.err
    assert "%d samples here" % (spin.stats["samples"]["python"] + harness.in_rows(spin.stats)) in run.err
    assert socket.gethostname() in run.err
    quiet = report("-q", spin.path)
    assert (quiet.out, quiet.err) == (run.out, "")


def test_table_of_lines(spin):
    lines = {stack[-1].line for stack, _ in folded(spin.path) if stack[-1].name == "inner"}
    rows = report(spin.path, "--by=line").out.splitlines()
    found = {row.split()[-2] for row in rows if row.split()[-1:] == ["inner"]}
    assert found == {"spin.py:%d" % line for line in lines}, rows


def test_no_root_needed(spin):
    """The file is all that is read, by whom may read it."""
    with tempfile.TemporaryDirectory() as place:
        for path in (spin.path, harness.PYBPF):
            os.chmod(shutil.copy(path, place), 0o755)
        os.chmod(place, 0o755)
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", os.path.join(place, "pybpf"), "report",
             "-f", "folded", os.path.join(place, spin.path.name)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert total(parse(done.stdout.decode())) == spin.stats["samples"]["python"]


def test_two_are_added_up(threads, spin):
    both = folded(threads.path, spin.path, "--by=process")
    one, other = folded(threads.path, "--by=process"), folded(spin.path, "--by=process")
    assert sorted(map(str, both)) == sorted(map(str, one + other))
    run = report(threads.path, spin.path)
    asked = threads.stats["samples"]["asked"] + spin.stats["samples"]["asked"]
    assert "asked: %d " % asked in run.err
    twice = folded(spin.path, spin.path)
    assert total(twice) == 2 * total(folded(spin.path))


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (20, 100))


def test_more_files_than_descriptors(spin):
    """The usual limit is for programs that use select(2): all files are open at once."""
    run = pybpf("report", "-f", "folded", *[spin.path] * 40, preexec_fn=few_descriptors)
    assert run.code == 0, run.err
    assert total(parse(run.out)) == 40 * total(folded(spin.path))
    run = pybpf("report", *[spin.path] * 120, preexec_fn=few_descriptors)
    assert run.code == 1 and "choose a span of time by --from and --to" in harness.one_sentence(run.err)


def test_by_pid(threads, spin):
    both = [threads.path, spin.path]
    assert folded(*both, "--pid", spin.pid, "--by=process") == folded(spin.path, "--by=process")
    assert total(folded(*both, "-p", "%d,%d" % (spin.pid, threads.pid))) == total(folded(*both))
    run = report(*both, "--pid", spin.pid)
    assert re.search(r"^pybpf: without filters, processes: 2 that ran Python$", run.err, re.M), run.err
    assert "without filters" not in report(*both).err
    run = report(*both, "--pid", 1)
    assert "no sample is left" in run.err
    assert "left out: %d " % total(folded(*both)) in run.err


def test_by_thread(threads):
    everything = folded(threads.path)
    seen = 0
    for name, tid, function in threads.says["more"]["threads"]:
        by_name, by_tid = folded(threads.path, "--thread", name), folded(threads.path, "--thread", tid)
        assert sorted(map(str, by_name)) == sorted(map(str, by_tid))
        assert function in names(by_name)
        assert not names(by_name) & ({"first", "second", "third"} - {function})
        seen += total(by_name)
    assert seen >= 0.95 * total(everything)
    assert total(folded(threads.path, "--thread", "worker*")) == seen
    roots = {stack[0].text for stack, _ in folded(threads.path, "--threads", "--thread", "worker*")}
    assert roots == {"%s (%d)" % (name, tid) for name, tid, _ in threads.says["more"]["threads"]}


def test_by_container(tmp_path):
    why = containers.why_not()
    if why:
        pytest.skip(why)
    path = tmp_path / "all.pybpf"
    with harness.target(harness.default_python(), "spin.py") as host:
        with containers.container("shop", containers.command("spin.py")) as inside:
            run = pybpf("--all", "-d", 1.5, "-F", RATE, "-o", path)
            assert run.code == 0, run.err
            inside_pid, ident = inside.pid, inside.id
    for query in (ident, ident[:8] + "*"):
        stacks = folded(path, "--container", query, "--by=container")
        assert {stack[0].text for stack, _ in stacks} == {ident}
        assert all("(%d, 1 inside)" % inside_pid in stack[1].text for stack, _ in stacks)
        assert total(stacks) > 10
    everything = folded(path, "--by=container")
    assert {stack[0].text for stack, _ in everything} >= {ident, "[host]"}
    assert any("(%d)" % host.pid in stack[1].text for stack, _ in everything)
    assert not folded(path, "--container", "no-such")


def test_under(spin):
    everything = folded(spin.path)
    wanted = [(stack, count) for stack, count in everything if any(frame.name == "inner" for frame in stack)]
    stacks = folded(spin.path, "--under", "inner")
    assert {stack[0].name for stack, _ in stacks} == {"inner"}
    assert total(stacks) == total(wanted) > 0
    assert total(folded(spin.path, "--under", "i*r")) == total(wanted)
    assert pybpf("report", "--under", "inn", spin.path).code == 1


def test_own(tmp_path):
    """All of json's time is its caller's; with --own-path json's functions are own ones, too."""
    code = "import json, sys, time\nend = time.time() + 1\nwhile time.time() < end: json.dumps([{'a': str(i)} for i in range(500)], indent=1)\n"
    program, saved = tmp_path / "dumps.py", tmp_path / "dumps.pybpf"
    program.write_text(code)
    python = harness.default_python()
    command = ("--", *python.argv, program)
    assert pybpf("-F", 499, "-q", "-o", saved, *command).code == 0
    everything = folded(saved)
    assert any((frame.file or "").startswith("json/") for stack, _ in everything for frame in stack)
    own = folded(saved, "--own")
    assert total(own) == total(everything)
    files = {frame.file for stack, _ in own for frame in stack if frame.file}
    assert {"dumps.py"} <= files <= {"dumps.py", "<string>"}
    both = folded(saved, "--own", "--own-path", "json/")
    assert {frame.file.split("/")[0] for stack, _ in both for frame in stack if frame.file} - {"<string>"} == {"dumps.py", "json"}
    run = report("--own-path", "jso", "-f", "folded", saved)
    assert run.code == 0 and "--own-path jso: no file is in it" in run.err
    # While recording whole paths are known.
    library = subprocess.run([*python.argv, "-c", "import json; print(json.__file__)"], stdout=subprocess.PIPE, text=True, check=True).stdout
    run = pybpf("-F", 499, "-q", "-f", "folded", "--own", "--own-path", os.path.dirname(library), *command)
    assert run.code == 0 and "json/encoder.py" in run.out and "dumps.py" in run.out
    run = pybpf("-F", 499, "-q", "-f", "folded", "--own", *command)
    assert run.code == 0 and "json/encoder.py" not in run.out and "dumps.py" in run.out


def test_hide(threads):
    everything, hidden = folded(threads.path), folded(threads.path, "--hide", r"^(first|third) \(threads\.py")
    assert {"first", "third"} <= names(everything) and total(hidden) == total(everything)
    assert names(hidden) == names(everything) - {"first", "third"}


def test_under_a_name_that_is_not_there(threads, spin, tmp_path):
    """A typo makes no empty report: near names are told, and no file is made."""
    path = tmp_path / "under.txt"
    for typed, wanted in {"iner": "inner", "OUTER": "outer", "in": None, "nowhere": None, "n?wh*": None}.items():
        run = pybpf("report", "--under", typed, "-o", path, spin.path)
        sentence = one_sentence(run.err)
        assert run.code == 1 and typed in sentence and not path.exists()
        assert sentence.endswith("did you mean %s?" % wanted) if wanted else "did you mean" not in sentence
    # One of several files is enough, and a filter that leaves nothing is no typo.
    assert names(folded(threads.path, spin.path, "--under", "inner")) == {"inner"}
    run = report("--under", "inner", "--pid", 1, "-f", "folded", spin.path)
    assert run.out == "" and "no sample is left" in run.err


def test_focus_and_ignore(threads):
    everything = folded(threads.path)
    focused = folded(threads.path, "--focus", r"^(first|third) \(threads\.py:[0-9]+\)$")
    ignored = folded(threads.path, "--ignore", r"^(first|third) \(threads\.py:[0-9]+\)$")
    assert {"first", "third"} <= names(focused) and "second" not in names(focused)
    assert "second" in names(ignored) and not names(ignored) & {"first", "third"}
    assert total(focused) + total(ignored) == total(everything)
    assert folded(threads.path, "--focus", "first_burn", "--focus", "second_burn") == []
    one = folded(threads.path, "--focus", "burn", "--ignore", "second")
    assert "first_burn" in names(one) and "second_burn" not in names(one)


def unpacked(path):
    """All bytes of a file, those that it has compressed instead of the compressed ones."""
    data = Path(path).read_bytes()
    if data.startswith(MAGIC):
        return gzip.decompress(data[len(MAGIC):])
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    return data


def test_anonymized_in_every_format(threads, tmp_path):
    """None of the names that are there is in any file, nor in the account."""
    plain = tmp_path / "plain.pybpf"
    report(threads.path, "-o", plain)
    words = ["first_burn", "second_burn", "worker one", "worker-three", "threads.py", "threading.py", "_bootstrap_inner"]
    words += ["PR_SET_NAME", harness.default_python().argv[0]]
    assert all(word.encode() in unpacked(plain) for word in words[:-1])
    host = socket.gethostname().encode()
    assert b"\0" + host + b"\0" in unpacked(plain)
    sums = set()
    for number, name in enumerate(formats()):
        path = tmp_path / ("out.%d" % number)
        run = report(threads.path, "--anonymize", "--threads", "-f", name, "-o", path)
        data = unpacked(path)
        assert len(data) > 100, name
        for word in words:
            assert word.encode() not in data, "%s is in %s" % (word, name)
            assert word not in run.err
        assert b"\0" + host + b"\0" not in data and host.decode() not in re.sub(r"pybpf: [0-9.]+ s at ", "", run.err)
        sums.add(re.search(r"(\d+) samples here", run.err).group(1))
    assert sums == {str(threads.stats["samples"]["python"] + harness.in_rows(threads.stats))}
    # What is left is still a profile: the same counts on as many stacks.
    hidden, open_ = folded(threads.path, "--anonymize"), folded(threads.path)
    assert sorted(count for _, count in hidden) == sorted(count for _, count in open_)
    assert sorted(stack[-1].line or 0 for stack, _ in hidden) == sorted(stack[-1].line or 0 for stack, _ in open_)
    # By another key each time.
    assert not names(hidden) & names(folded(threads.path, "--anonymize")) - {"<module>"}


def test_sources_only_as_wanted(threads, tmp_path):
    """The text of the program is in the file, and leaves it when it is told to, or with the stacks that have it."""
    line = b"wanted.more["
    assert line in unpacked(threads.path)
    for number, options in enumerate((["--no-source"], ["--anonymize"], ["--thread", "none"])):
        path = tmp_path / ("%d.pybpf" % number)
        report(threads.path, *options, "-o", path)
        assert line not in unpacked(path)


def times(*args):
    """(TID, seconds) of all that perf script's text has."""
    text = report("-q", "-f", "perf-script", *args).out
    return [(int(tid), float(time)) for tid, time in re.findall(r"^\S.*?/(\d+) +(\d+\.\d+): ", text, re.M)]


def test_times(timed, spin):
    """When samples were taken is kept, filtered and merged with them."""
    name, tid, _ = timed.says["more"]["threads"][0]
    untimed = timed.stats["incomplete"]["untimed"]
    assert len(times(timed.path)) + untimed == total(folded(timed.path))
    of_one = times(timed.path, "--thread", name)
    assert of_one == [row for row in times(timed.path) if row[0] == tid] != []
    both = [time for _, time in times(timed.path, timed.path)]
    assert both == sorted(both) and sorted(2 * [time for _, time in times(timed.path)]) == both
    assert "does not say when" in report(spin.path, "-f", "perf-script").err
    assert "does not say when" not in report(timed.path, "-f", "perf-script").err


def test_nothing_binary_on_a_terminal(spin):
    ran = Terminal("report", spin.path, "-f", "pybpf")
    assert ran.code == 2 and ran.shown == b""
    assert "terminal" in one_sentence(ran.err)
    piped = subprocess.run([harness.PYBPF, "report", "-f", "pybpf", spin.path], capture_output=True, check=True)
    assert piped.stdout.startswith(MAGIC)
