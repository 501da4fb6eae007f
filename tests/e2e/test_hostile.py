# SPDX-License-Identifier: Apache-2.0
"""Programs that show themselves as a Python and lie about all that is read of them (tests/hostile)."""

import contextlib
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

import harness

pytestmark = pytest.mark.usefixtures("profiler")

BUILD = Path(harness.PYBPF).resolve().parent / "hostile"
DATA = harness.TOP / "tests" / "data"
# The versions differ in how a thread's frames are found, in what strings and line tables are, and in offsets.
VERSIONS = ["3.8", "3.11", "3.12", "3.14"]
# Each lie, and what of the account shows that it was met.
LIES = {
    "cycles": lambda stats: stats["incomplete"]["cycle"],
    "wild": lambda stats: stats["incomplete"]["fault"],
    "starts": lambda stats: stats["lost"]["unreadable"],
    "lengths": lambda stats: stats["code_objects"]["unnamed"],
    "lists": lambda stats: stats["without_python"]["no_interpreter"],
    "pages": lambda stats: stats["incomplete"]["fault"],
    "churn": lambda stats: stats["stacks"] > 100,
    "deep": lambda stats: stats["incomplete"]["no_root"],
    "roots": lambda stats: stats["stacks"] > 20,
    "costly": lambda stats: stats["incomplete"]["no_root"],
    "tables": lambda stats: stats["code_objects"]["without_lines"],
}
BY_VERSION = ["cycles", "wild", "starts", "lengths"]
RATE = 4000
SECONDS = 0.3
# Duration of all lies together; 60 is for a long look.
LONG_SECONDS = float(os.environ.get("PYBPF_HOSTILE_SECONDS", "1"))
# A lie that the run did not meet, for others had the CPU, is told again to a longer one, up to this.
PATIENT_SECONDS = 10  # a run that has no other end
MOST_SECONDS = 60  # until a lie is met
# CPU time of pybpf: at its start and end, and for each second of lies, what it takes to name and to write stacks of 8,192
# frames, of which no two are the same: each code object's parts are read by a helper, one question for each.
GRACE = 10
WRITING = 1
# Steps of one walk at most (WALK_STEPS), and what one takes that reads a frame and a code object far from the last, some
# 90 ns, with room for a noisy machine. Unmapped memory counts for many steps (WALK_FAULT_STEPS).
STEPS = 65536 + 16384 + 8192
STEP_NS = 300
# What pybpf holds, and what each distinct stack adds to it when it shares no frame with the others.
PEAK_KIB = 128 * 1024
STACK_KIB = 8193 * 24 / 1024

NAMES = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima".split()
PATHS = ["/pretender/%s.py" % name for name in NAMES]
# A path may stand where a name should, and the other way round; a pointer beside an object may meet an empty string.
KNOWN_NAMES = {"", "[unnamed]", *NAMES, *PATHS}
KNOWN_FILES = {"", *NAMES, *(os.path.basename(path) for path in PATHS)}
MARK = re.compile(r"\[(incomplete|root not reached|\d+ frames? cut|unnamed)\]")


def offsets_of(version, path=None):
    """From 3.13 on the program shows debug offsets."""
    minor = int(version.split(".")[1])
    return [path or DATA / ("debug-offsets-%s.bin" % version)] if minor >= 13 else []


@contextlib.contextmanager
def pretender(version, lie, path=None):
    argv = [BUILD / ("pretender-" + version), lie, *offsets_of(version, path)]
    with harness.started(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, bufsize=0) as process:
        harness.read_ready_line(process)
        yield process


def profile(process, folder, seconds):
    """A run on a pretender that lies from the moment on that pybpf has taken it for a Python."""
    stats = folder / "stats.json"
    folded = folder / "profile.folded"
    argv = [harness.PYBPF, "-v", "-p", process.pid, "-d", seconds, "-F", RATE]
    argv += ["--json-stats", stats, "-o", folded]
    with harness.started(
        [*map(str, argv)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        said = b""
        while not all(words in said for words in (b"kernel: ", b"its memory is laid out as")):
            line = run.stderr.readline()
            assert line, "pybpf ended: %s" % said.decode()
            said += line
        process.send_signal(signal.SIGUSR1)
        err = run.communicate(timeout=seconds + harness.PATIENCE)[1]
    assert run.returncode == 0, (said + err).decode()
    out = folded.read_text(encoding="utf-8", errors="surrogateescape")
    return harness.Run(0, out, (said + err).decode(), json.loads(stats.read_text()))


def check_frames(stacks):
    """Nothing but what the program holds, and pybpf's own marks."""
    frames = {frame for stack, _ in stacks for frame in stack}
    for frame in frames:
        if frame.line is None and not frame.file and MARK.fullmatch(frame.text):
            continue
        assert frame.name in KNOWN_NAMES and frame.file in KNOWN_FILES, "invented: %s" % frame.text
        if frame.line is not None:
            first, beyond = divmod(frame.line, 100)
            assert 1 <= first <= len(NAMES) and beyond <= 8, "no line of it: %s" % frame.text


def check_account(run):
    stats, samples = run.stats, run.stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], stats
    assert samples["lost"] == sum(stats["lost"].values()), stats
    assert samples["taken"] == samples["python"] + sum(stats["without_python"].values()), stats
    assert harness.total(run.stacks()) == samples["python"], stats


def check_cost(run, seconds):
    assert run.stats["user_cpu_s"] < seconds * WRITING + GRACE, run.stats
    assert run.stats["peak_rss_kib"] < PEAK_KIB + run.stats["stacks"] * STACK_KIB, run.stats
    # All of the kernel program's time for those that walk far, as if the others took none.
    walked = run.stats["samples"]["python"] + run.stats["lost"]["unreadable"] + 1
    spent = run.stats["kernel_ns_per_sample"] * run.stats["samples"]["asked"] / walked
    assert spent < STEPS * STEP_NS, "%.0f ns for each walk: %s" % (spent, run.stats)


def check(version, lie, seconds, folder):
    with pretender(version, lie) as process:
        run = profile(process, folder, seconds)
        assert process.poll() is None, "the target was harmed"
    check_account(run)
    check_frames(run.stacks())
    check_cost(run, seconds)
    return run


@pytest.mark.parametrize("version", VERSIONS)
def test_truth(version, tmp_path):
    """Before it lies it is as good as a Python: what the lies are met with is the same code."""
    with pretender(version, "all") as process:
        run = harness.record_busy(process.pid, "-F", RATE, seconds=SECONDS)
    check_account(run)
    minor = int(version.split(".")[1])
    # From 3.12 on the frame nearest the root does not belong to Python code.
    chain = [NAMES[i % len(NAMES)] for i in range(24)][1 if minor >= 12 else 0 :]
    assert {tuple(frame.name for frame in stack) for stack, _ in run.stacks()} == {tuple(chain)}
    check_frames(run.stacks())


# In 3.11 and 3.12 only the lies show that lie on their way to a thread's frames.
@pytest.mark.parametrize(
    "version, lie",
    [(v, lie) for v in VERSIONS for lie in LIES if v in ("3.8", "3.14") or lie in BY_VERSION],
)
def test_lie(version, lie, tmp_path):
    seconds = SECONDS
    run = check(version, lie, seconds, tmp_path)
    while not LIES[lie](run.stats):
        seconds *= 3
        assert seconds < MOST_SECONDS, "the lie was not met: %s" % run.stats
        run = check(version, lie, seconds, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_lies(version, tmp_path):
    run = check(version, "all", LONG_SECONDS, tmp_path)
    assert run.stats["samples"]["asked"] > 50, run.stats


@pytest.mark.parametrize("version, lie", [("3.14", lie) for lie in [*LIES, "all"]] + [("3.8", "all")])
def test_dump(version, lie):
    """Nothing is invented, and pybpf ends, whatever the memory says."""
    with pretender(version, lie) as process:
        before = harness.pybpf("dump", "-p", process.pid, "--json")
        assert before.code == 0 and '"alpha"' in before.out, before
        process.send_signal(signal.SIGUSR1)
        for _ in range(2):
            run = harness.pybpf("dump", "-p", process.pid, "--json")
            assert run.code in (0, 1) and "\x1b" not in run.out + run.err, run
            assert run.out or run.err.startswith("pybpf: "), run
            threads = json.loads(run.out)["threads"] if run.out else []
            for frame in (frame for thread in threads for frame in thread["frames"]):
                if frame["kind"] == "note":
                    assert MARK.fullmatch(frame["function"]), frame
                    continue
                assert frame["function"] in KNOWN_NAMES and frame["file"] in {"", *NAMES, *PATHS}, frame
        assert process.poll() is None, "the target was harmed"


def word(number):
    return number.to_bytes(8, "little")


def at_every_offset(number):
    """After the head, which tells the version."""

    def apply(data):
        return data[:24] + word(number) * ((len(data) - 24) // 8)

    return apply


# What becomes of a true table of debug offsets.
DEBUG_OFFSETS = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:100],
    "another cookie": lambda data: b"ydebugpx" + data[8:],
    "no version": lambda data: data[:8] + word(0) + data[16:],
    "Python 4": lambda data: data[:8] + word(0x040000F0) + data[16:],
    "half free-threaded": lambda data: data[:16] + word(2) + data[24:],
    "zeros": at_every_offset(0),
    "all ones": at_every_offset(2**64 - 1),
    "2^63": at_every_offset(2**63),
    "65536": at_every_offset(65536),
    "64": at_every_offset(64),
    "shifted by a field": lambda data: data[:24] + data[32:] + word(8),
    "shifted by a byte": lambda data: data[:24] + data[25:] + b"\0",
    "backwards": lambda data: data[:24] + data[:23:-1],
}


@pytest.mark.parametrize("name", DEBUG_OFFSETS)
def test_debug_offsets_are_refused(name, tmp_path):
    true = offsets_of("3.14")[0].read_bytes()
    path = tmp_path / "offsets"
    path.write_bytes(DEBUG_OFFSETS[name](true))
    with pretender("3.14", "all", path) as process:
        run = harness.pybpf("-p", process.pid, "-d", 1)
    assert run.code > 0 and run.out == ""
    sentence = harness.one_sentence(run.err)
    assert "debug offsets" in sentence and str(process.pid) in sentence


# A few, as each takes a process; make fuzz has all that can be wrong with them.
@pytest.mark.parametrize("field", range(3, 95, 7))
def test_one_debug_offset_is_wrong(field, tmp_path):
    """Refused, or of no importance: then the profile is as true as ever."""
    data = bytearray(offsets_of("3.14")[0].read_bytes())
    data[8 * field : 8 * field + 8] = word(2**63 + 8)
    path = tmp_path / "offsets"
    path.write_bytes(data)
    with pretender("3.14", "all", path) as process:
        run = harness.pybpf("-p", process.pid, "-d", SECONDS, "-F", RATE)
        if not run.code and not run.stacks():
            run = harness.pybpf("-p", process.pid, "-d", PATIENT_SECONDS, "-F", RATE)
    if run.code:
        assert "debug offsets" in harness.one_sentence(run.err) and run.out == ""
    else:
        assert run.stacks()
        check_frames(run.stacks())
