# SPDX-License-Identifier: Apache-2.0
"""make test: what a change must pass. make check: what one may run after each."""
import concurrent.futures
import os

import core
import tiers
from runner import programs, pytests, stages
from runner.commands import TOP, headline, say

KERNEL = ["--modes", "cpu,cpu-by-tail-calls,threads,kernel", "5.10"]  # the oldest that pybpf runs on; the others: make kernels
# With Python 3.13 and some with 3.11; the others: make test-all.
ARM64 = ["--modes", "cpu,threads,ps,dump,cpu-Python-3-11,ps-Python-3-11,dump-Python-3-11", "6.12"]
PYTHONS = ["stripped", "sid", "python3.13t", "python3.13-musl", "arm64-bookworm", "arm64-trixie"]
SMOKE = "test_stacks and calls and (3.8 or 3.12 or 13t)"


def journal(build, name):
    path = os.path.join(TOP, build, name)
    if os.path.exists(path):
        os.unlink(path)
    return path


def test(build, count):
    if not stages.build_all(count):
        return
    with stages.checks_beside(build, count):
        if not stages.may_be_root(count):
            return
        stages.pythons(count, *PYTHONS)
        headline("tests of the kernel side and from end to end")
        plain = pytests.Suite(build, journal(build, "tests.jsonl"), "gate")
        bad = plain.beside_others(pytests.files("tests/kernel", "tests/e2e"), count)
        arm64 = stages.build_arm64(build, count)
        headline("the core of the end-to-end tests, under ASan and UBSan, beside emulated kernels")
        sanitized = pytests.Suite(build, journal(build, "tests-san.jsonl"), "gate", binary="pybpf-san")
        with concurrent.futures.ThreadPoolExecutor(2) as beside:
            emulated = beside.submit(stages.kernels, build, *KERNEL)
            emulated_arm64 = beside.submit(stages.arm64_kernels, build, *ARM64) if arm64 else None
            bad_sanitized = sanitized.beside_others(core.names(short=True), count)
            for told in filter(None, [emulated, emulated_arm64]):
                stages.tell_kernels(told.result(), count)
    headline("tests that need the machine for themselves")
    bad += plain.alone(pytests.files_of_timed(), count)
    plain.second_try(bad, count)
    sanitized.second_try(bad_sanitized, count)


def some(build, count, expression, wanted):
    """Those tests of the kernel side and from end to end that the expression of pytest's -k and the Pythons choose."""
    try:
        tiers.chosen(wanted)
    except ValueError as wrong:
        say("PY: %s" % wrong)
        count.fail("PY=%s" % wanted)
        return
    if not stages.build_all(count) or not stages.may_be_root(count):
        return
    suite = pytests.Suite(build, journal(build, "tests-some.jsonl"), "all", pythons=wanted, expression=expression)
    bad = suite.beside_others(["tests/kernel", "tests/e2e"], count)
    bad += suite.alone(["tests/kernel", "tests/e2e"], count)
    for row in bad:
        count.fail(suite.name(row))


def check(build, count):
    if not stages.build_all(count):
        return
    stages.lint(count, quick=True)
    programs.unit(build, count, changed=True)
    if stages.may_be_root(count):
        headline("three Pythons")
        suite = pytests.Suite(build, journal(build, "tests-check.jsonl"), "all", expression=SMOKE)
        for row in suite.beside_others(["tests/e2e/test_stacks.py"], count):
            count.fail(suite.name(row))
