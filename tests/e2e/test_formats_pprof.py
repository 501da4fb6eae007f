# SPDX-License-Identifier: Apache-2.0
"""pprof, read by Go's."""

import re
import shutil
import subprocess

import pytest

import formats
import harness
from harness import total

pytestmark = pytest.mark.usefixtures("profiler")

EVERYTHING = ("-nodecount=1000000", "-nodefraction=0", "-edgefraction=0")
ROW = re.compile(r"\s*(\d+|0)\s+\S+\s+\S+\s+(\d+|0)\s+\S+\s+(.*)")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return formats.recorded(tmp_path_factory.mktemp("pprof"))[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return formats.made(tmp_path_factory.mktemp("made"))


def pprof(path, *options, index="samples"):
    if not shutil.which("go"):
        pytest.skip("go is not installed; tools/install-deps --test installs it")
    argv = ["go", "tool", "pprof", "-sample_index=" + index, *options, str(path)]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=harness.PATIENCE)
    err = done.stderr.decode("utf-8", "replace")
    assert done.returncode == 0, "%s: %s" % (" ".join(argv), err)
    return done.stdout.decode()


def top(path, granularity, *options):
    """What stands in each row of -top -> (flat, cum)."""
    rows = {}
    text = pprof(path, "-top", granularity, *EVERYTHING, *options)
    for row in text.split("flat%   sum%        cum   cum%\n", 1)[1].splitlines():
        flat, cum, name = ROW.fullmatch(row).groups()
        assert name not in rows, "two rows for " + name
        rows[name] = int(flat), int(cum)
    return rows


@pytest.mark.parametrize("name", ["recorded", "recursive"])
def test_top_has_the_totals(name, recorded, made):
    """By function and by line, every row."""
    saved = recorded if name == "recorded" else made / "recursive.pybpf"
    sums = formats.totals(formats.folded(saved))
    path = formats.report(saved, ".pb.gz")
    assert sums.all > 50
    want = {("%s %s" % key).strip(): value for key, value in sums.functions().items()}
    assert top(path, "-filefunctions") == want
    want = {}
    for (name, file, line), value in sums.lines().items():
        # Instructions that the compiler made up have no line.
        want[("%s %s:%d" % (name, file, line) if line else "%s %s" % (name, file)) if file else name] = value
    assert top(path, "-lines") == want


def raw_samples(path):
    """What -raw has before the stack of each sample."""
    samples = pprof(path, "-raw").split("\nSamples:\n", 1)[1].split("\nLocations\n", 1)[0]
    return [tuple(map(int, row.split())) for row in re.findall(r"^ +(\d[\d ]*): ", samples, re.M)]


def test_time_is_samples_times_their_period(recorded):
    path = formats.report(recorded, ".pb.gz")
    period = int(re.search(r"^Period: (\d+)", pprof(path, "-raw"), re.M).group(1))
    rows = raw_samples(path)
    assert sum(count for count, _ in rows) == total(formats.folded(recorded))
    assert all(count * period == time for count, time in rows)
    # Shown first: no sample type is asked for.
    text = pprof(path, "-top", "-unit=us", index="")
    assert "Type: cpu" in text
    shown = float(re.search(r"of ([\d.]+)us total", text).group(1))
    assert abs(shown - total(formats.folded(recorded)) * period / 1e3) < 1


def test_source_lines(recorded):
    """-list finds the source, and shows by line what the folded stacks have."""
    sums = formats.totals(formats.folded(recorded))
    text = pprof(formats.report(recorded, ".pb.gz"), "-list", "^leaf$")
    source = formats.TARGET.read_text(encoding="utf-8").splitlines()
    rows = re.findall(r"^ +(\S+) +(\S+) +(\d+):(.*)$", text, re.M)
    seen = {int(line): (flat, cum) for flat, cum, line, code in rows if code.strip() == source[int(line) - 1].strip()}
    ours = {key: value for key, value in sums.lines().items() if key[0] == "leaf"}
    assert len(ours) >= 2
    for (_, _, line), (own, whole) in ours.items():
        want = tuple(str(number) if number else "." for number in (own, whole))
        assert seen[line] == want


def test_source_path_leads_to_importable_files(tmp_path):
    """As docs/formats.md says: with the program's folders, -list finds what is recorded without whole paths."""
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "work.py").write_text("def hot(n):\n    return sum(i * i for i in range(n))\n", encoding="utf-8")
    script = "import sys; sys.path.insert(0, %r)\nfrom shop.work import hot\nhot(5000000)\n" % str(tmp_path)
    path = tmp_path / "shop.pb.gz"
    run = harness.pybpf("-F", 499, "-o", path, "--", *harness.default_python().argv, "-c", script)
    assert run.code == 0, run.err
    text = pprof(path, "-source_path=/nowhere:%s" % tmp_path, "-list", "^hot$")
    row = re.search(r"^ +(\S+) +(\S+) +2:    return sum\(i \* i for i in range\(n\)\)$", text, re.M)
    assert row and int(row.group(2)) > 20, text
    assert "could not find file shop/work.py" in pprof(path, "-source_path=/nowhere", "-list", "^hot$")


def test_labels_tell_threads_and_processes(recorded):
    path = formats.report(recorded, ".pb.gz")
    threads = {}
    for stack, count in formats.folded(recorded, "--threads"):
        if stack[0].text != "[no interpreter]":  # as its threads begin
            threads[stack[0].text] = threads.get(stack[0].text, 0) + count
    assert len(threads) == 3 and min(threads.values()) > 10
    for label, count in threads.items():
        name, tid = re.fullmatch(r"(.*) \((\d+)\)", label).groups()
        for focus in ("thread=^%s$" % re.escape(name), "thread_id=%s" % tid):
            shown = top(path, "-functions", "-tagfocus=" + focus)
            assert sum(flat for flat, _ in shown.values()) == count, focus
    assert {"pid:", "process:", "thread:", "thread_id:"} <= set(pprof(path, "-tags").split())
    # As roots, the names of threads are functions of their own.
    rooted = top(path, "-functions", "-tagroot=thread")
    assert sorted(rooted[label.rpartition(" (")[0]][1] for label in threads) == sorted(threads.values())


def test_the_account_is_told(recorded):
    assert re.search(r"^python: \d+ with Python frames$", pprof(formats.report(recorded, ".pb.gz"), "-comments"), re.M)


def test_draws(recorded, tmp_path):
    if not shutil.which("dot"):
        pytest.skip("dot is not installed (Debian's graphviz); tools/install-deps --test installs it")
    path = tmp_path / "graph.svg"
    pprof(formats.report(recorded, ".pb.gz"), "-svg", "-output", path)
    text = path.read_text(encoding="utf-8")
    assert text.rstrip().endswith("</svg>") and "Shape.area" in text
    assert "dive" in pprof(formats.report(recorded, ".pb.gz"), "-dot")


def test_files_of_compiled_code_are_mappings(made, tmp_path):
    """Each is one, with what its functions took; two profiles that are added have the same ones."""
    path, twice = formats.report(made / "compiled.pybpf", ".pb.gz"), tmp_path / "twice.pb.gz"
    numpy = "_multiarray_umath.cpython-312-x86_64-linux-gnu.so"
    want = {"python3 [FN][FL][LN]": 40, "libopenblas.so.0 [FN]": 41, numpy + " [FN]": 7, "python3.12 [FN]": 6, "uwsgi [FN]": 4}
    want[""] = 2  # in no file
    assert by_mapping(path) == want
    pprof(path, "-proto", "-output", twice, str(path))
    assert by_mapping(twice) == {name: 2 * value for name, value in want.items()}
    found = re.search(r"(\d+), .* of 100 total", pprof(path, "-top", "-focus=libopenblas"))
    assert int(found.group(1)) == 46, "with 5 in the kernel"


def by_mapping(path):
    """The mapping of each sample's leaf, as -raw has it, without its addresses, and the sum of these samples."""
    samples, rest = pprof(path, "-raw").split("\nSamples:\n", 1)[1].split("\nLocations\n", 1)
    locations, mappings = rest.split("\nMappings\n", 1)
    names = {number: " ".join(words.split()) for number, words in re.findall(r"(?m)^(\d+): 0x0/0x0/0x0 (.*)$", mappings)}
    of = {number: names.get(mapping, "") for number, mapping in re.findall(r"(?m)^ *(\d+): 0x0 (?:M=(\d+) )?", locations)}
    sums = {}
    for count, leaf in re.findall(r"(?m)^ +(\d+): (\d+) ", samples):
        sums[of[leaf]] = sums.get(of[leaf], 0) + int(count)
    return sums


def test_two_are_added(recorded, tmp_path):
    """pprof takes in its own what it wrote of two of ours."""
    path, twice = formats.report(recorded, ".pb.gz"), tmp_path / "twice.pb.gz"
    pprof(path, "-proto", "-output", twice, str(path))
    once = top(path, "-functions")
    assert top(twice, "-functions") == {name: (2 * flat, 2 * cum) for name, (flat, cum) in once.items()}


def test_names_made_to_harm(made):
    path = formats.report(made / "hostile.pybpf", ".pb.gz")
    counts = [count for _, count in formats.folded(made / "hostile.pybpf")]
    assert sorted(raw_samples(path)) == sorted((count,) for count in counts)
    assert "na\xefve" in pprof(path, "-top", *EVERYTHING)  # of a name that is UTF-8


def test_empty(made):
    text = pprof(formats.report(made / "empty.pybpf", ".pb.gz"), "-top")
    assert "No sample has Python frames." in text and "of 0 total" in text
