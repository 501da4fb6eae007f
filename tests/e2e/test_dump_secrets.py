# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --locals shows no secret of a corpus, of any kind of variable, and hides little that only looks like one."""

import json

import pytest

import harness
import pythons
from test_dump_locals import dump, values

CORPUS = harness.TOP / "tests/data/secrets.jsonl"
ROWS = [json.loads(line) for line in CORPUS.read_text().splitlines()]
# Most harmless ones that may be hidden.
HIDDEN_MAX = 3

VERSIONS = [python for python in pythons.of_each_version(pythons.interpreters()) if python.version in ((2, 7), (3, 8), (3, 12), (3, 13))]
some_pythons = pytest.mark.parametrize("python", VERSIONS, ids=lambda item: item.name)


def test_the_corpus_is_large():
    names = {kind: [row for row in ROWS if row[0] == kind] for kind in ("secret", "harmless")}
    assert all(len(rows) >= 300 for rows in names.values())
    assert len({json.dumps(row) for row in ROWS}) == len(ROWS)
    # What must not be shown is in the value: else its absence would say nothing.
    assert all(json.dumps(row[3]).strip('"') in json.dumps(row[2]) for row in names["secret"])


@some_pythons
@pytest.mark.parametrize("kind", ["variable", "key", "attribute", "pair"])
def test_no_secret_is_shown(python, kind):
    with harness.target(python, "secret_corpus.py", str(CORPUS), kind) as target:
        harness.wait_for(lambda: "stand" in values(dump(target.pid, "--locals")))
        found = values(dump(target.pid, "--locals", "--locals"))
        shown = values(dump(target.pid, "--locals", "--locals", "--show-secrets"))
        places = target.says["places"]
    missing, told, hidden = [], [], []
    for row, (function, name) in zip(ROWS, places):
        value = found[function][name]
        # Strings of repr(): a backslash in one is two.
        needle = str(row[3]).replace("\\", "\\\\") if row[0] == "secret" else None
        if needle and needle not in shown[function][name]:
            missing.append((row, shown[function][name]))
        if needle and needle in value:
            told.append((row, value))
        if not needle and "<hidden>" in value:
            hidden.append((row, value))
    assert not missing
    assert not told
    assert len(hidden) <= HIDDEN_MAX, hidden


# In these the secret is the whole value.
WHOLE = """by_tuple by_nested by_nul by_nuls by_high by_list by_set by_class by_object by_str ordered unreadable member member_value""".split()


@some_pythons
@pytest.mark.parametrize("times", [1, 3])
def test_forms_that_no_text_has(python, times):
    with harness.target(python, "secret_corpus.py", str(CORPUS), "forms") as target:
        harness.wait_for(lambda: "stand" in values(dump(target.pid, "--locals")))
        found = values(dump(target.pid, *["--locals"] * times))["forms"]
        shown = values(dump(target.pid, *["--locals"] * times, "--show-secrets"))["forms"]
    told = {name: value for name, value in found.items() if "hunter2" in value or "4711471147" in value}
    assert not told
    hides = {name for name, value in found.items() if "<hidden>" in value}
    # What is nested too deep is not shown at all.
    assert {name for name in found if not name.startswith("shown_")} - hides == ({"deep"} if times == 1 else set())
    assert not [name for name, value in shown.items() if "<hidden>" in value]
    for name in WHOLE:
        if name in found:
            assert ": <hidden>" in found[name], (name, found[name])
    assert "1: 'shown'" in found["unreadable"] and found["pair"].endswith("<hidden>]")
    for name, value in found.items():
        if name.startswith("shown_"):
            assert value.count("shown") == shown[name].count("shown") > 0 and value.count("<hidden>") == (name == "shown_login"), value
