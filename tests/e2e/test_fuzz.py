# SPDX-License-Identifier: Apache-2.0
"""What make test does with the inputs that are kept for the fuzz targets: each is tried, and one that fails is told."""

import subprocess

import pytest

import harness

TARGET = "fuzz_container"
KEPT = sorted((harness.TOP / "tests" / "fuzz").glob("*/%s/*" % TARGET))
# In place of a target: writes down the files that it is given, and fails at one of a name.
STAND_IN = """#!/bin/sh
for word; do
	[ -f "$word" ] && echo "$word" >>"$0.given"
	case "$word" in */%s) exit 77 ;; esac
done
exit 0
"""


def replay(folder, fails_at):
    target = folder / TARGET
    target.write_text(STAND_IN % fails_at)
    target.chmod(0o755)
    done = subprocess.run(
        [str(harness.TOP / "tests" / "fuzz" / "run-fuzz"), str(folder), "replay", TARGET],
        capture_output=True,
        text=True,
        timeout=harness.PATIENCE,
    )
    given = (folder / (TARGET + ".given")).read_text().split("\n")[:-1]
    return done, given


def test_every_kept_input_is_given_to_its_target(tmp_path):
    done, given = replay(tmp_path, "nothing")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(given) == [str(path.relative_to(harness.TOP)) for path in KEPT]
    assert {path.split("/")[2] for path in given} == {"seeds", "regressions"}
    assert done.stdout == "%s: %d inputs, nothing found\n" % (TARGET, len(KEPT))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.name)
def test_one_that_fails_fails_the_run(path, tmp_path):
    done, _ = replay(tmp_path, path.name)
    assert done.returncode == 1
    assert done.stderr == "fuzz: 1 of 1 targets failed: %s\n" % TARGET
    assert "nothing found" not in done.stdout
