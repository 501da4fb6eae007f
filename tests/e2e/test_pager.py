# SPDX-License-Identifier: Apache-2.0
"""A report on a terminal is shown by a pager, which runs as the caller and not as root."""

import contextlib
import os
import pwd
import re
import tempfile
from pathlib import Path

import pytest

import harness
from harness import pybpf
from terminal import Terminal
from test_report import report, save

pytestmark = pytest.mark.usefixtures("profiler")


@pytest.fixture(scope="module")
def spin(profiler, tmp_path_factory):
    return save(tmp_path_factory.mktemp("saved"), "spin", "spin.py", "--no-timestamps")


def test_pager(spin, tmp_path):
    taken = tmp_path / "taken"
    take = "sed s/^/PAGED/ > '%s'" % taken
    table = report(spin.path).out
    for environment in ({"PYBPF_PAGER": take, "PAGER": "false"}, {"PAGER": take}):
        with contextlib.suppress(FileNotFoundError):
            taken.unlink()
        ran = Terminal("report", spin.path, **environment)
        assert (ran.code, ran.shown) == (0, b"")
        assert taken.read_text(encoding="utf-8") == "".join("PAGED" + row + "\n" for row in table.splitlines())
        assert "samples here" in ran.err


def test_no_pager(spin):
    """Where it is switched off, missing, or left at once; and never where stdout is no terminal."""
    table = report(spin.path).out
    for pager in ("", "cat"):
        ran = Terminal("report", spin.path, PYBPF_PAGER=pager, PAGER="false")
        assert ran.code == 0 and ran.shown.decode().replace("\r\n", "\n") == table
    ran = Terminal("report", spin.path, PAGER="no-such-pager-at-all")
    assert ran.code == 0 and ran.shown.decode().replace("\r\n", "\n") == table
    assert "the pager no-such-pager-at-all cannot be run" in ran.err
    ran = Terminal("report", spin.path, PAGER="true")
    assert ran.code == 0 and ran.shown == b"" and "cannot" not in ran.err
    assert report(spin.path, env={**os.environ, "PAGER": "false"}).out == table


def test_a_hyphen_is_stdout(spin, tmp_path):
    """All commands take it alike, without a pager; what has a use of its own for stdout refuses it."""
    table = report(spin.path).out
    ran = Terminal("report", "-o", "-", spin.path, PAGER="false")
    assert ran.code == 0 and ran.shown.decode().replace("\r\n", "\n") == table
    assert report(spin.path, "-f", "folded", "-o", "-", cwd=tmp_path).out == report(spin.path, "-f", "folded").out != ""
    run = pybpf("diff", spin.path, spin.path, "-o", "-", cwd=tmp_path)
    assert run.code == 0 and run.out == pybpf("diff", spin.path, spin.path).out != ""
    run = pybpf("-F", 999, "-o", "-", "--", harness.default_python().argv[0], "-c", "sum(range(9**7))", cwd=tmp_path)
    assert run.code == 0 and run.stacks() and "wrote" not in run.err, run
    run = pybpf("report", spin.path, "-o", "-", "-o", tmp_path / "out.folded")
    assert run.code == 0 and not run.out and (tmp_path / "out.folded").read_text(encoding="utf-8")
    for args in (["top", "-p", os.getpid()], ["record", "-p", os.getpid(), "-o", "x", "--json-stats"]):
        run = pybpf(*args, *(["-o", "-"] if args[0] == "top" else ["-"]), cwd=tmp_path)
        assert run.code == 2 and "give a file" in harness.one_sentence(run.err), run
    assert [path.name for path in tmp_path.iterdir()] == ["out.folded"]


def pager_status(path, spin, **environment):
    """What a pager found that it is: the fields of its /proc/self/status, its variables, its descriptors."""
    path.parent.chmod(0o777)
    show = "cat /proc/self/status; env; ls -l /proc/self/fd; cat > /dev/null"
    ran = Terminal("report", spin.path, PAGER="(%s) > '%s'" % (show, path), PATH=os.environ["PATH"], **environment)
    assert ran.code == 0, ran.err
    text = path.read_text(encoding="utf-8")
    fields = dict(re.findall(r"^(\w+):\s*(.*)$", text, re.M))
    variables = dict(re.findall(r"^(\w+)=(.*)$", text, re.M))
    descriptors = re.findall(r" (\d+) -> (.*)$", text, re.M)
    path.unlink()
    return fields, variables, descriptors


def test_pager_runs_as_the_caller(spin):
    """Who called sudo gets no root shell by the pager: its user and groups are theirs, and it has no rights."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        told = Path(folder) / "told"
        sudo = {"SUDO_UID": "310001", "SUDO_GID": "310002", "HOME": "/root", "USER": "root"}
        inherited = os.open("/etc/shadow", os.O_RDONLY)
        os.set_inheritable(inherited, True)
        try:
            for environment, uid, gid in ((sudo, 310001, 310002), ({}, 0, 0)):
                fields, variables, descriptors = pager_status(told, spin, **environment)
                assert fields["Uid"].split() == [str(uid)] * 4 and fields["Gid"].split() == [str(gid)] * 4
                for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                    assert int(fields[name], 16) == 0, name
                assert fields["NoNewPrivs"] == "1"
                assert variables["LESSSECURE"] == "1"
                # 3 is the folder that ls lists.
                assert {int(number) for number, _ in descriptors} <= {0, 1, 2, 3}, descriptors
                if uid:
                    assert fields["Groups"].split() == [str(gid)]
                    assert variables["HOME"] == "/" and "USER" not in variables
            account = pwd.getpwnam("daemon")
            environment = {"SUDO_UID": str(account.pw_uid), "SUDO_GID": str(account.pw_gid), "HOME": "/root"}
            fields, variables, _ = pager_status(told, spin, **environment)
            assert fields["Uid"].split() == [str(account.pw_uid)] * 4
            assert set(map(int, fields["Groups"].split())) == set(os.getgrouplist("daemon", account.pw_gid))
            assert (variables["HOME"], variables["USER"]) == (account.pw_dir, "daemon")
        finally:
            os.close(inherited)
