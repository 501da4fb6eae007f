# SPDX-License-Identifier: Apache-2.0
"""Completion: someone types into bash, zsh and fish in a terminal."""

import os
import shutil
from pathlib import Path

import pytest

import harness
import test_install
import test_top_view

SHELLS = {
    "bash": ("bash --norc --noprofile", "bind 'set bell-style none'; bind 'set show-all-if-ambiguous on'; "
             "PS1='> '; . share/bash-completion/completions/pybpf"),
    "zsh": ("zsh -f", "PS1='> '; setopt auto_list no_list_ambiguous no_beep; fpath=($PWD/share/zsh/site-functions $fpath); autoload -U compinit; compinit -u -d dump"),
    "fish": ("fish --private --no-config", "function fish_prompt; echo '> '; end; set -p fish_complete_path $PWD/share/fish/vendor_completions.d"),
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """What make install has put below a folder, in which the shells are."""
    folder = tmp_path_factory.mktemp("prefix")
    test_install.make("install", folder, "PREFIX=%s" % folder)
    (folder / "monday.pybpf").touch()
    return folder


@pytest.fixture(scope="module", params=SHELLS)
def shell(request, installed, tmp_path_factory):
    if not shutil.which(request.param):
        pytest.skip("%s is not installed; tools/install-deps --test installs it" % request.param)
    command, setup = SHELLS[request.param]
    environment = "cd %s; env -i HOME=%s LC_ALL=C.UTF-8 TERM=$TERM PATH=%s:$PATH" % (installed, installed, installed / "bin")
    screen = test_top_view.Tmux(str(tmp_path_factory.mktemp("tmux") / "socket"), command, columns=200, lines=200, environment=environment)
    try:
        screen.until(lambda lines: any(line.strip() for line in lines))
        screen.tmux("send-keys", "-t", "t", "-l", setup)
        screen.keys("Enter")
        yield screen
    finally:
        screen.tmux("kill-server")


def until_typed(shell, line, *expected):
    """Types the line on an empty screen, then Tab; until all the words are there."""
    shell.keys("C-u", "C-l")
    shell.until(lambda lines: [text.rstrip() for text in lines if text.strip()] == [">"])
    shell.tmux("send-keys", "-t", "t", "-l", line)
    shell.until(lambda lines: any(line.rstrip() in text for text in lines))
    shell.keys("Tab")
    return shell.until(lambda lines: all(any(word in text.replace(line + " ", "") for text in lines) for word in expected))


@pytest.mark.parametrize("line, expected", [
    ("pybpf ", ["record", "report", "doctor", "version"]),
    ("pybpf doc", ["pybpf doctor"]),
    ("pybpf --gil-", ["--gil-holders", "--gil-pairs"]),
    ("pybpf record --min-", ["record --min-block"]),
    ("pybpf top --no-w", ["top --no-wait-states"]),
    ("pybpf dump --fr", ["dump --freeze"]),
    ("pybpf --mode ", ["wall", "offcpu", "exception"]),
    ("pybpf --mode=wa", ["--mode=wall"]),
    ("pybpf -f ", ["chrometrace", "folded", "pprof"]),
    ("pybpf diff -f ht", ["diff -f html"]),
    ("pybpf --async=", ["--async=all"]),
    ("pybpf report mon", ["report monday.pybpf"]),
    ("pybpf -o mon", ["-o monday.pybpf"]),
    ("pybpf help dum", ["help dump"]),
    ("pybpf ps --user daem", ["--user daemon"]),
    ("bin/pybpf rep", ["bin/pybpf report"]),
    ("pybpf -p 1 -- setar", ["-- setarch"]),
])
def test_typed(shell, line, expected):
    until_typed(shell, line, *expected)


def test_a_process(shell):
    pid = str(os.getpid())
    until_typed(shell, "pybpf -p " + pid[:-1], pid)


def test_nothing_of_another_command(shell):
    """report has no --max-memory, and top no --kernel."""
    lines = until_typed(shell, "pybpf report --m", "--merge")
    assert not any("--max-memory" in line for line in lines)


def test_scripts_are_installed(installed):
    for place in ("bash-completion/completions/pybpf", "zsh/site-functions/_pybpf", "fish/vendor_completions.d/pybpf.fish"):
        assert (Path(installed) / "share" / place).read_text().count("SPDX-License-Identifier") == 1
    assert harness.pybpf("help", "--options").code == 0
