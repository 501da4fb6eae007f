# SPDX-License-Identifier: Apache-2.0
"""tools/check-lengths finds functions and subjects that are too long, and only these."""

import shutil
import subprocess

import pytest

import harness


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    for folder in ("tools", "user/room", "bpf"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(harness.TOP / "tools" / "check-lengths", tmp_path / "tools")
    return tmp_path


def check(tree):
    done = subprocess.run([tree / "tools" / "check-lengths"], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def function(lines):
    return "static int f(int a)\n{\n" + "\ta++;\n" * lines + "}\n"


def git(tree, *words):
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", tree, *identity, *words], capture_output=True, check=True)


def test_functions(tree):
    (tree / "user" / "room" / "most.c").write_text(function(80) + "struct table t[] = {\n" + "\t{1},\n" * 100 + "};\n" + function(80))
    assert check(tree) == (0, [], "")
    (tree / "user" / "room" / "more.c").write_text(function(2) + function(81))
    (tree / "bpf" / "more.h").write_text(function(100))
    status, lines, errors = check(tree)
    assert (status, errors) == (1, "") and [line.partition(" ")[0] for line in lines] == ["user/room/more.c:7:", "bpf/more.h:2:"]


def test_subjects(tree):
    git(tree, "init", "-q")
    git(tree, "commit", "-q", "--allow-empty", "-m", "s" * 100)
    # Without a branch of others, every commit may be one of theirs.
    assert check(tree) == (0, [], "")
    git(tree, "update-ref", "refs/remotes/origin/HEAD", "HEAD")
    git(tree, "commit", "-q", "--allow-empty", "-m", "room: " + "s" * 66 + "\n\n" + "b" * 200)
    assert check(tree) == (0, [], "")
    git(tree, "commit", "-q", "--allow-empty", "-m", "room: " + "s" * 67)
    status, lines, errors = check(tree)
    assert (status, errors, len(lines)) == (1, "", 1)
