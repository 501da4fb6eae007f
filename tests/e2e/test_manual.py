# SPDX-License-Identifier: Apache-2.0
"""The manual pages are made from the tables of options that --help is printed from, and name nothing else."""

import re
import shutil
import subprocess

import pytest

import harness

DOCS = harness.TOP / "docs"
PAGES = sorted(DOCS.glob("*.1"))
COMMANDS = ["record", "ps", "dump", "top", "agent", "report", "diff", "doctor"]


def help_of(command):
    done = subprocess.run([harness.PYBPF, command, "--help"], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


def table():
    """The rows of `pybpf help --options`."""
    head, *rows = [line.split("\t") for line in harness.pybpf("help", "--options").out.splitlines()]
    assert all(len(row) == len(head) for row in rows)
    return [dict(zip(head, row)) for row in rows]


def test_options_are_those_of_help():
    """In their order, with their aliases and values."""
    rows = table()
    assert [row["command"] for row in rows if not row["option"]] == [*COMMANDS, "help", "version"]
    for command in COMMANDS:
        lines = re.findall(r"^  (?:-\w, |    )(?=--)\S.*", help_of(command), re.M)
        told = [re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", re.split(r" {2,}", line.strip())[0]) for line in lines]
        listed = []
        for row in [row for row in rows if row["command"] == command and row["option"]]:
            spelled = (["-" + row["letter"]] if row["letter"] else []) + ["--" + row["option"]]
            if row["alias of"]:
                listed[-1] += spelled
            else:
                listed.append(spelled)
        assert listed == told, command
    values = {(row["command"], row["option"]): row["values"] for row in rows}
    assert values["record", "mode"] == "cpu, wall, offcpu, gil, exception, memory"
    assert values["diff", "format"].split(", ")[0] == "folded" and values["record", "async"] == "all"


def test_pages_are_made(tmp_path):
    """make manual would change nothing."""
    subprocess.run([harness.TOP / "tools/gen/manual", harness.PYBPF, tmp_path], check=True, timeout=harness.PATIENCE)
    made = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert set(made) == {"pybpf-%s.1" % command for command in COMMANDS} == {path.name for path in PAGES} - {"pybpf.1"}
    for name, text in made.items():
        assert text == (DOCS / name).read_text(encoding="utf-8"), "run make manual: %s is not up to date" % name


@pytest.mark.skipif(not shutil.which("mandoc"), reason="mandoc is not installed; tools/install-deps --test installs it")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_mdoc(page):
    done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


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


def test_synopsis():
    """pybpf.1 has the usage of every command."""
    usages = {line.strip() for command in COMMANDS for line in
              re.search(r"^Usage:\n((?:  .*\n)+)", help_of(command), re.M).group(1).splitlines() if "--help" not in line}
    text = (DOCS / "pybpf.1").read_text(encoding="utf-8")
    synopsis, form = [], None
    for line in text.partition(".Sh SYNOPSIS\n")[2].partition("\n.Sh ")[0].splitlines():
        if line == ".Nm":
            form = []
            synopsis.append(form)
        form.append(flatten(line))
    assert {" ".join(form) for form in synopsis} == usages


@pytest.mark.parametrize("command", ["record", "report", "diff"])
def test_formats(command):
    lines = (DOCS / ("pybpf-%s.1" % command)).read_text(encoding="utf-8").splitlines()
    start = lines.index(".It Fl f , Fl Fl format Ar FORMAT")
    text = " ".join(flatten(line) for line in lines[start + 1 : next(
        at for at in range(start + 1, len(lines)) if lines[at].startswith((".It", ".El")))])
    found = re.findall(r"^        ([a-z-]+) +\.[\w.-]+ ", help_of(command), re.M)
    assert len(found) >= 4
    for name in found:
        assert re.search(r"(?<!\S)%s(?![\w-])" % re.escape(name), text), name


def test_all_flags():
    """No sentence of a page names an option that no command has."""
    rows = table()
    known = {"--options"} | {"--" + row["option"] for row in rows} | {"-" + row["letter"] for row in rows}
    page = "\n".join(path.read_text(encoding="utf-8") for path in PAGES).replace("\\-", "-")
    macros = re.findall(r"\bFl (Fl )?(?!Fl\b)([a-zA-Z][a-z-]*)", page)
    marked = {("--" if double else "-") + flag for double, flag in macros}
    typed = set(re.findall(r"(?<= )--?[a-z][a-z-]*", " ".join(re.findall(r"^\.Dl .*", page, re.M))))
    typed = {word for word in typed if word not in ("-vv", "-c")}
    assert marked | typed <= known, (marked | typed) - known
    assert len(marked) > 100


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_a_terminal(command):
    assert not [line for line in help_of(command).splitlines() if len(line) > 80]
