# SPDX-License-Identifier: Apache-2.0
"""The build: what it does against exploits, and that the folder it is made in leaves no trace in it."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import harness
from harness import PYBPF, TOP, pybpf

BUILD_LIMIT_S = 600
PARTS = ("Makefile", "bpf", "user", "vmlinux")  # what the binary is made of


def readelf(*args):
    done = subprocess.run(["readelf", "-W", *args, PYBPF], stdout=subprocess.PIPE, check=True, timeout=60)
    return done.stdout.decode("utf-8", "replace")


def test_linked():
    """Loaded at any address; what the loader writes to is read-only before main(); no stack runs code."""
    segments = dict(re.findall(r"^\s+(\w+)\s+0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ ([RWE ]{3})", readelf("-l"), re.M))
    assert "DYN" in readelf("-h")
    dynamic = readelf("-d")
    assert "BIND_NOW" in dynamic or re.search(r"FLAGS_1.*\bNOW\b", dynamic)
    assert "GNU_RELRO" in segments
    assert segments["GNU_STACK"].strip() == "RW"
    assert not [name for name, rights in segments.items() if "W" in rights and "E" in rights]
    assert "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    # Relocated lazily, the table of functions would be outside what is made read-only.
    assert " .got.plt " not in readelf("-S")


def test_checked():
    """Overruns of the stack and of buffers of known size end the program."""
    symbols = readelf("--dyn-syms")
    assert "__stack_chk_fail" in symbols
    assert len(set(re.findall(r"\b(__\w+_chk)\b", symbols))) >= 5, "_FORTIFY_SOURCE has no effect"


def test_branches():
    """Where an attacker sends a return or an indirect call, the CPU ends the program, if it can."""
    machine = platform.machine()
    code = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", PYBPF], stdout=subprocess.PIPE, check=True, timeout=BUILD_LIMIT_S
    ).stdout.decode()
    if machine == "x86_64":
        assert "SHSTK" in readelf("-n")
        assert code.count("endbr64") > 100
    elif machine == "aarch64":
        assert code.count("paciasp") > 100 and re.search(r"\bbti\b", code)
    else:
        pytest.skip("no marks are known for %s" % machine)


def test_folder(tmp_path):
    """Made in a folder with a longer name, the binary under test has the same bytes."""
    folder = tmp_path / "quite" / "another" / "folder"
    folder.mkdir(parents=True)
    for part in PARTS:
        (shutil.copytree if (TOP / part).is_dir() else shutil.copy)(TOP / part, folder / part)
    here = Path(PYBPF).resolve().parent
    flags = (here / "flags").read_text(encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "BUILD")}
    done = subprocess.run(
        ["make", "-s", "-j2", *(["WERROR=1"] if "-Werror" in flags else []), "all"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=BUILD_LIMIT_S,
    )
    assert done.returncode == 0, done.stdout.decode()[-4000:]
    there = folder / "build"
    if (there / "flags").read_text(encoding="utf-8").replace(str(folder), str(TOP)) != flags:
        pytest.skip("%s was made with other options than make has here: nothing to compare with" % PYBPF)
    for name in ("pybpf.bpf.o", "pybpf.skel.h", "pybpf"):
        content = (there / name).read_bytes()
        assert str(folder).encode() not in content, "%s has the folder's name in it" % name
        assert content == (here / name).read_bytes(), "%s differs" % name


def versions(out):
    """Library -> its version, and whether it is shared or linked in; but for the last one, which has no version."""
    *rows, last = out.splitlines()[1:]
    assert last == "  libiberty  linked in"
    lines = [re.fullmatch(r"  (\S+) +(\S+), (shared|linked in)", line).groups() for line in rows]
    return {name: (version, how) for name, version, how in lines}


def test_versions():
    """The system's updates reach every library that there is as a shared one."""
    run = pybpf("--version", "-v")
    assert run.code == 0 and run.err == ""
    said = versions(run.out)
    assert set(said) == {"libbpf", "libelf", "zlib", "liblzma", "jansson", "libyaml-0", "protobuf-c", "ncurses"}
    needed = readelf("-d")
    for name, (version, how) in said.items():
        assert re.search(r"\d+\.\d+", version), (name, version)
        library = {"zlib": "libz", "ncurses": "libncursesw"}.get(name, "lib" + name.replace("lib", "", 1))
        assert how == "shared" and "[%s.so" % library in needed, (name, how)
    assert pybpf("-v", "-V").out == run.out
    assert pybpf("--version").out == run.out.splitlines(keepends=True)[0]
    assert harness.one_sentence(pybpf("--version", "--nonsense").err)


def test_no_name_of_a_library_is_ours():
    """A function of ours that a library has, too, would be called by that library in place of its own."""
    rows = [line.split() for line in readelf("--dyn-syms").splitlines()[3:]]
    assert not [row[-1] for row in rows if len(row) > 7 and row[3] == "FUNC" and row[6] != "UND"]
