# SPDX-License-Identifier: Apache-2.0
"""What make bench does beside measuring: figures, tables, what other profilers say, what is not there, bad input."""

import subprocess
import sys

import pytest

import harness
import pythons

sys.path[:0] = [str(harness.TOP / "tests"), str(harness.TOP / "tests" / "bench")]

import figures  # noqa: E402
import machine  # noqa: E402
import peers  # noqa: E402
import plan  # noqa: E402
import samplers  # noqa: E402
import target_speed  # noqa: E402


def test_a_figure_is_a_median_with_its_spread():
    assert figures.Figure([3.0, 1.0, 2.25]).text() == "2.25 (1.00..3.00)"
    assert figures.Figure([1, 2], 1, spread=False).text() == "1.5"
    assert figures.Figure([None, 4.0, None], 0).text() == "4 (4..4)", "a round that failed has no value"
    nothing = figures.Figure([None, None], target=figures.Target(1, "1"))
    assert nothing.text() == "-" and nothing.verdict() == "" and nothing.machine() is None


@pytest.mark.parametrize(
    "values, at_least, verdict",
    [
        ([1, 2, 2], False, "target 2, met"),
        ([3, 3, 4], False, "target 2, missed"),
        ([1, 3, 4], False, "target 2, missed (within the spread)"),
        ([2, 2, 9], True, "target 2, met"),
        ([0, 1, 1], True, "target 2, missed"),
    ],
)
def test_a_missed_target_is_marked(values, at_least, verdict):
    figure = figures.Figure(values, target=figures.Target(2, "2", at_least))
    assert figure.verdict() == verdict
    assert figure.missed() == ("missed" in verdict)


def test_ratios_are_of_one_round_each():
    assert figures.ratios([1, 2, None, 4, 5, 6], [2, 2, 2, None, 0, -1], 100) == [50, 100] + 4 * [None]
    with pytest.raises(AssertionError):
        figures.ratios([1], [1, 2])


def test_the_table_is_aligned_and_its_json_has_every_value():
    section = figures.Section("costs", ["what", "us"], notes=["a note"])
    section.add("a long name", figures.Figure([1.0, 2.0, 3.0], target=figures.Target(1, "1")))
    section.add("b", figures.Figure([]))
    assert section.text().split("\n") == [
        "== costs",
        "what                        us",
        "a long name  2.00 (1.00..3.00)  target 1, missed (within the spread)",
        "b                            -",
        "   a note",
    ]
    assert section.missed() == 1
    rows = section.machine()["rows"]
    assert rows[0]["us"]["values"] == [1.0, 2.0, 3.0] and rows[0]["us"]["missed"]
    assert rows[1] == {"what": "b", "us": None}
    with pytest.raises(AssertionError):
        section.add("too few cells")


@pytest.mark.parametrize(
    "sampler, text, got, lost, seconds",
    [
        (samplers.Bare, "[ perf record: Captured and wrote 0.021 MB perf.data (500 samples) ]", 500, 0, None),
        (samplers.Bare, "Processed 9 events and lost 7 chunks!\n... perf.data (500 samples) ]", 500, 7, None),
        (samplers.PySpy, "py-spy> Wrote raw flamegraph data to 'profile'. Samples: 998 Errors: 3", 998, 3, None),
        (samplers.Austin, "Total duration . . . 1.50s\n Error rate . . . . 7/907 (0.77%)", 900, 7, 1.5),
        (samplers.Profiling, "Captured 1000 samples in 2.00 seconds\nError rate: 1.50", 985, 15, 2.0),
    ],
)
def test_what_other_profilers_say_of_their_samples(sampler, text, got, lost, seconds):
    sampled = sampler().sampled(text, None)
    assert (sampled.got, sampled.lost, sampled.seconds) == (got, lost, seconds)
    with pytest.raises(AssertionError, match="did not say what it got: something else"):
        sampler().sampled("something else", None)


@pytest.fixture
def forgetful():
    """What was found of the peers is not kept."""
    found = (peers.environment, peers.py_spy, peers.austin, peers.profiling_sampling)
    for function in found:
        function.cache_clear()
    yield
    for function in found:
        function.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_a_peer_that_cannot_be_installed_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("PYBPF_TEST_CACHE", str(tmp_path))
    monkeypatch.setattr(peers, "run", lambda argv: subprocess.CompletedProcess(argv, 1, "there is no network\n"))
    bench = plan.Bench(plan.SHORT, [])
    interpreter = pythons.Interpreter("python", (3, 9), ("python",), "static")
    usable = [sampler.name for sampler in target_speed.usable(bench, interpreter, samplers.ALL)]
    assert "pybpf" in usable and "py-spy" not in usable and "austin" not in usable
    missing = dict(bench.missing)
    for name in ("py-spy", "py-spy --nonblocking", "austin"):
        assert missing[name].endswith("failed: there is no network")
    assert "sid" in missing["profiling.sampling"]


def test_a_peer_that_does_not_know_a_python_is_named(monkeypatch):
    for name in ("py_spy", "austin", "profiling_sampling"):
        monkeypatch.setattr(peers, name, lambda: [])
    bench = plan.Bench(plan.SHORT, [])
    interpreter = pythons.Interpreter("newer", (3, 99), ("python",), "static")
    target_speed.usable(bench, interpreter, samplers.ALL)
    assert dict(bench.missing)["py-spy on newer"] == "it knows Python 2.7 to 3.15"
    bench.attempt("what fails", lambda: 1 / 0)
    assert bench.failed == [("what fails", "division by zero")]


def test_a_setting_is_raised_only_where_needed_and_comes_back(tmp_path):
    path = tmp_path / "rate"
    path.write_text("1000\n")
    with machine.setting(str(path), lambda now: now >= 500, 500):
        assert path.read_text() == "1000\n"
        path.write_text("250\n")  # the kernel lowers it
    assert path.read_text() == "1000\n"
    with pytest.raises(KeyboardInterrupt):
        with machine.setting(str(path), lambda now: now >= 9999, 9999):
            assert path.read_text() == "9999\n"
            raise KeyboardInterrupt
    assert path.read_text() == "1000\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--only", "nonsense"], "--only: nonsense: there are kernel, speed, native, tables, own, "),
        (["--rounds", "0"], "--rounds: 0: it takes a whole number from 1 to 1000"),
        (["--rounds", "-5"], "--rounds"),
        (["--python", "python9*"], "--python python9*: there is no such Python on this machine"),
        (["--pybpf", "/nonexistent/pybpf"], "--pybpf /nonexistent/pybpf: there is no such program"),
        (["--json", "/nonexistent/file", "--pybpf", "/bin/true"], "--json /nonexistent/file: "),
        (["more"], "unrecognized arguments: more"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, words):
    command = ["/usr/bin/python3", str(harness.TOP / "tests" / "bench" / "run-bench"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("run-bench: ") and done.stderr.count("\n") == 1
    assert words in done.stderr
