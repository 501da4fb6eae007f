# SPDX-License-Identifier: Apache-2.0
"""What imports cost: --by=import, and importlib's functions folded."""

import re

import pytest

import harness
import pythons
from harness import pybpf

pytestmark = pytest.mark.usefixtures("profiler")
VERSIONS = [
    item
    for item in pythons.interpreters()
    if item.kind in ("shared", "static") and item.root is None and item.version in ((2, 7), (3, 6), (3, 11), (3, 13))
]
BURN = "import os\nend = sum(os.times()[:2]) + %s\nwhile sum(os.times()[:2]) < end:\n    sum(range(1000))\n"
ROW = re.compile(r" *(\d+) +([\d.]+)% +(\d+)  ( *)(\S.*)")


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda item: item.name)
def kept(request, profiler, tmp_path_factory):
    """The profile of a program whose imports take long, in modules and in functions of them."""
    folder = tmp_path_factory.mktemp("imports")
    package = folder / "slow"
    package.mkdir()
    (package / "__init__.py").write_text("from slow import inner\n" + BURN % 0.3)
    (package / "inner.py").write_text("def table():\n" + "".join("    %s\n" % line for line in (BURN % 0.3).splitlines()) + "table()\n")
    (folder / "lazy.py").write_text(BURN % 0.3)
    (folder / "app.py").write_text("import slow\ndef handle():\n    import lazy\nhandle()\n" + BURN % 0.3)
    path = folder / "p.pybpf"
    run = pybpf("-q", "-F", "999", "-o", path, "--", *request.param.argv, folder / "app.py")
    assert run.code == 0, run.err
    return path


def all_rows(text):
    """[(module, (level, total, self))]"""
    found = filter(None, map(ROW.fullmatch, text.splitlines()))
    return [(row.group(5), (len(row.group(4)) // 2, int(row.group(1)), int(row.group(3)))) for row in found]


def rows(text):
    return dict(all_rows(text))


def test_each_module_below_the_one_that_imported_it(kept):
    run = pybpf("report", "-q", kept, "--by=import", "--limit", 100)
    assert run.code == 0, run.err
    found = rows(run.out)
    level, total, own = found["slow/__init__.py"]
    inner_level, inner_total, inner_own = found["slow/inner.py"]
    assert (level, inner_level) == (0, 1) and total >= own + inner_total
    assert own > 20 and inner_own > 20 and found["lazy.py"][0] == 0 and found["lazy.py"][2] > 20
    assert "app.py" not in found, "the program itself is not imported"
    head = re.match(r"imports: (\d+) of (\d+) samples, ", run.out)
    top = sum(total for _, (level, total, _) in all_rows(run.out) if level == 0)
    assert int(head.group(1)) == top or "more (--limit)" in run.out
    assert int(head.group(1)) < int(head.group(2))


def importlib(text):
    return set(re.findall(r"(\w+) \(<frozen importlib\._bootstrap(?:_external)?>\)", text))


def test_importlib_is_one_function_unless_it_is_asked_for(kept):
    whole = importlib(pybpf("report", "-q", kept, "-f", "folded").out.replace(">:", ">):"))
    usual = importlib(pybpf("report", "-q", kept, "--limit", 1000).out)
    asked = importlib(pybpf("report", "-q", kept, "--limit", 1000, "--importlib").out)
    if not asked:
        pytest.skip("the import system of this Python has no functions of Python")
    assert "_load_unlocked" in asked and len(whole) > 2
    assert "_find_and_load" in usual and "_load_unlocked" not in usual


def test_a_run_prints_it_at_once(tmp_path):
    (tmp_path / "m.py").write_text(BURN % 0.3)
    (tmp_path / "app.py").write_text("import m\n")
    run = pybpf("-q", "-F", "999", "-f", "text", "--by=import", "--", harness.default_python().argv[0], tmp_path / "app.py")
    assert run.code == 0 and rows(run.out)["m.py"][2] > 20, run.err


@pytest.mark.parametrize("words", [["-f", "svg"], ["--by=line"], ["--sort=total"]])
def test_what_it_contradicts(kept, words):
    run = pybpf("report", kept, "--by=import", *words)
    assert run.code == 2 and "--by=import" in harness.one_sentence(run.err)
