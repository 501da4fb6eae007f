# SPDX-License-Identifier: Apache-2.0
"""--help of each command, which is printed from the tables of options, and the manual page name the same options."""

import re
import subprocess
from pathlib import Path

import pytest

import harness

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pybpf.1"
# The subsections of commands with filters of their own; all others are about recording and listing.
OWN_SECTIONS = {"report": ["Saved profiles"], "diff": ["Comparing", "Saved profiles"]}
COMMANDS = ("record", "ps", "dump", "top", "report", "diff", "doctor")


def help_of(command):
    done = subprocess.run([harness.PYBPF, command, "--help"], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


def options_of(command):
    """The long names, each with its letter or None; every one is in the help once."""
    rows = re.findall(r"^  (?:-\w, |    )--.*", help_of(command), re.M)
    found = [(name, letter or None) for row in rows
             for letter, name in re.findall(r"(?:-(\w), )?--([a-z-]+)", row.strip().split("  ")[0])]
    assert len(dict(found)) == len(found), found
    return dict(found)


def sections():
    """Of the page: subsection -> its lines."""
    found = {}
    for part in re.split(r"^\.S[sh] ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        name, _, text = part.partition("\n")
        found[name] = text.splitlines()
    return found


def flags(line):
    """The options that a line of the page marks as such: names as --name, letters as -l."""
    return {("--" if double else "-") + flag for double, flag in re.findall(r"\bFl (Fl )?([a-zA-Z][a-z-]*)", line)}


def text_of(command):
    own = {name for names in OWN_SECTIONS.values() for name in names}
    page = sections()
    return [line for name, lines in page.items() if (name in OWN_SECTIONS.get(command, page.keys() - own)) for line in lines]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_is_in_the_manual(command):
    marked = set().union(*map(flags, text_of(command)))
    for name, letter in options_of(command).items():
        if name == "help" and command != "record":
            continue
        assert "--" + name in marked or letter and "-" + letter in marked, "the page does not have --%s of %s" % (name, command)


@pytest.mark.parametrize("commands", [("record", "ps", "dump", "top"), ("report",), ("diff", "report")], ids="-".join)
def test_every_option_of_the_manual_is_there(commands):
    known = {}  # name: its letters, of which commands may have different ones
    for command in commands:
        for name, letter in options_of(command).items():
            known.setdefault(name, set()).add(letter)
    items = [flags(line) for line in text_of(commands[0]) if line.startswith(".It ")]
    assert sum(map(len, items)) >= 10
    for item in items:
        for flag in item:
            if flag.startswith("--"):
                assert flag[2:] in known, flag
            else:
                assert any(flag[1:] in letters for letters in known.values()), flag
        letters = {flag[1:] for flag in item if not flag.startswith("--")}
        of_names = [known[flag[2:]] for flag in item if flag.startswith("--")]
        assert letters <= set().union(*of_names), item
        assert all(None in own or own & letters for own in of_names), item


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal(command):
    assert not [line for line in help_of(command).splitlines() if len(line) > 80]
