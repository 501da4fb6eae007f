# SPDX-License-Identifier: Apache-2.0
"""Holds the JSON of pybpf dump against docs/dump.schema.json."""

import functools
import json
from pathlib import Path

SCHEMA = Path(__file__).resolve().parent.parent.parent / "docs" / "dump.schema.json"


@functools.lru_cache(maxsize=None)
def schema():
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


@functools.lru_cache(maxsize=None)
def validator():
    import jsonschema  # what runs without pytest (benches, soak) has no need of it

    return jsonschema.Draft202012Validator(schema())


def findings(snapshot):
    """What the schema does not allow in it: a sentence each, with the place."""
    return [
        "%s: %s" % ("/".join(map(str, error.absolute_path)) or "the snapshot", error.message[:400])
        for error in validator().iter_errors(snapshot)
    ]


def check(text):
    """Checks each line that pybpf dump --json printed."""
    for line in text.splitlines():
        found = findings(json.loads(line))
        assert not found, "docs/dump.schema.json does not allow it: " + "; ".join(found[:5])
