# SPDX-License-Identifier: Apache-2.0
"""pybpf-VERSION-1.MACHINE.rpm, which requires nothing: rpmbuild packs what is built."""
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import artefact
import linked
import sbom
import unit

# Nothing is built, stripped or compressed here, and no name or time of this machine gets in.
MACROS = {
    "_binary_payload": "w9.xzdio",
    "_build_id_links": "none",
    "_buildhost": "localhost",
    "__brp_compress": "%{nil}",
    "__os_install_post": "%{nil}",
    "__spec_install_post": "%{nil}",
    "clamp_mtime_to_source_date_epoch": "1",
    "debug_package": "%{nil}",
    "use_source_date_epoch_as_buildtime": "1",
}
SPEC = """Name: pybpf
Version: {version}
Release: 1
Summary: {summary}
License: {licence}
Packager: {maintainer}
AutoReqProv: no

%description
{description}

{scripts}
%files
%defattr(-,root,root,-)
{files}
%changelog
* {date} {maintainer} - {version}-1
- See CHANGELOG.md.
"""


def entries(build):
    """(path, content, mode, directive of %files)."""
    found = [("usr/bin/pybpf", build.binary.read_bytes(), 0o755, "")]
    found += [("usr/share/doc/pybpf/" + name, (artefact.TOP / name).read_bytes(), 0o644, "%doc ") for name in ("README.md", "CHANGELOG.md")]
    found.append(("usr/share/doc/pybpf/sbom.spdx.json", sbom.content(build), 0o644, "%doc "))
    found += [("usr/share/licenses/pybpf/" + name, text, 0o644, "%license ") for name, text in linked.texts(build.libraries).items()]
    return found + [("usr/%s" % path, content, 0o644, "") for path, content in build.other_files()]


def spec(build, found):
    files = "".join('%s"/%s"\n' % (directive, path) for path, _, _, directive in found)
    date = time.strftime("%a %b %d %Y", time.gmtime(build.epoch))
    return SPEC.format(version=build.version, summary=artefact.SUMMARY[0].upper() + artefact.SUMMARY[1:], licence=artefact.LICENCE,
                       maintainer=build.maintainer, description=artefact.DESCRIPTION, scripts=unit.RPM_SCRIPTS, files=files, date=date)


def make(build):
    if not shutil.which("rpmbuild"):
        raise SystemExit("dist: rpmbuild is not installed; tools/install-deps --test installs it, and ARTEFACTS= names what is made")
    folder = Path(tempfile.mkdtemp(dir=build.out))
    try:
        found = entries(build)
        for path, content, mode, _ in found:
            place = folder / "root" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
            place.chmod(mode)
            os.utime(place, (build.epoch, build.epoch))
        (folder / "pybpf.spec").write_text(spec(build, found))
        macros = {**MACROS, "_topdir": str(folder), "_rpmdir": str(build.out), "_rpmfilename": "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"}
        defines = [word for name, value in macros.items() for word in ("--define", "%s %s" % (name, value))]
        subprocess.run(["rpmbuild", "-bb", "--quiet", "--target", build.machine + "-linux", "--buildroot", folder / "root", "--noclean", *defines,
                        folder / "pybpf.spec"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "SOURCE_DATE_EPOCH": str(build.epoch)})
    finally:
        shutil.rmtree(folder)
    return build.out / ("pybpf-%s-1.%s.rpm" % (build.version, build.machine))
