# SPDX-License-Identifier: Apache-2.0
"""pybpf dump --locals: which values are one object, and each of them only once."""

import json
import re

import pytest

import harness
import pythons
from harness import pybpf

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)


def functions(text):
    """{function: {variable: text}}"""
    found = {}
    for line in text.splitlines():
        frame = re.match(r'  File ".+", line \d+, in (?:Account\.)?(.+)', line)
        if frame:
            variables = found.setdefault(frame.group(1), {})
        elif line.startswith("      "):
            name, value = line.strip().split(" = ", 1)
            variables[name] = value
    return found


@pytest.fixture(scope="module")
def read():
    """{python: (what dump prints, with --reverse, its JSON, what the program says)}"""
    kept = {}

    def dumped(python):
        if python.name not in kept:
            with harness.target(python, "identities.py") as target:
                harness.wait_for(lambda: harness.state(target.pid) == "S")
                texts = [
                    pybpf("dump", "-p", target.pid, "--locals", "--no-source", *args).out
                    for args in ([], ["--reverse"], ["--json"])
                ]
                kept[python.name] = (functions(texts[0]), functions(texts[1]), json.loads(texts[2]), target.says["ids"])
        return kept[python.name]

    return dumped


@every_python
def test_objects_that_look_alike_have_addresses(python, read):
    found, _, _, ids = read(python)
    at = {name: "at %#x" % address for name, address in ids.items()}
    for name in "self", "other":
        assert found["outer"][name].startswith("<Account %s " % at[name])
    rows = re.findall(r"<Account (at 0x\w+) ", found["middle"]["rows"])
    assert rows == [at["self"], at["other"]]
    assert found["middle"]["method"].endswith("middle of Account object %s>" % at["self"])
    for name, of in ("one", "lock"), ("two", "second"):
        assert found["inner"][name].endswith("lock object %s>" % at[of])
    assert found["inner"]["alone"] == "<Alone object>"


@every_python
def test_a_value_is_told_once(python, read):
    down, up, _, ids = read(python)
    for found, first, others in (down, "outer", ("middle", "inner")), (up, "inner", ("middle", "outer")):
        assert "balance=1" in found[first]["self"]
        for other in others:
            assert found[other]["self"] == "<Account at %#x>, as above" % ids["self"]
    assert down["middle"]["settings"] == "{...}, as config above" and down["middle"]["rows"].startswith("[<Account at ")
    assert down["middle"]["again"] == "<Account at %#x>, as self above" % ids["self"]
    # The last `config` above is another one.
    assert down["inner"]["settings"] == down["outer"]["config"]
    assert down["inner"]["config"] == "{...}, as above"
    assert down["inner"]["rows"] == "[...], as above" and down["inner"]["method"] == down["middle"]["method"]
    assert down["inner"]["text"] == down["inner"]["same"] == "'a text that is long enough to be told briefly'"


@every_python
def test_the_json_has_all(python, read):
    _, _, snapshot, ids = read(python)
    (thread,) = snapshot["threads"]
    frames = {frame["function"].rsplit(".", 1)[-1]: frame for frame in thread["frames"]}
    variables = {name: {v["name"]: v for v in frame["locals"]} for name, frame in frames.items()}
    for name in "outer", "middle", "inner":
        assert variables[name]["self"] == {
            "name": "self",
            "kind": "argument",
            "value": variables["outer"]["self"]["value"],
            "id": ids["self"],
        }
    assert "balance=1" in variables["outer"]["self"]["value"] and " at 0x" not in json.dumps(snapshot)
    assert variables["inner"]["settings"]["value"] == variables["outer"]["config"]["value"]
    assert variables["inner"]["settings"]["id"] == ids["config"]
