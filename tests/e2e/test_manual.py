# SPDX-License-Identifier: Apache-2.0
"""The manual page says what --help of each command says, which is printed from the tables of options."""

import re
import subprocess
from pathlib import Path

import pytest

import harness

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pybpf.1"
# The subsections with a command's options; those that they refer to (.Sx) in a sentence with "takes" are added.
SECTIONS = {
    "record": ["Which processes", "How to sample", "Output", "Messages", "Limits"],
    "ps": ["Listing"],
    "dump": ["What threads do now"],
    "top": ["A live view"],
    "report": ["Saved profiles"],
    "diff": ["Comparing"],
    "doctor": ["What a host offers"],
}
# An option of each command that the page has once.
HELP = "-h, --help"


def help_of(command):
    done = subprocess.run([harness.PYBPF, command, "--help"], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


def rows_of(command):
    """The options as --help names them, such as "-p, --pid PID[,PID...]"."""
    rows = re.findall(r"^  (?:-\w, |    )(?=--)\S.*", help_of(command), re.M)
    return [re.split(r" {2,}", row.strip())[0] for row in rows]


def names(row):
    """The letters and names of an option: "-p" and "--pid"."""
    return re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", row)


def flatten(line):
    """The text that mdoc(7) makes of a line's macros."""
    words, glue, prefix, closing = [], False, "", 0
    for word in line.lstrip(".").split():
        if word in ("It", "Nm", "Ar", "Cm", "Pa", "Li", "Pq", "Ql"):
            if word == "Nm":
                words.append("pybpf")
            continue
        if word == "Fl":
            prefix += "-"
        elif word == "Ns":
            glue = True
        elif word in ("Op", "Oo"):
            prefix, closing = prefix + "[", closing + (word == "Op")
        else:
            word = "]" if word == "Oc" else prefix + word
            if words and (glue or word[0] in ",|]." and word != "|" or word == "..."):
                words[-1] += word
            else:
                words.append(word)
            glue, prefix = False, ""
    return " ".join(words + [prefix] * bool(prefix)) + "]" * closing


def sections():
    """Subsection of the page -> its lines."""
    found = {}
    for part in re.split(r"^\.S[sh] ", PAGE.read_text(encoding="utf-8"), flags=re.M)[1:]:
        name, _, text = part.partition("\n")
        found[name] = text.splitlines()
    return found


def items(section):
    return [flatten(line) for line in sections()[section] if re.match(r"\.It (Fl|Oo)\b", line)]


def taken(command):
    """What a command takes besides its own: sections of options, and single ones, which are as record's."""
    text = "\n".join(line for name in SECTIONS[command] for line in sections()[name])
    sentence = re.search(r"^(?:It )?takes(?: the options under)?$.*?(?=\.Bl|[a-z]\.$)", text, re.M | re.S)
    sentence = sentence.group() if sentence else ""
    flags = {flatten(line).rstrip(" ,") for line in re.findall(r"^\.Fl .*", sentence, re.M)}
    return re.findall(r"^\.Sx (.*?) ?[,;.]?$", sentence, re.M), flags


def documented(command):
    """The rows that the page has for a command."""
    shared, flags = taken(command)
    rows = [row for name in SECTIONS[command] + shared for row in items(name)]
    of_record = [row for name in SECTIONS["record"] for row in items(name)]
    for flag in flags:
        found = [row for row in of_record if flag in names(row)]
        assert len(found) == 1, (flag, found)
        rows += found
    return rows


def formats_of(command):
    """Name -> suffix, of the list below --format."""
    return dict(re.findall(r"^        ([a-z-]+) +(\.[\w.-]+) ", help_of(command), re.M))


@pytest.mark.parametrize("command", SECTIONS)
def test_options(command):
    rows = documented(command)
    assert len(set(rows)) == len(rows), rows
    assert sorted({*rows, HELP}) == sorted(rows_of(command))


@pytest.mark.parametrize("command", SECTIONS)
def test_synopsis(command):
    usage = re.search(r"^Usage:\n((?:  .*\n)+)", help_of(command), re.M).group(1)
    usage = [line.strip() for line in usage.splitlines() if "--help" not in line]
    synopsis, form = [], None
    for line in sections()["SYNOPSIS"]:
        if line == ".Nm":
            form = []
            synopsis.append(form)
        form.append(flatten(line))
    forms = [" ".join(form) for form in synopsis]
    assert [form for form in forms if re.match(r"pybpf \[?%s\b" % command, form)] == usage


@pytest.mark.parametrize("command", ["record", "diff"])
def test_formats(command):
    lines = [line for name in SECTIONS[command] for line in sections()[name]]
    start = lines.index(".It Fl f , Fl Fl format Ar FORMAT")
    text = " ".join(flatten(line) for line in lines[start + 1 : next(
        at for at in range(start + 1, len(lines)) if lines[at].startswith((".It", ".El")))])
    for name, suffix in formats_of(command).items():
        assert re.search(r"(?<!\S)%s(?![\w-])" % re.escape(name), text), name
        assert suffix == "." + name or re.search(r"(?<!\S)%s(?![\w-])" % re.escape(suffix), text), suffix


def test_all_flags():
    """No sentence of the page names an option that no command has."""
    known = {name for command in SECTIONS for row in rows_of(command) for name in names(row)}
    page = PAGE.read_text(encoding="utf-8").replace("\\-", "-")
    macros = re.findall(r"\bFl (Fl )?(?!Fl\b)([a-zA-Z][a-z-]*)", page)
    marked = {("--" if double else "-") + flag for double, flag in macros}
    typed = set(re.findall(r"(?<= )--?[a-z][a-z-]*", " ".join(re.findall(r"^\.Dl .*", page, re.M))))
    assert marked | typed <= known, (marked | typed) - known
    assert len(marked) > 100


@pytest.mark.parametrize("command", SECTIONS)
def test_help_fits_a_terminal(command):
    assert not [line for line in help_of(command).splitlines() if len(line) > 80]
