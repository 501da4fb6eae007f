# SPDX-License-Identifier: Apache-2.0
"""Tables fit the terminal: no row wraps, what is long is shortened, and what fits is whole."""

import re
import unicodedata

import pytest

import formats
import harness
from harness import one_sentence, pybpf
from terminal import Terminal

pytestmark = pytest.mark.usefixtures("profiler")

LONG, WIDE = "begin" + "x" * 4000 + "end", "\u540d\u524d" * 30  # 60 characters, 120 columns
SHORT = "Order.total"
# A function that spins under each name, 3.11 and later; code objects keep the qualified name.
PROGRAM = """
import sys, time
def spin(until):
    while time.process_time() < until:
        pass
begin = time.process_time()
for turn, name in enumerate(sys.argv[1:]):
    spin.__code__ = spin.__code__.replace(co_name="f", co_qualname=name)
    spin(begin + (turn + 1) * 0.3)
"""
WAITS = """
import os, subprocess
def answers_a_request_of_a_client():
    pid = os.fork()
    if not pid:
        os.execv("/bin/sleep", ["sleep", "0.05"])
    os.waitpid(pid, 0)
    subprocess.run(["sleep", "0.01"], stdout=subprocess.PIPE)
for _ in range(30):
    answers_a_request_of_a_client()
"""
WIDTHS = (40, 57, 80, 81, 120, 200)


def columns(text):
    """What a terminal needs, by Python's copy of Unicode's table."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("a folder whose name is long enough to push a number out of the terminal")
    (folder / "app.py").write_text(PROGRAM, encoding="utf-8")
    path = folder / "names.pybpf"
    command = [*harness.default_python().argv, folder / "app.py", LONG, WIDE, SHORT]
    run = pybpf("-F", 999, "--full-filenames", "-o", path, "--", *command)
    assert run.code == 0, run.err
    return path


def show(width, *args):
    shown = Terminal("report", *args, columns=width, PAGER="cat")
    assert shown.code == 0, shown.err
    return shown.lines()


def rows_of(lines):
    return [line for line in lines if re.match(r" *[\d.]+%? .*%  ", line)]


@pytest.mark.parametrize("more", [[], ["--by=line"]], ids=["function", "line"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_wraps(saved, width, more):
    rows = show(width, saved, *more)
    assert [row for row in rows if columns(row) > width] == []
    table = rows_of(rows)
    assert len(table) == len(rows_of(pybpf("report", saved, *more).out.splitlines())) > 3
    # Each of the functions is there, with a part of its name that tells it.
    if not more:
        assert any(re.search(r"  beg.*nd( \(|$)", row) for row in table), table
        assert any(re.search("\u540d.*\\.\\.\\..*\u524d?( |$)", row) for row in table), table
        assert any("Ord" in row and "tal (" in row for row in table), table
        # What is wide is used: a row that was shortened ends near the edge.
        assert max(map(columns, table)) >= width - 1


@pytest.fixture(scope="module")
def waited(tmp_path_factory):
    """A program that starts children, and whose function with a long name waits for them in a library's."""
    folder = tmp_path_factory.mktemp("waits")
    (folder / "app.py").write_text(WAITS, encoding="utf-8")
    run = pybpf("-F", 999, "--mode=wall", "-o", folder / "waits.pybpf", "--", *harness.default_python().argv, folder / "app.py")
    assert run.code == 0, run.err
    return folder / "waits.pybpf"


@pytest.mark.parametrize("more", [[], ["--by=state"], ["--by=line"], ["--process-tree"]], ids=["waits", "state", "line", "tree"])
@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_waits(waited, width, more):
    rows = show(width, waited, *more)
    assert [row for row in rows if columns(row) > width] == []
    if more == ["--by=line"] or width < 80:
        return
    own = [row for row in rows if "answers_a_request_of_a_client" in row]
    assert own, rows
    assert len(own) == len(set(re.sub(r"^.*?%  ", "", row) for row in own)), own
    if more == ["--by=state"]:
        return
    (head,) = [row for row in rows if re.search(r"share .*  wait", row)]
    # What a narrow terminal has no room for is named.
    assert [title in head for title in ("waits", "mean", "time", "longest")] == [True] * 4 and ("a wider terminal shows" in head) == (width < 100)
    # Beside a load a child may have ended before it is waited for.
    many = [re.search(r"%  +(\d+) +.*  \[child: (\d+) processes\] in answers_a_request_of_a_client", row) for row in own]
    assert max((int(found.group(2)) for found in many if found and int(found.group(1)) >= int(found.group(2))), default=0) >= 10, own


def test_wide_terminals_have_it_whole(saved):
    whole = pybpf("report", saved).out.splitlines()
    assert show(6000, saved) == whole


def test_files_and_pipes_have_it_whole(saved, tmp_path):
    """What programs read is not shortened."""
    piped = pybpf("report", saved).out
    assert LONG in piped and WIDE in piped and str(saved.parent) in piped
    path = tmp_path / "table.txt"
    shown = Terminal("report", saved, "-o", path, columns=80, PAGER="cat")
    assert shown.code == 0 and path.read_text(encoding="utf-8") == piped


def test_a_terminal_that_tells_no_width_is_taken_for_80(saved):
    assert show(0, saved) == show(80, saved)


@pytest.mark.parametrize("width", (40, 80, 132))
def test_made_to_harm(width, tmp_path):
    """Processes and containers with such names, too: their table comes first."""
    made = formats.made(tmp_path)
    for path in sorted(made.glob("*.pybpf")):
        rows = show(width, path, "--by=container")
        assert rows and [row for row in rows if columns(row) > width] == [], path


@pytest.mark.parametrize("width", (60, 80, 132))
def test_threads_of_long_functions(width, tmp_path):
    rows = show(width, formats.made(tmp_path) / "long.pybpf", "--threads")
    assert [row for row in rows if "hottest function" in row] and max(map(columns, rows)) <= width, rows


def test_while_recording(width=80):
    command = [*harness.default_python().argv, "-c", PROGRAM, LONG, SHORT]
    shown = Terminal("-F", 499, "-f", "text", "--", *command, columns=width)
    assert shown.code == 0, shown.err
    rows = shown.lines()
    assert any("  begin" in row for row in rows) and [row for row in rows if columns(row) > width] == []


def test_limit(saved):
    """--limit N: as many rows, the first ones, and how many more there are."""
    head = "self   self%     total  total%"
    whole = pybpf("report", "--limit=100", saved).out
    rows = whole.partition("function\n")[2].splitlines()
    assert len(rows) >= 4 and "more" not in whole and head in whole
    count = (rows + [""]).index("")  # notes follow
    some = pybpf("report", "--limit=2", saved).out.partition("function\n")[2].splitlines()
    assert some == rows[:2] + ["and %d functions more (--limit)" % (count - 2)] + rows[count:]
    lines = pybpf("report", "--limit=1", "--by=line", saved).out.partition("  line\n")[2].splitlines()
    assert lines[1].endswith("lines more (--limit)")
    command = [*harness.default_python().argv, "-c", PROGRAM, "one", "two", "three"]
    recorded = pybpf("-F", 499, "-f", "text", "--limit=2", "--", *command)
    assert recorded.code == 0 and recorded.out.partition("function\n")[2].splitlines()[2].endswith("more (--limit)")


@pytest.mark.parametrize("options", [["--limit=0"], ["--limit=-1"], ["--limit=x"], ["--limit=1.5"], ["--limit"]])
def test_limit_takes_a_number(saved, options):
    run = pybpf("report", saved, *options)
    assert run.code == 2 and "--limit" in one_sentence(run.err), run.err


def test_limit_is_for_tables(saved, tmp_path):
    run = pybpf("report", saved, "--limit=3", "-o", tmp_path / "x.html")
    assert run.code == 2 and "--limit" in one_sentence(run.err) and not (tmp_path / "x.html").exists()
