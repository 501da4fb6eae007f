# SPDX-License-Identifier: Apache-2.0
"""The bill of materials, SPDX 2.3 as JSON: pybpf and what is linked into it."""
import datetime
import hashlib
import json
import re

import artefact
import bundled
import linked


def package(name, version, licence, identifier, **more):
    return {
        "SPDXID": "SPDXRef-" + identifier, "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION", **more,
    }


def reference(purl):
    return [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}]


def document(build):
    digest = hashlib.sha256(build.binary.read_bytes()).hexdigest()
    created = datetime.datetime.fromtimestamp(build.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    packages = [package("pybpf", build.version, artefact.LICENCE, "pybpf", primaryPackagePurpose="APPLICATION",
                        checksums=[{"algorithm": "SHA256", "checksumValue": digest}])]
    public = any(library.licence == linked.PUBLIC_DOMAIN for library in build.libraries)
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-pybpf")]
    for library in build.libraries:
        purl = "pkg:deb/debian/%s@%s?arch=source" % (library.source, library.version.replace("+", "%2B").replace(":", "%3A"))
        packages.append(package(
            library.source, library.version, library.licence, library.source, primaryPackagePurpose="LIBRARY",
            supplier="Organization: Debian", comment="Linked statically, of " + ", ".join(library.packages),
            externalRefs=reference(purl),
        ))
        relations.append(("SPDXRef-pybpf", "STATIC_LINK", "SPDXRef-" + library.source))
    for one in bundled.packages():
        identifier = "npm-" + re.sub(r"[^A-Za-z0-9.-]", "-", one.name)
        packages.append(package(one.name, one.version, one.licence, identifier, primaryPackagePurpose="LIBRARY",
                                comment="Parts of it are in the HTML report's page", externalRefs=reference(one.purl)))
        relations.append(("SPDXRef-pybpf", "CONTAINS", "SPDXRef-" + identifier))
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": "pybpf-%s-%s" % (build.version, build.machine),
        "documentNamespace": "urn:sha256:" + digest,
        "creationInfo": {"created": created, "creators": ["Tool: pybpf-dist"]},
        "hasExtractedLicensingInfos": [{"licenseId": linked.PUBLIC_DOMAIN, "extractedText": "liblzma is in the public domain."}] if public else [],
        "packages": packages,
        "relationships": [dict(zip(("spdxElementId", "relationshipType", "relatedSpdxElement"), one)) for one in relations],
    }


def content(build):
    return (json.dumps(document(build), indent=2) + "\n").encode()


def make(build):
    path = build.out / ("pybpf-%s-%s.spdx.json" % (build.version, build.machine))
    path.write_bytes(content(build))
    return path
