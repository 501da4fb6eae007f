# SPDX-License-Identifier: Apache-2.0
"""The packages of npm that the HTML report's page has parts of, with their licences, by the comment at its beginning."""
import re
from dataclasses import dataclass

from artefact import TOP

PAGE = "user/output/formats/html.asset"
# As tools/html/build.mjs writes it.
HEADING = re.compile(r"^(\S+) (\d\S*) \((\S+)\)\n\n", re.M)


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    licence: str
    text: bytes

    @property
    def purl(self):
        return "pkg:npm/%s@%s" % (self.name.replace("@", "%40"), self.version)


def packages():
    notices = (TOP / PAGE).read_text(encoding="utf-8").partition("-->")[0]
    first, *fields = HEADING.split(notices)
    if not fields:
        raise SystemExit("dist: %s names no package at its beginning: %s" % (PAGE, first[:80]))
    rows = zip(fields[0::4], fields[1::4], fields[2::4], fields[3::4])
    return [Package(name, version, licence, text.strip().encode() + b"\n") for name, version, licence, text in rows]
