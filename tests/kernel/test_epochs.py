# SPDX-License-Identifier: Apache-2.0
"""A run in parts, as one without end takes them: what was counted is in exactly one, and what is forgotten is gone."""
import json
import os
import subprocess

import harness
import pytest
from inline import Source, running, two
from test_counting import TREE

EPOCHS = os.path.join(os.path.dirname(harness.PYBPF), "epochs")
PERIOD_MS = 100
ROOM = 32768

# A function of its own for nearly every sample.
NEW_FUNCTIONS = Source("""
def main():
    n = 0
    while True:
        n += 1
        names = {}
        exec("def made_%d():\\n    sum(range(3000))\\n    return %d" % (n, n), names)
        for _ in range(4):
            names["made_%d" % n]()
ready()
main()
""")


def take_parts(pid, seconds, rate, forget_every, room, features=""):
    argv = [EPOCHS, pid, seconds, rate, PERIOD_MS, forget_every, room] + [features] * bool(features)
    done = subprocess.run([str(arg) for arg in argv], capture_output=True, text=True, timeout=harness.PATIENCE)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.split("\n")
    assert lines[0] == "ready"
    end = next(n for n, line in enumerate(lines) if line == "{")
    return [json.loads(line) for line in lines[1:end]], json.loads("\n".join(lines[end:]))


def check_sums(parts, stats):
    samples = stats["samples"]
    assert samples["asked"] == samples["taken"] + samples["lost"], stats
    assert sum(part["samples"] for part in parts) == samples["python"], stats
    assert sum(part["events"] for part in parts) == samples["python"] - stats["incomplete"]["untimed"], stats


@pytest.mark.parametrize("forget_every", [0, 3])
@pytest.mark.parametrize("features", ["", "bpf_loop"])
@pytest.mark.parametrize("interpreter", two(), ids=lambda item: item.name)
def test_every_sample_is_in_one_part(interpreter, features, forget_every):
    """Thousands of stacks at 5 kHz, beside a process that keeps the CPUs busy."""
    with running(interpreter, TREE) as target, running(interpreter, TREE):
        parts, stats = take_parts(target.pid, 3, 4999, forget_every, ROOM, features)
    check_sums(parts, stats)
    assert stats["samples"]["python"] > 200, stats
    assert stats["samples"]["lost"] == 0, stats
    assert len(parts) > 10
    assert sum(1 for part in parts if part["samples"]) > len(parts) / 2, parts


def test_what_is_forgotten_makes_room():
    """Without end the tables would be full: they are not, and user space's are as large at the end as in between."""
    room = 500
    with running(two()[-1], NEW_FUNCTIONS) as target:
        kept, full = take_parts(target.pid, 4, 1999, 0, room)
        parts, stats = take_parts(target.pid, 4, 1999, 1, room)
    check_sums(kept, full)
    check_sums(parts, stats)
    # What this shows takes more stacks and code objects than there is room for.
    assert full["samples"]["lost"] and full["code_objects"]["seen"] + stats["code_objects"]["seen"] > room, (full, stats)
    # A part takes longer where the machine is busy.
    lost = [said["samples"]["lost"] / said["samples"]["asked"] for said in (stats, full)]
    assert lost[0] < max(0.05, lost[1] / 2), lost
    middle = len(parts) // 2
    early, late = (max(part["bytes"] for part in half) for half in (parts[:middle], parts[middle:]))
    assert late < 2 * early, parts
