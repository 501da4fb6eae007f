# SPDX-License-Identifier: Apache-2.0
"""pstats files, read by the pstats of every Python, by snakeviz and by gprof2dot."""

import json
import subprocess
import sys

import pytest

import formats
import harness
import pythons

sys.path.insert(0, str(harness.TOP / "tests"))

import peers  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")

# For Python 2 and 3: what pstats loads, and that it prints all of it.
LOAD = """
import json, pstats, sys
try:
    from cStringIO import StringIO
except ImportError:
    from io import StringIO
out = StringIO()
loaded = pstats.Stats(sys.argv[1], stream=out)
loaded.sort_stats("cumulative").print_stats()
loaded.print_callers()
loaded.print_callees()
rows = []
for key, (cc, nc, tt, ct, callers) in loaded.stats.items():
    assert type(key[0]) is str and type(key[2]) is str and type(key[1]) is int, key
    rows.append([list(key), cc, nc, tt, ct, sorted([list(caller), list(call)] for caller, call in callers.items())])
print(json.dumps({"rows": sorted(rows), "calls": loaded.total_calls, "seconds": loaded.total_tt}))
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    return formats.recorded(tmp_path_factory.mktemp("pstats"))[0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return formats.made(tmp_path_factory.mktemp("made"))


def loaded(interpreter, path):
    script = path.parent / "load.py"
    script.write_text(LOAD, encoding="utf-8")
    done = subprocess.run([*interpreter.argv, str(script), str(path)], capture_output=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout.decode())


def outside_of_roots():
    """One of each version, the newest included, that can read this machine's files."""
    found = {}
    for item in pythons.interpreters():
        if item.runs_here():
            found.setdefault(item.version, item)
    return found


@pytest.mark.parametrize("name", ["recorded", "recursive"])
def test_totals(name, recorded, made):
    """Seconds are samples times their period; recursion counts once; callers are those that the stacks show."""
    saved = recorded if name == "recorded" else made / "recursive.pybpf"
    stacks = formats.folded(saved)
    sums = formats.totals(stacks)
    got = loaded(harness.default_python(), formats.report(saved, ".pstats"))
    period = got["seconds"] / sums.all
    own, samples, calls = {}, {}, {}
    for (file, _, function), cc, nc, own_s, total_s, callers in got["rows"]:
        # Several functions of one name in one file are told apart by their first line; ours are added up here.
        file = "" if file == "~" else file  # pstats' name for the file of what is built in
        own[function, file] = own.get((function, file), 0) + own_s
        samples.setdefault((function, file), []).append(nc)
        assert cc == nc and abs(total_s - nc * period) < 1e-6
        for (caller_file, _, caller), call in callers:
            caller_file = "" if caller_file == "~" else caller_file
            calls.setdefault(((caller, caller_file), (function, file)), []).append(call[1])
            assert abs(call[3] - call[1] * period) < 1e-6
    assert set(own) == set(sums.total)
    for key, seconds in own.items():
        assert abs(seconds - sums.self[key] * period) < 1e-6
        if len(samples[key]) == 1:
            assert samples[key][0] == sums.total[key]
        else:
            assert max(samples[key]) <= sums.total[key] <= sum(samples[key])
    assert set(calls) == set(sums.calls)
    for key, counts in calls.items():
        assert len(counts) > 1 or counts[0] == sums.calls[key]
    if name == "recorded":
        lambdas = [counts for (function, _), counts in samples.items() if function.endswith("<lambda>")]
        assert any(len(counts) == 2 for counts in lambdas), "the two lambdas of one name are one"


@pytest.mark.parametrize("name", ["recorded", "recursive", "hostile", "empty"])
def test_every_python_reads_the_same(name, recorded, made):
    saved = recorded if name == "recorded" else made / (name + ".pybpf")
    path = formats.report(saved, ".prof")
    want, interpreters = None, outside_of_roots()
    assert (2, 7) in interpreters and max(interpreters) >= (3, 13)
    for interpreter in interpreters.values():
        got = loaded(interpreter, path)
        seconds = got.pop("seconds")  # added up by pstats in the order of its dict
        assert abs(seconds - sum(row[3] for row in got["rows"])) < 1e-6
        want = want or got
        assert got == want, interpreter.name
    if name == "hostile":
        assert sum(row[3] for row in want["rows"]) == harness.total(formats.folded(saved))
    if name == "empty":
        assert [row[0] for row in want["rows"]] == [["~", 0, "<no sample has Python frames>"]]


# For Pythons that see no file of this machine: the dict through a pipe, then pstats as ever.
FROM_PIPE = """
import marshal, pstats, sys
class Read:
    stats = marshal.load(sys.stdin.buffer)
    def create_stats(self):
        pass
loaded = pstats.Stats(Read())
loaded.sort_stats("cumulative").print_stats()
print("read %d rows, %d calls" % (len(loaded.stats), loaded.total_calls))
"""


def test_pythons_in_a_root(made):
    """The newest are in a root file system, and see only what is there."""
    inside = {item.version: item for item in pythons.interpreters() if item.root}
    if not inside:
        pytest.skip("tools/setup-pythons has not made the root file system sid")
    for item in inside.values():
        for name in ("recursive", "hostile", "empty"):
            path = formats.report(made / (name + ".pybpf"), ".pstats")
            with open(path, "rb") as stats:
                done = subprocess.run([*item.argv, "-c", FROM_PIPE], stdin=stats, capture_output=True, timeout=60)
            assert done.returncode == 0, done.stderr.decode()
            here = loaded(harness.default_python(), path)
            told = "read %d rows, %d calls" % (len(here["rows"]), here["calls"])
            assert done.stdout.decode().splitlines()[-1] == told, item.name


def reader(program):
    try:
        return str(peers.readers() / program)
    except peers.Missing as missing:
        pytest.skip(str(missing))


SNAKEVIZ = """
import json, pstats, sys
from snakeviz.stats import json_stats, table_rows
stats = pstats.Stats(sys.argv[1])
print(json.dumps({"table": table_rows(stats), "tree": json_stats(stats)}))
"""


def test_snakeviz(recorded):
    """Its table and the tree that it draws."""
    path = formats.report(recorded, ".prof")
    done = subprocess.run([reader("python"), "-c", SNAKEVIZ, str(path)], capture_output=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    got = json.loads(done.stdout.decode())
    sums = formats.totals(formats.folded(recorded))
    assert len(got["table"]) == len(loaded(harness.default_python(), path)["rows"])
    (name, node), = [(name, node) for name, node in got["tree"].items() if name.endswith("(dive)")]
    key = "dive", str(formats.TARGET)
    assert node["stats"][1] == sums.total[key]
    assert any(callee.endswith("(leaf)") for callee in node["children"]), name


@pytest.mark.parametrize("suffix, form", [(".pstats", "pstats"), (".callgrind", "callgrind")])
def test_gprof2dot(suffix, form, recorded):
    """It draws every function with its share, from either format."""
    path = formats.report(recorded, suffix)
    argv = [reader("gprof2dot"), "-f", form, "-n", "0", "-e", "0", str(path)]
    done = subprocess.run(argv, capture_output=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode()
    for name in ("dive", "leaf", "even", "odd", "Shape.area"):
        assert name in text
