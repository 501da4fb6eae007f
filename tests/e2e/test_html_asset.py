# SPDX-License-Identifier: Apache-2.0
"""The page of the HTML report, as it is checked in."""
import re
import shutil
import subprocess
import sys

import pytest

import harness
import pythons

sys.path.insert(0, str(harness.TOP / "tests"))

import node_peers  # noqa: E402  (needs the folder)


def test_the_page_is_what_its_source_makes(tmp_path):
    """The asset that is checked in is what make html-app makes, and has the licences of what is in it."""
    made, source = tmp_path / "page", tmp_path / "html"
    shutil.copytree(harness.TOP / "tools" / "html", source, ignore=shutil.ignore_patterns("node_modules"))
    asset = (harness.TOP / "user" / "output" / "formats" / "html.asset").read_bytes()
    try:
        npm = node_peers.program("npm")
    except node_peers.Missing as missing:
        pytest.skip(str(missing))
    cache = ["--cache", str(pythons.cache() / "npm-packages"), "--prefer-offline"]
    done = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", *cache],
        cwd=source,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        pytest.skip("npm ci failed, so the page cannot be made: " + done.stdout.strip().split("\n")[-1])
    subprocess.run([node_peers.program("node"), "build.mjs", made], cwd=source, check=True)
    assert made.read_bytes() == asset, "make html-app makes another user/output/formats/html.asset of tools/html"

    text = asset.decode("utf-8")
    assert text.count("@PYBPF_DATA@") == 1
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1)
    assert policy.startswith("default-src 'none'") and "unsafe" not in policy and "http" not in policy
    packages = dict(re.findall(r"^(\S+) [\d.]+ \(([\w.-]+)\)$", text, re.M))
    assert {"preact": "MIT", "d3-array": "ISC"}.items() <= packages.items()
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
