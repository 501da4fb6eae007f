# SPDX-License-Identifier: Apache-2.0
"""pybpf-VERSION-image-ARCHITECTURE.tar: a container image of the binary alone, for podman load, docker load and skopeo.

It is an OCI layout, with the manifest.json that older dockers look for.
"""
import datetime
import hashlib
import json

import artefact
import linked
import sbom

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def encode(value):
    return json.dumps(value, sort_keys=True).encode()


def digest(content):
    return hashlib.sha256(content).hexdigest()


def layer(build):
    """What the container's root holds; pybpf puts the licences nowhere else."""
    found = [("pybpf", build.binary.read_bytes(), 0o755), ("sbom.spdx.json", sbom.content(build), 0o644)]
    found += [("licences/" + name, text, 0o644) for name, text in linked.texts(build.libraries).items()]
    return artefact.tar(found, build.epoch)


def described(kind, content):
    return {"mediaType": "application/vnd.oci.image.%s" % kind, "digest": "sha256:" + digest(content), "size": len(content)}


def make(build):
    name, content = "pybpf:%s" % build.version, layer(build)
    packed = artefact.compress(content)
    config = encode({
        "architecture": ARCHITECTURES[build.machine], "os": "linux",
        "created": datetime.datetime.fromtimestamp(build.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "config": {"Entrypoint": ["/pybpf"], "Labels": {"org.opencontainers.image.licenses": artefact.LICENCE,
                                                         "org.opencontainers.image.version": build.version}},
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest(content)]},
    })
    manifest = encode({"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                       "config": described("config.v1+json", config), "layers": [described("layer.v1.tar+gzip", packed)]})
    index = {**described("manifest.v1+json", manifest), "annotations": {"io.containerd.image.name": "localhost/" + name,
                                                                       "org.opencontainers.image.ref.name": build.version}}
    blob = "blobs/sha256/%s"
    files = [(blob % digest(one), one, 0o644) for one in (packed, config, manifest)]
    files.append(("oci-layout", encode({"imageLayoutVersion": "1.0.0"}), 0o644))
    files.append(("index.json", encode({"schemaVersion": 2, "manifests": [index]}), 0o644))
    files.append(("manifest.json", encode([{"Config": blob % digest(config), "RepoTags": [name], "Layers": [blob % digest(packed)]}]), 0o644))
    path = build.out / ("pybpf-%s-image-%s.tar" % (build.version, ARCHITECTURES[build.machine]))
    path.write_bytes(artefact.tar(files, build.epoch))
    return path
