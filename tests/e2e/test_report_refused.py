# SPDX-License-Identifier: Apache-2.0
"""What pybpf report refuses: files that are no saved profile, options, profiles that do not go together, full disks."""

import contextlib
import gzip
import os
import re
import shutil
import subprocess

import pytest

import formats as examples
import harness
from harness import one_sentence, parse, pybpf, total
from test_report import MAGIC, folded, formats, report, save

pytestmark = pytest.mark.usefixtures("profiler")


@pytest.fixture(scope="module")
def folder(profiler, tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def spin(folder):
    return save(folder, "spin", "spin.py", "--no-timestamps")


def refused(folder, *args, code=1):
    """What report says when it must fail; nothing may come to be in the folder."""
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    run = pybpf("report", *args)
    assert run.code == code, run
    assert run.out == ""
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before, "something was left behind"
    return one_sentence(run.err)


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def test_no_saved_profile(spin, tmp_path):
    whole = spin.path.read_bytes()
    out = ["-o", tmp_path / "out.folded"]
    cases = {
        "empty": (b"", "is empty"),
        "foreign": (b"\x89PNG\r\n\x1a\n" + bytes(100), "is no saved profile"),
        "text": (b"main (a.py:1) 3\n", "is no saved profile"),
        "begun": (whole[:10], "was cut off"),
        "half": (whole[: len(whole) // 2], "was cut off"),
        "nearly": (whole[:-1], "was cut off"),
        "longer": (whole + b"x", "there is data after the end"),
        "newer": (whole.replace(b"profile 1", b"profile 7", 1), "written by a newer pybpf (format 7; this one reads up to 1)"),
        "changed": (whole[:-7] + bytes([whole[-7] ^ 16]) + whole[-6:], "is damaged"),
        "bomb": (MAGIC + gzip.compress(b"\x0a" + varint(1 << 28) + bytes(1 << 28)), "out of proportion"),
        "counts": (MAGIC + gzip.compress(b"\x9a\x03" + varint(1 << 60) + bytes(99)), "is damaged"),
        "cycle": (MAGIC + gzip.compress(b"\x12\x01a\x1a\x01b\xa2\x01\x01\x00\xaa\x01\x01\x00"), "a stack's caller is not before it"),
    }
    for name, (data, words) in cases.items():
        path = tmp_path / (name + ".pybpf")
        path.write_bytes(data)
        sentence = refused(tmp_path, path, *out)
        assert words in sentence and str(path) in sentence, sentence
        # Beside a good one, too: nothing of it is written.
        assert words in refused(tmp_path, spin.path, path, *out)


def put_epoch(folder, minute, data, numbers):
    (folder / ("20261127T05%02d00.000Z-60000ms-%s.pybpf" % (minute, numbers))).write_bytes(data)


def test_damaged_epochs_are_left_out(tmp_path):
    """The others of the folder are reported; what is missing is said, also by the exit status."""
    made = examples.made(tmp_path)
    whole, other = (made / "recursive.pybpf").read_bytes(), made / "lines.pybpf"
    some, none = tmp_path / "some", tmp_path / "none"
    for folder in (some, none):
        folder.mkdir()
    put_epoch(some, 1, whole, "00000001")
    put_epoch(some, 2, whole[: len(whole) // 2], "00000002-00000061")
    put_epoch(none, 1, b"", "00000001")
    run = pybpf("report", some, "-f", "folded")
    damaged, account = run.err.splitlines()[:2]
    assert run.code == 1 and run.out == pybpf("report", made / "recursive.pybpf", "-f", "folded").out != "", run
    assert "00000002-00000061.pybpf was cut off" in damaged and damaged.endswith("(its 60 epochs are left out)")
    assert account.startswith("pybpf: 1 epoch, from") and account.endswith(", without 60 that cannot be read")
    run = pybpf("report", "-q", some, "-f", "jsonl")
    assert run.code == 1 and one_sentence(run.err) == damaged and run.out.count('"type":"profile"') == 1
    run = pybpf("diff", "-q", other, str(some) + "@..", "-f", "json")
    assert run.code == 1 and one_sentence(run.err) == damaged and run.out.startswith('{"format":"pybpf-diff"'), run
    put_epoch(some, 3, whole, "00000062")
    assert pybpf("report", "-q", some, "--from", "2026-11-27T05:03Z").code == 0
    for command in ("report", "-f", "folded", none, other), ("report", "-f", "jsonl", none, some), ("diff", none, other):
        run = pybpf(*command, "-o", tmp_path / "out.folded")
        assert run.code == 1 and "of the folder %s no epoch can be read" % none in run.err, run
    assert not (tmp_path / "out.folded").exists()


def test_epochs_of_another_rate(tmp_path):
    """It is said from when on they are sampled otherwise, and by which options those before, or since, are chosen."""
    made, folder = examples.made(tmp_path), tmp_path / "folder"
    folder.mkdir()
    for number, name in enumerate(("recursive", "recursive", "lines", "lines")):
        stem = "20261127T0502%02d.250Z-5000ms-0000000%d" % (5 * number, number + 1)
        shutil.copy(made / (name + ".pybpf"), folder / (stem + ".pybpf"))
    run = pybpf("report", folder, env={**os.environ, "TZ": "UTC"})
    found = re.fullmatch(r"pybpf: (\S+): what was sampled from 2026-11-27 05:02:10 on cannot be added to what was before: .*; choose by "
                         r"--to '(.*)' or --from '(.*)'\n", run.err)
    assert run.code == 1 and found and found.group(1) == str(folder), run
    for option, moment, first in (("--to", found.group(2), "05:02:00"), ("--from", found.group(3), "05:02:10")):
        run = pybpf("report", folder, option, moment, env={**os.environ, "TZ": "UTC"})
        assert run.code == 0 and "2 epochs, from 2026-11-27 %s to" % first in run.err, run


def test_no_file_to_read(tmp_path):
    out = ["-o", tmp_path / "out.folded"]
    assert "No such file" in refused(tmp_path, tmp_path / "nowhere.pybpf", *out)
    assert "has no epochs" in refused(tmp_path, tmp_path, *out)
    assert "no saved profile" in refused(tmp_path, "/dev/zero", *out)
    assert "give a saved profile" in refused(tmp_path, *out, code=2)


def test_wrong_options(spin, tmp_path):
    out = ["-o", tmp_path / "out.folded", spin.path]
    cases = {
        ("--pid", "x"): "--pid x", ("--pid", "0"): "--pid 0", ("--pid", "1,"): "--pid 1,", ("-p", "99999999999"): "not a process ID",
        ("--focus", "a("): "--focus a(: not a POSIX extended regular expression",
        ("--ignore", "[z-a]"): "--ignore [z-a]",
        ("--focus", ""): "--focus needs a value (REGEX); the one given is empty",
        ("--under", ""): "--under needs a function's name; the one given is empty",
        ("--under", "a", "--under", "b"): "one root",
        ("--by", "weather"): "process, container, line, expression, state or import",
        ("--by", "line"): "--by=line: folded has no lines",
        ("-f", "text", "--frame-marks"): "--frame-marks: text has no marks",
        ("-f", "jpeg"): "there are folded, ", ("--nonsense",): "--nonsense", ("--thread",): "needs a value",
        ("--full-filenames",): "give it to `pybpf record`", ("--lines=first",): "give it to `pybpf record`",
        ("--cmdline",): "give it to `pybpf record`", ("--mode", "wall"): "--mode is about a folder of epochs",
    }
    for options, words in cases.items():
        before = [] if options == ("--thread",) else out
        sentence = refused(tmp_path, *before, *options, code=2)
        assert words in sentence, sentence
    sentence = refused(tmp_path, spin.path, "-o", tmp_path / "out.jpeg", code=2)
    assert "no format has that suffix" in sentence
    assert all(suffix in sentence for suffix in (".folded", ".txt", ".html", ".pybpf", ".svg", ".pb.gz"))


def test_other_rate_is_not_added(spin, folder, tmp_path):
    other_rate = save(folder, "other rate", "spin.py", rate=99, seconds=0.5)
    sentence = refused(tmp_path, spin.path, other_rate.path, "-o", tmp_path / "out.folded")
    assert str(spin.path) in sentence and str(other_rate.path) in sentence
    assert "2.004 ms" in sentence and "10.101 ms" in sentence


def test_other_unit_is_not_added(spin, tmp_path):
    asleep = tmp_path / "asleep.pybpf"
    asleep.write_bytes(MAGIC + gzip.compress(b"\x12\x06asleep\x1a\x0bnanoseconds"))
    sentence = refused(tmp_path, spin.path, asleep, "-o", tmp_path / "out.folded")
    assert "one has samples in count, the other asleep in nanoseconds" in sentence
    assert report(asleep, "-f", "folded").out == ""


def test_empty_profile_in_every_format(tmp_path):
    empty = tmp_path / "empty.pybpf"
    empty.write_bytes(MAGIC + gzip.compress(b"\x12\x07samples\x1a\x05count"))
    for number, name in enumerate(formats()):
        run = report(empty, "-f", name, "-o", tmp_path / str(number))
        assert "no sample is left" in run.err


def test_output_places(spin, tmp_path):
    inside = tmp_path / "inside"
    inside.mkdir()
    assert "Is a directory" in refused(tmp_path, spin.path, "-o", inside, "-f", "folded")
    assert "No such file" in refused(tmp_path, spin.path, "-o", tmp_path / "no" / "x.folded")
    for name in formats():
        assert "No space left" in refused(tmp_path, spin.path, "-o", "/dev/full", "-f", name), name
    link, there = tmp_path / "link.folded", inside / "there.folded"
    there.write_text("old", encoding="utf-8")
    os.chmod(there, 0o600)
    link.symlink_to(there)
    report(spin.path, "-o", link)
    assert link.is_symlink() and total(parse(there.read_text(encoding="utf-8"))) == spin.stats["samples"]["python"]
    # Onto the file that is read.
    copy = tmp_path / "copy.pybpf"
    shutil.copy(spin.path, copy)
    report(copy, "--under", "inner", "-o", copy)
    assert {stack[0].name for stack, _ in folded(copy)} == {"inner"}


@contextlib.contextmanager
def small_disk(folder, kib):
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=%dk" % kib, "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here: " + done.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_full_disk_keeps_the_old_file(folder, tmp_path):
    threads = save(folder, "threads", "threads.py")
    with small_disk(tmp_path, 8):
        for name in ("old.folded", "old.pybpf", "old.txt"):
            path = tmp_path / name
            path.write_bytes(b"what was there" + bytes(100))
            (tmp_path / "rest").write_bytes(bytes(4000))
            before = path.read_bytes()
            sentence = refused(tmp_path, threads.path, "-o", path)
            assert "No space left" in sentence and str(path) in sentence
            assert path.read_bytes() == before
            path.unlink()


def test_memory_in_proportion(tmp_path):
    """Millions of stacks in a file of some kilobytes, all as they should be: refused before they take their memory."""
    chains, depth = 3000, 8000
    chain = b"\x01" * depth
    packed = {10: bytes(chains), 11: bytes(chains), 14: bytes(chains), 13: b"\x01" * chains}
    packed[12] = b"".join(varint(2 * line) for line in range(chains))
    # Each chain begins at the root, and is of the frame of the next line.
    packed[20] = b"".join(varint(number * depth + 1) + chain[1:] for number in range(chains))
    packed[21] = b"".join(bytes([2 if number else 0]) + bytes(depth - 1) for number in range(chains))
    message = b"\x12\x01a\x1a\x01b" + b"".join(
        varint(number << 3 | 2) + varint(len(data)) + data for number, data in sorted(packed.items())
    )
    path = tmp_path / "stacks.pybpf"
    path.write_bytes(MAGIC + gzip.compress(message))
    assert path.stat().st_size < 1 << 18
    done = subprocess.run(
        ["prlimit", "--as=%d" % (256 << 20), harness.PYBPF, "report", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "out of proportion" in one_sentence(done.stderr)
