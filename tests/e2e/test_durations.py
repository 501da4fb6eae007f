# SPDX-License-Identifier: Apache-2.0
"""tools/check-durations finds the tests that it is for, and lets those pass that a slow machine does not fail."""
import subprocess
import textwrap

import pytest

import harness

FOUND = """
assert time.monotonic() - begin < 5
assert run.code == 0 and 20 > time.monotonic() - begin, "late"
took = time.monotonic() - begin; assert took < 150 * 0.15
result, took = 1, time.perf_counter() - begin; assert 1 < took <= LIMIT_S
assert abs(stacks[0][1] / US - run.stats["duration_s"]) < 0.005
seconds = run.stats["duration_s"]; assert abs(total - seconds) < 0.01
assert run.stats["duration_s"] < 80
""".strip().splitlines()
PASSED = """
assert time.monotonic() - begin < harness.PATIENCE
took = time.monotonic() - begin; assert run.stats["stood_still_s"] < took
assert time.monotonic() - begin > 0.5
assert abs(threads - run.account["duration_s"]) < 0.1 * run.account["duration_s"]
assert samples < 5 and abs(share - 0.5) < 0.1
""".strip().splitlines()


def check(path, line):
    path.write_text("def test_it():\n%s\n" % textwrap.indent(line.replace("; ", "\n"), "    "), encoding="utf-8")
    command = [harness.TOP / "tools" / "check-durations", path]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("line", FOUND)
def test_found(line, tmp_path):
    done = check(tmp_path / "test_it.py", line)
    assert done.returncode == 1 and "test_it.py:%d: test_it::test_it: " % (2 + line.count("; ")) in done.stdout, done


@pytest.mark.parametrize("line", PASSED)
def test_passed(line, tmp_path):
    done = check(tmp_path / "test_it.py", line)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_one_that_is_timed(tmp_path):
    """It runs when no other test does."""
    path = tmp_path / "test_growth.py"
    assert check(path, FOUND[0]).returncode == 0
