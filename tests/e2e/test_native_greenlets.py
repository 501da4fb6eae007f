# SPDX-License-Identifier: Apache-2.0
"""--native of greenlets: each stack ends where its greenlet begins, whatever lies below that."""

import subprocess
import sys

import pytest

import harness
import pythons

sys.path.append(str(harness.TOP / "tests" / "judge"))

import wheels  # noqa: E402

pytestmark = pytest.mark.usefixtures("profiler")

RATE = 499
ENOUGH = 400
INCOMPLETE = "[native frames incomplete]"
# Greenlets that are switched to from other depths than that at which they began, and by way of C.
PROGRAM = """
import sys
sys.path.append(sys.argv[1])
import greenlet, json
def encode():
    return json.dumps([1, 2, 3] * 300)
def leaf():
    for _ in range(50): encode()
    greenlet.getcurrent().parent.switch()
def green():
    while True: leaf()
def deeper(each, n):
    if n: return deeper(each, n - 1)
    each.switch()
def main():
    greens = [greenlet.greenlet(green) for _ in range(3)]
    n = 0
    while True:
        for each in greens:
            n += 1
            sorted([1], key=lambda _: deeper(each, n % 7))
sys.stdout.write("{}\\n")
sys.stdout.flush()
main()
"""
ITEMS = [item for item in (pythons.one(version=version) for version in ((2, 7), (3, 8), (3, 12), (3, 14))) if item]


def started(item):
    folder, why = wheels.find(item, "greenlet")
    if not folder:
        pytest.skip(why)
    return harness.started([*item.argv, "-c", PROGRAM, folder], stdout=subprocess.PIPE, bufsize=0)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.name)
def test_stacks_are_whole(item):
    with started(item) as process:
        harness.read_ready_line(process)
        run = harness.record_busy(process.pid, "--native", fewest=ENOUGH, seconds=2, rate=RATE)
    whole = in_c = total = 0
    for stack, count in run.stacks():
        names = [frame.name or frame.text for frame in stack]
        if "encode" not in names:
            continue
        total += count
        if INCOMPLETE not in names:
            whole += count
            assert names[:3] == ["green", "leaf", "encode"], harness.show(stack)
            in_c += count * (names[-1] != "encode")
    assert whole > 0.9 * total > 0.5 * ENOUGH, (whole, total, run.stats["native"])
    assert in_c > 0.5 * total, (in_c, total)


def test_a_dump_has_them():
    item = harness.default_python()
    with started(item) as process:
        harness.read_ready_line(process)
        whole = sum("Native stack, which does not fit" not in harness.pybpf("dump", "-p", process.pid, "--native").out for _ in range(10))
    assert whole >= 8, whole
