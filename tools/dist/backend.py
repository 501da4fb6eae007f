# SPDX-License-Identifier: Apache-2.0
"""How pip builds a wheel of the sources (PEP 517): make dist, with what tools/install-deps installs."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import artefact
import wheel


def build_artefact(kind, pattern, folder):
    with tempfile.TemporaryDirectory() as dist:
        subprocess.run(["make", "-s", "dist", "ARTEFACTS=" + kind, "DIST=" + dist], cwd=artefact.TOP, check=True, stdout=sys.stderr)
        (path,) = Path(dist).glob(pattern)
        shutil.copy(path, folder)
        return path.name


def build_wheel(folder, config_settings=None, metadata_directory=None):
    return build_artefact("wheel", "*.whl", folder)


def build_sdist(folder, config_settings=None):
    return build_artefact("sdist", "*.tar.gz", folder)


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    """pip would build a wheel for it, and then once more."""
    version = re.search(r"^VERSION := (\S+)$", (artefact.TOP / "Makefile").read_text(encoding="utf-8"), re.M).group(1)
    info = Path(folder) / ("pybpf-%s.dist-info" % version)
    info.mkdir()
    (info / "METADATA").write_text(wheel.metadata(version), encoding="utf-8")
    return info.name
