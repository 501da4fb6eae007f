# SPDX-License-Identifier: Apache-2.0
"""pybpf dump: for the end of which thread another one waits."""

import json

import pytest

import harness
import pythons
from harness import pybpf

every_python = pytest.mark.parametrize("python", pythons.interpreters(), ids=lambda item: item.name)


@every_python
def test_who_waits_for_the_end_of_whom(python):
    with harness.target(python, "joins.py") as target:
        says = target.says["joins"]

        def wait_in_locks():
            run = pybpf("dump", "-p", target.pid, "--json")
            assert run.code == 0 and not run.err, run
            threads = json.loads(run.out)["threads"]
            return threads if sum(thread["state"] == "lock" for thread in threads) == 4 else None

        threads = harness.wait_for(wait_in_locks)
        text = pybpf("dump", "-p", target.pid).out
    names = {thread["tid"]: thread["name"] for thread in threads}
    assert {thread["name"]: names.get(thread["joins"]) for thread in threads if thread["name"] in says} == says
    tids = {name: tid for tid, name in names.items()}
    line = 'Thread %d "joins": [lock], until thread %d "lasts" ends, daemon' % (tids["joins"], tids["lasts"])
    assert line in text.splitlines(), text
    assert text.count(" ends,") == 2
