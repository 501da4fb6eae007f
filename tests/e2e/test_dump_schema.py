# SPDX-License-Identifier: Apache-2.0
"""docs/dump.schema.json: what pybpf dump --json prints is as it says, and nothing else is.

harness.pybpf() holds each snapshot that any test has printed against the schema; here are snapshots of all kinds, and the
schema itself.
"""

import copy
import json
import re
import subprocess

import pytest

import dump_schema
import harness
import pythons
from harness import pybpf
from test_dump_core import gcore
from test_dump_greenlets import folder_of

PAGE = harness.TOP / "docs" / "dump.md"
# Only with --locals and --native.
OF_OPTIONS = {"locals", "locals_complete", "native_frames", "native_whole", "native_fits"}
# What only some machines have, and what only a snapshot has that is not complete: test_dead_helpers.py.
NOT_HERE = {"container", "unread"}


def dump(*args):
    run = pybpf("dump", "--json", *args)
    assert run.code == 0 and not run.err, run
    return [json.loads(line) for line in run.out.splitlines()]


def objects(node, path="#"):
    """(path, schema) of each object that the schema describes."""
    if isinstance(node, dict):
        if "properties" in node and "type" in node:
            yield path, node
        for key, value in node.items():
            yield from objects(value, path + "/" + key)


def paths(value, at=""):
    """Where in a snapshot there are values that are not null: keys, with [] for an item of an array."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths(inner, at + "." + key)
    elif isinstance(value, list):
        for inner in value:
            yield from paths(inner, at + "[]")
    if value is not None:
        yield at


def described(node=None, at=""):
    """The same of the schema. A note in place of a frame has no keys of its own."""
    node = node or dump_schema.schema()
    found = {at}
    for one in [node, *node.get("oneOf", ()), node.get("else", {})]:
        if "$ref" in one:
            found |= described(dump_schema.schema()["$defs"][one["$ref"].rpartition("/")[2]], at)
    for key, inner in node.get("properties", {}).items():
        found |= described(inner, at + "." + key)
    if "items" in node:
        found |= described(node["items"], at + "[]")
    return found


def test_the_schema_is_one_and_leaves_nothing_open():
    schema = dump_schema.schema()
    type(dump_schema.validator()).check_schema(schema)
    found = dict(objects(schema))
    assert len(found) == 12
    for path, node in found.items():
        assert node["additionalProperties"] is False, path
        assert set(node["properties"]) - set(node["required"]) <= OF_OPTIONS, path
        for key, inner in node["properties"].items():
            assert {"$ref", "type", "enum", "const", "oneOf"} & set(inner), (path, key)


def test_the_page_tells_of_each_key():
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("## The JSON") : text.index("## Limits")]
    assert len(re.findall(r"\n\n\|", table)) == 1, "the table is in parts"
    told = set(re.findall(r"`(\w+)`", table))
    for path, node in objects(dump_schema.schema()):
        assert set(node["properties"]) <= told, path
    (states,) = [words for words in re.findall(r"\| \.\.\. `state` \|(.*)\|", table) if "GIL" in words]
    assert set(re.findall(r"`(.+?)`", states)) <= set(dump_schema.schema()["$defs"]["thread"]["properties"]["state"]["enum"])


FAMILY = """
import subprocess, sys, time
if len(sys.argv) < 2:
    child = subprocess.Popen([sys.executable, "-c", "import time; print('[]', flush=True); time.sleep(1000)"])
    time.sleep(1000)
"""


@pytest.fixture(scope="module")
def snapshots(tmp_path_factory):
    """{what: a snapshot}"""
    python = harness.default_python()
    found = {}
    with harness.target(python, "values.py") as target:
        for what in "", "--locals", "--native", "--freeze", "--diff-after=0.2", "--native --locals --freeze --async":
            (found[what],) = dump("-p", target.pid, *what.split())
    for item in pythons.of_each_version(pythons.interpreters()):
        if item.version >= (3, 8):
            with harness.target(item, "task_tree.py", "cycle") as target:
                harness.wait_for(lambda: harness.state(target.pid) == "S")
                (found["--async " + item.name],) = dump("-p", target.pid, "--async", "--locals")
    with harness.target(python, "task_tree.py", "blocks") as target:
        (found["blocks"],) = dump("-p", target.pid, "--async")
    with harness.target(python, "spin.py") as target:
        (found["no tasks"],) = dump("-p", target.pid, "--async", "--native")
    with harness.target(python, "joins.py") as target:
        (found["joins"],) = dump("-p", target.pid)
    with harness.target(python, "deadlocks.py") as target:
        (found["deadlocks"],) = dump("-p", target.pid)
        path, _ = gcore(target.pid, str(tmp_path_factory.mktemp("core")))
    for what in "", "--locals", "--native", "--async":
        (found["--core " + what],) = dump("--core", path, *what.split())
    with harness.target(python, "greenlets.py", folder_of(python), "stand") as target:
        (found["greenlets"],) = dump("-p", target.pid)
    with harness.target(python, "besides.py") as target:
        (found["exceptions"],) = dump("-p", target.pid)
    with harness.target(python, "states.py", "gil") as target:
        found["GIL"] = next(
            snapshot
            for snapshot in (dump("-p", target.pid)[0] for _ in range(100))
            if any(thread["gil_holder"] for thread in snapshot["threads"])
        )
    with harness.started([*python.argv, "-c", FAMILY], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        harness.read_ready_line(process)
        (found["parent"], found["--children"]) = dump("-p", process.pid, "--children")
        subprocess.run(["kill", str(found["--children"]["pid"])], check=True)
    return found


def test_snapshots_of_all_kinds(snapshots):
    """Each is as the schema says, and there is nothing in the schema that none of them has."""
    for what, snapshot in snapshots.items():
        assert not dump_schema.findings(snapshot), what
    met = {path for snapshot in snapshots.values() for path in paths(snapshot)}
    # A process that a signal ended is in tests of core files.
    gone = {".core.signal", ".core.signal_name", ".core.signal_tid", ".core.address"}
    missing = {path for path in described() - met - gone if path.rpartition(".")[2] not in NOT_HERE}
    # Tasks and greenlets have no variables.
    assert {path for path in missing if not re.match(r".*(tasks|greenlets)\[\]\.frames\[\]\.locals", path)} == set()


def places(value, at=()):
    """The path of each object and array in a snapshot."""
    if isinstance(value, (dict, list)):
        yield at
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:1]):
            yield from places(inner, (*at, key))


def inside(snapshot, path):
    for key in path:
        snapshot = snapshot[key]
    return snapshot


def test_what_it_does_not_allow(snapshots):
    """A key that is gone, another one, a value of another type, anywhere."""
    tried = 0
    for what in "--native --locals --freeze --async", "--core --locals", "deadlocks", "blocks":
        for path in places(snapshots[what]):
            for key in inside(snapshots[what], path) if isinstance(inside(snapshots[what], path), dict) else ():
                without, other, more = (copy.deepcopy(snapshots[what]) for _ in range(3))
                del inside(without, path)[key]
                inside(other, path)[key] = {"is": "no value"}
                inside(more, path)["unknown"] = None
                for changed in without, other, more:
                    tried += 1
                    assert dump_schema.findings(changed), (what, path, key)
    assert tried > 300


def test_a_test_that_reads_another_snapshot_fails(snapshots):
    good = json.dumps(snapshots[""])
    dump_schema.check(good + "\n" + good + "\n")
    with pytest.raises(AssertionError, match="the snapshot: .*'pid' is a required property"):
        dump_schema.check(good + "\n" + good.replace('"pid"', '"PID"') + "\n")
