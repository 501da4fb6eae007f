# SPDX-License-Identifier: Apache-2.0
"""tools/check-english finds the sentences that it is for, wherever their lines end, and lets plain ones pass."""

import subprocess

import pytest

import harness

BANNED = {
    "stack.c": ("/* A thread changes its stack: so often\n * two reads of it are tried to agree. */\n", 2),
    "names.h": ("int x; /* So long names and lines are read. */\n", 1),
    "state.c": ("/* Of which neither a futex nor the stack pointer is known. */\n", 1),
    "read.c": ('\treturn damaged("a frame has a line or a kind that there "\n\t\t       "cannot be");\n', 1),
    "saved.c": ('damaged("a stack stands on none that is before it");\n', 2),
    "page.md": ("A stack that may be none\nthat the thread had.\n", 1),
    "options.c": ('{"Only some of those, or of all (may be repeated)", options},\n', 1),
    "switch.h": ("/* There can only be leavings of one. */\n", 1),
    "tool.py": ("# A coroutine that is\n# none of Python's.\n", 1),
    "begin.c": ("/* Reads it from the\n * begin to the end of a thread's begin. */\n", 2),
    "factor.c": ("/* It takes so many\n * times as long, and finds no\n * place. */\n", 2),
    "page.1": (".Fl x\nshows the rest, as what\nit is.\n", 1),
}
PLAIN = """\
/* Returns the lock; NULL: there is none. A thread runs so often that its stack changes. */
/* Of course, of the two functions one changed. Of two functions, one grew: 17 so far, and as many of its end. */
/* It has so many times that no place is found for them. */
/* What the others begin with, at the beginning. */
// Stands for a process. Option none is the default: nothing that changes it.
"""


def check(path):
    return subprocess.run([harness.TOP / "tools" / "check-english", path], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", BANNED)
def test_banned(tmp_path, name):
    text, count = BANNED[name]
    (tmp_path / name).write_text(text)
    done = check(tmp_path / name)
    assert done.returncode == 1 and len(done.stdout.splitlines()) == count, done.stdout + done.stderr


def test_plain(tmp_path):
    (tmp_path / "plain.c").write_text(PLAIN)
    done = check(tmp_path / "plain.c")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
