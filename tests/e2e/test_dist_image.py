# SPDX-License-Identifier: Apache-2.0
"""The image that make dist makes, and the manifests of the pages, run as they say."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

import containers
import harness
import nameserver
import receiver
from artefacts import check_profile, only, run, unpack_image
from harness import TOP

sys.path[:0] = [str(TOP / "tests")]

import peers  # noqa: E402

CONTAINER = "pybpf-dist-%d" % os.getpid()


def write_bundle(dist, folder, arguments, capabilities, mounts=(), no_new_privileges=True):
    """For runc: on a root that is read-only, with the host's processes and no more than these rights."""
    (folder / "rootfs").mkdir()
    image = unpack_image(only(dist, "*-image-*.tar"), folder / "rootfs")
    for mount in mounts:
        (folder / "rootfs" / mount["destination"].lstrip("/")).mkdir(parents=True, exist_ok=True)
    run(["runc", "spec"], cwd=folder)
    config = json.loads((folder / "config.json").read_text())
    config["process"].update(terminal=False, args=[*image["config"]["Entrypoint"], *map(str, arguments)],
                             capabilities={kind: ["CAP_" + name for name in capabilities] for kind in ("bounding", "effective", "permitted")})
    config["linux"]["namespaces"] = [one for one in config["linux"]["namespaces"] if one["type"] in ("mount", "ipc", "uts")]
    places = {mount["destination"] for mount in mounts}
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] not in places] + list(mounts)
    config["linux"]["seccomp"] = json.loads((TOP / "docs/seccomp.json").read_text())
    # Without it runc has the filter before it has given up its own rights.
    config["process"]["noNewPrivileges"] = no_new_privileges
    assert config["root"]["readonly"]
    (folder / "config.json").write_text(json.dumps(config))


def run_image(dist, folder, *arguments, **options):
    write_bundle(dist, folder, *arguments, **options)
    return run(["runc", "run", CONTAINER], cwd=folder)


needs_runc = pytest.mark.skipif(not shutil.which("runc"), reason="runc is not installed; tools/install-deps --test installs it")
TRACEFS = {"destination": "/sys/kernel/tracing", "type": "bind", "source": harness.TRACEFS, "options": ["rbind", "ro"]}


@needs_runc
@pytest.mark.parametrize("arguments, shows", [
    (["-p", "PID", "-d", 1], r"work \(shares\.py"),
    (["-p", "PID", "-d", 1, "--mode=wall", "--threads", "-f", "json"], "shares.py"),
    (["-p", "PID", "-d", 1, "--mode=gil", "--async", "--stats"], ""),
    (["-p", "PID", "-d", 1, "--event=tracepoint:sched:sched_switch", "--kernel"], ""),
    (["--all", "-d", 1, "--by=container"], r"\[host\]"),
    (["ps", "-p", "PID"], "shares.py"),
    (["dump", "-p", "PID", "--locals"], "Process PID"),
    (["dump", "-p", "PID", "--native"], r"^  C "),
    (["top", "-p", "PID", "--output", "jsonl", "-d", 1], '"functions"'),
    (["doctor"], "the main job can run"),
], ids=lambda value: value if isinstance(value, str) else " ".join(map(str, value)))
def test_image_with_few_rights(dist, tmp_path, busy, arguments, shows):
    """Three capabilities, and the system calls of docs/seccomp.json."""
    words = [str(busy.pid) if word == "PID" else word for word in arguments]
    out = run_image(dist, tmp_path, words, ["BPF", "PERFMON", "SYS_PTRACE"], [TRACEFS])
    assert re.search(shows.replace("PID", str(busy.pid)), out, re.M), out


@needs_runc
def test_image_sends_and_serves(dist, tmp_path, busy):
    """An agent of the image, with the capabilities to become a user without rights, too: names by resolv.conf, TLS by the certificates of a mounted folder."""
    etc, port = tmp_path / "etc", harness.free_port()
    (etc / "ssl/certs").mkdir(parents=True)
    (etc / "resolv.conf").write_text("nameserver %s\n" % nameserver.ADDRESS)
    paths = receiver.certificate(tmp_path, nameserver.NAME)
    shutil.copy(paths[0], etc / "ssl/certs/ca-certificates.crt")
    mounts = [{"destination": "/etc", "type": "bind", "source": str(etc), "options": ["rbind", "ro"]}]
    (tmp_path / "bundle").mkdir()
    with receiver.receiving(context=receiver.server_context(paths)) as it, nameserver.answering(), ThreadPoolExecutor(1) as other:
        arguments = ["agent", "-p", busy.pid, "--epoch", "1s", "--otlp", "https://%s:%d" % (nameserver.NAME, it.server.server_port),
                     "--listen", "127.0.0.1:%d" % port]
        running = other.submit(run_image, dist, tmp_path / "bundle", arguments, ["BPF", "PERFMON", "SYS_PTRACE", "SETUID", "SETGID"], mounts)
        try:
            harness.wait_for(lambda: it.requests or running.done())
            assert not running.done(), running.result()
            with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=harness.PATIENCE) as answer:
                assert b"pybpf_requests_sent_total" in answer.read()
        finally:
            subprocess.run(["runc", "kill", CONTAINER, "TERM"], check=False)
        running.result()
    assert all(b"cpython" in gzip.decompress(request.body) for request in it.requests)


@needs_runc
def test_image_as_docker_runs_it(dist, tmp_path, busy):
    check_profile(run_image(dist, tmp_path, ["-p", busy.pid, "-d", 1], ["BPF", "PERFMON", "SYS_PTRACE"], no_new_privileges=False))


def test_seccomp_profile_has_what_runs_need():
    """Each call that pybpf allows itself later is one that its container may have allowed it."""
    named = set(re.findall(r"\{SYS_(\w+)", (TOP / "user/rights/filter.c").read_text()))
    (allowed,) = json.loads((TOP / "docs/seccomp.json").read_text())["syscalls"]
    assert len(named) > 50 and named <= set(allowed["names"]) and allowed["names"] == sorted(set(allowed["names"]))
    assert not {"mount", "init_module", "reboot", "kexec_load", "unshare", "keyctl"} & set(allowed["names"])


def manifest():
    """The DaemonSet of the page, and its container."""
    text = (TOP / "docs/containers.md").read_text(encoding="utf-8")
    found = yaml.safe_load("\n".join(re.search(r"^(?:    .*\n)+", text[text.index("    apiVersion: "):], re.M).group().splitlines()))
    return found, found["spec"]["template"]["spec"]["containers"][0]


def conforms(document):
    try:
        command = peers.kubeconform()
    except peers.Missing as missing:
        pytest.skip(str(missing))
    done = subprocess.run(command, input=yaml.safe_dump(document), capture_output=True, text=True, timeout=harness.PATIENCE)
    return done.returncode == 0, done.stdout + done.stderr


def test_daemon_set_by_schema():
    """That of Kubernetes 1.30; what it would refuse is found."""
    found, container = manifest()
    good, told = conforms(found)
    assert good, told
    container["securityContext"]["capabilities"]["add"] = "BPF"
    good, told = conforms(found)
    assert not good and "expected array" in told
    found, _ = manifest()
    found["spec"]["template"]["spec"]["hostPid"] = True
    good, told = conforms(found)
    assert not good and "'hostPid' not allowed" in told


def mounts_of(pod, places):
    """A container's mounts. places: the folders that stand for volumes, by their names."""
    sources = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
    sources.update(places)
    return [{"destination": mount["mountPath"], "type": "bind", "source": str(sources[mount["name"]]),
             "options": ["rbind", "ro" if mount.get("readOnly") else "rw"]} for mount in pod["containers"][0]["volumeMounts"]]


def check_rights(pod):
    """Those that runc is told of otherwise than by the manifest. Returns the capabilities."""
    (container,) = pod["containers"]
    assert pod["hostPID"] and container["image"] == "pybpf:" + harness.pybpf("version").out.split()[1]
    rights = container["securityContext"]
    assert rights["capabilities"]["drop"] == ["ALL"] and rights["readOnlyRootFilesystem"] and not rights["allowPrivilegeEscalation"]
    assert rights["seccompProfile"] == {"type": "Localhost", "localhostProfile": "pybpf.json"}
    return rights["capabilities"]["add"]


@needs_runc
def test_daemon_set(dist, tmp_path):
    """Run as it says, on this machine: profiles of all processes, with the names of containers."""
    if containers.why_not():
        pytest.skip(containers.why_not())
    found, container = manifest()
    pod = found["spec"]["template"]["spec"]
    rights = check_rights(pod)
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    arguments = ["2" if word == "3600" else word for word in container["args"]]
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    with containers.container("fleet", containers.command("spin.py")) as one:
        run_image(dist, bundle, arguments, rights, mounts_of(pod, {"profiles": profiles}))
    roots = {stack[0].text for stack, _ in harness.parse((profiles / "last.folded").read_text())}
    assert one.id in roots, roots


def agent_manifest(replace=lambda text: text):
    """docs/pybpf-agent.yaml: its documents by kind."""
    text = (TOP / "docs/pybpf-agent.yaml").read_text(encoding="utf-8")
    return {one["kind"]: one for one in yaml.safe_load_all(replace(text))}


def test_manifest_of_the_agent_by_schema():
    """What it has in comments, too: the probes of an agent that serves."""
    found = agent_manifest()
    serving = agent_manifest(lambda text: re.sub(r"^( +)#(?=\w)", r"\1", text, flags=re.M))["DaemonSet"]
    (container,) = serving["spec"]["template"]["spec"]["containers"]
    assert [container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")] == ["/healthz", "/readyz"]
    assert set(found) == {"Namespace", "ConfigMap", "DaemonSet"}
    for document in [*found.values(), serving]:
        good, told = conforms(document)
        assert good, told
    found["ConfigMap"]["data"] = ["epoch"]
    good, told = conforms(found["ConfigMap"])
    assert not good and "expected object" in told


def expand(container, facts):
    """The container's arguments as the kubelet gives them, with its environment, of such facts of the pod."""
    named = {one["name"]: facts[one["valueFrom"]["fieldRef"]["fieldPath"]] for one in container["env"]}
    return [re.sub(r"\$\((\w+)\)", lambda found: named[found.group(1)], word) for word in container["args"]]


def mount_config(folder, data):
    """Files as the kubelet gives a ConfigMap's: links into a folder that it replaces as a whole, below one that all may write to."""
    folder.mkdir()
    (folder / "..2026").mkdir()
    (folder / "..data").symlink_to("..2026")
    for name, text in data.items():
        (folder / "..2026" / name).write_text(text)
        (folder / name).symlink_to("..data/" + name)
    folder.chmod(0o777)


@needs_runc
def test_manifest_of_the_agent(dist, tmp_path):
    """Run as it says, but for the length of epochs, until SIGTERM: each process's samples, with the name of its container."""
    if containers.why_not():
        pytest.skip(containers.why_not())
    found = agent_manifest(lambda text: text.replace("epoch: 60s", "epoch: 1s"))
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    assert pod["tolerations"] == [{"operator": "Exists"}]
    mount_config(tmp_path / "config", found["ConfigMap"]["data"])
    (tmp_path / "profiles").mkdir()
    (tmp_path / "bundle").mkdir()
    mounts = mounts_of(pod, {"config": tmp_path / "config", "profiles": tmp_path / "profiles"})
    arguments = expand(pod["containers"][0], {"spec.nodeName": "node-7"})
    write_bundle(dist, tmp_path / "bundle", arguments, check_rights(pod), mounts)
    name, folder = "pybpf-agent-%d" % os.getpid(), tmp_path / "profiles" / "agent"
    with containers.container("fleet", containers.command("spin.py")) as one, open(tmp_path / "said", "w+", encoding="utf-8") as said:
        with harness.started(["runc", "run", name], cwd=tmp_path / "bundle", stdin=subprocess.DEVNULL, stdout=said, stderr=said) as agent:
            harness.wait_for(lambda: agent.poll() is not None or len(list(folder.glob("*.pybpf"))) >= 2)
            assert agent.poll() is None, (tmp_path / "said").read_text()
            run(["runc", "kill", name, "TERM"])
            assert agent.wait(harness.PATIENCE) == 0, (tmp_path / "said").read_text()
    report = harness.pybpf("report", "-q", "-f", "json", folder)
    assert report.code == 0, report
    seen = json.loads(report.out)
    assert one.id in {process.get("container") for process in seen["processes"]}, report.out
    assert seen["facts"]["host"] == "node-7"
