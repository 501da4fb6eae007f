# SPDX-License-Identifier: Apache-2.0
"""Firefox Profiler's own import: times of threads, functions, and lines."""

from collections import Counter

import pytest

from firefox import firefox


def functions_of(session, handle):
    """A thread's functions: [(name, own samples, samples, the function's handle)]."""
    told = session.ask("thread", "functions", "--thread", handle, "--limit", 0)["functions"]
    return [(each["name"], each["selfSamples"], each["totalSamples"], each["functionHandle"]) for each in told]


@pytest.fixture(scope="module")
def gecko(known, tmp_path_factory):
    with firefox(known.path(".gecko.json"), tmp_path_factory.mktemp("gecko")) as session:
        yield session


def test_threads(known, gecko):
    """The CPU time of each, and the functions of each with their samples: two of one name are two."""
    threads = gecko.ask("thread", "list", "--limit", 0)["threads"]
    assert {thread["tid"]: thread["name"] for thread in threads} == known.names
    for thread in threads:
        tid = thread["tid"]
        assert thread["cpuMs"] == pytest.approx(known.samples(tid) * known.period_ns / 1e6, rel=1e-6)
        shown = Counter(each[:3] for each in functions_of(gecko, thread["threadHandle"]))
        wanted = Counter((name, *both) for (name, _), both in known.totals(tid).functions().items() if both[1] >= 50)
        assert wanted <= shown


def test_lines(known, gecko):
    """The lines of a source file, as they stand beside its text: of all its functions."""
    threads = gecko.ask("thread", "list", "--limit", 0)["threads"]
    (thread,) = [thread["threadHandle"] for thread in threads if thread["name"] == "heavy worker"]
    gecko.ask("thread", "select", thread)
    (handle,) = [each[3] for each in functions_of(gecko, thread) if each[0] == "plain"]
    told = gecko.ask("function", "annotate", handle)["srcAnnotation"]
    lines, sums = Counter(), known.totals(known.tid("heavy worker"))
    for (_, path, line), count in sums.line_self.items():
        lines[path, line] += count
    for line in told["lines"]:
        assert line["selfSamples"] == lines[told["filename"], line["lineNumber"]]
    assert sum(line["selfSamples"] > 200 for line in told["lines"]) == 2
