# SPDX-License-Identifier: Apache-2.0
"""make install and make uninstall: below a folder of one's own, and nothing is left there."""

import os
import re
import subprocess
import tempfile
from pathlib import Path

import pytest

import harness
from harness import PYBPF, TOP


STRANGER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all"]


def make(target, home, *options, by=()):
    """With what is built: nothing is made again."""
    build = Path(PYBPF).resolve().parent
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "BUILD")}
    done = subprocess.run(
        [*by, "make", "-s", "-o", PYBPF, "BUILD=%s" % build, target, *options], cwd=TOP, env={**environment, "HOME": str(home)},
        capture_output=True, text=True, timeout=harness.PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


@pytest.fixture
def without_root():
    """(A home, what has a command run by the one whose it is.)"""
    with tempfile.TemporaryDirectory() as home:
        by = []
        if os.geteuid() == 0:
            by = STRANGER
            os.chown(home, 65534, 65534)
            if subprocess.run([*by, "test", "-r", TOP / "Makefile", "-a", "-r", PYBPF]).returncode:
                pytest.skip("others than root may not read this tree")
        yield Path(home), by


def test_below_home(without_root):
    tmp_path, by = without_root
    make("install", tmp_path, "PREFIX=~/.local", by=by)
    program = tmp_path / ".local/bin/pybpf"
    assert subprocess.run([program, "version"], capture_output=True, text=True).stdout == harness.pybpf("version").out
    found = files(tmp_path)
    assert "pybpf.1" in {os.path.basename(name) for name in found}
    assert {(tmp_path / name).stat().st_mode & 0o777 for name in found} == {0o755, 0o644}
    told = subprocess.run([program, "doctor"], capture_output=True, text=True).stdout
    assert re.search(r"sudo %s\b" % re.escape(str(program)), told), "sudo would not find it: " + told
    unit = (tmp_path / ".local/lib/systemd/system/pybpf-agent.service").read_text()
    assert "\nExecStart=%s agent " % program in unit
    other = tmp_path / ".local/bin/other"
    other.write_text("not pybpf's")
    make("uninstall", tmp_path, "PREFIX=~/.local", by=by)
    assert files(tmp_path) == {".local/bin/other"}


def test_below_destdir(tmp_path):
    """As packages are made."""
    make("install", tmp_path, "PREFIX=/usr", "DESTDIR=%s" % (tmp_path / "a folder"))
    assert {"a folder/usr/bin/pybpf", "a folder/usr/lib/systemd/system/pybpf-agent.service"} <= files(tmp_path)
    make("uninstall", tmp_path, "PREFIX=/usr", "DESTDIR=%s" % (tmp_path / "a folder"))
    assert files(tmp_path) == set()
