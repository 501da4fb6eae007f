# SPDX-License-Identifier: Apache-2.0
"""pybpf agent --dir on a disk that is full, or does not answer, and without its other processes: nothing is lost in silence."""

import contextlib
import os
import shutil
import signal
import subprocess

import pytest

import harness
from test_agent import agent, epochs
from test_agent_push import named
from test_agent_serve import metrics, served

NEEDED = ("mkfs.ext4", "fsfreeze")


@contextlib.contextmanager
def mounted(folder, *args):
    folder.mkdir()
    done = subprocess.run(["mount", *args, folder], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("nothing can be mounted here: " + done.stderr)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


@contextlib.contextmanager
def frozen(folder):
    """A disk of which a snapshot is made."""
    subprocess.run(["fsfreeze", "--freeze", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", folder], check=True)


def ended(ask):
    return metrics(ask)["pybpf_epochs_total"]


def after_some_epochs(ask, count):
    """The metrics after so many more epochs have ended."""
    until = ended(ask) + count
    return harness.wait_for(lambda: metrics(ask) if ended(ask) >= until else None)


def add_up(ask):
    """Some epochs were lost, and all are written or lost at last, but for the last one, which may be on its way."""

    def read():
        now = metrics(ask)
        lost = now['pybpf_epochs_unwritten_total{mode="cpu"}']
        return now["pybpf_epochs_total"], now['pybpf_files_written_total{mode="cpu"}'] + lost, lost

    def settled():
        ends, known, lost = read()
        return (ends, known, lost) if known >= ends - 1 else None

    ends, known, lost = harness.wait_for(settled)
    assert lost >= 1 and known <= ends


@pytest.mark.skipif(not all(map(shutil.which, NEEDED)), reason="%s and %s are not installed" % NEEDED)
def test_a_disk_that_does_not_answer(tmp_path):
    """Two epochs wait for it, further ones are lost."""
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(8 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    with mounted(tmp_path / "disk", "-o", "loop", image) as disk:
        with served(disk / "epochs", "--epoch", "1s", "--fixed-epochs") as (process, ask):
            after_some_epochs(ask, 1)
            with frozen(disk):
                meanwhile = after_some_epochs(ask, 3)
            harness.wait_for(lambda: len(epochs(disk / "epochs")) > meanwhile['pybpf_files_written_total{mode="cpu"}'] + 1)
            add_up(ask)
            process.terminate()
            err = process.communicate(timeout=harness.PATIENCE)[1]
        assert process.returncode == 0 and "those before it are not on the disk of %s yet" % (disk / "epochs") in err, err


def test_a_full_disk(tmp_path):
    """Each epoch is written, or is counted and said."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=64k,mode=0700", "none") as disk:
        with served(disk / "epochs", "--epoch", "1s", "--fixed-epochs") as (process, ask):
            after_some_epochs(ask, 1)
            with contextlib.suppress(OSError), open(disk / "rest", "wb", buffering=0) as rest:
                while True:
                    rest.write(bytes(4096))
            after_some_epochs(ask, 2)
            add_up(ask)
            now = metrics(ask)
            process.terminate()
            err = process.communicate(timeout=harness.PATIENCE)[1]
        assert now['pybpf_files_failed_total{mode="cpu"}'] == now['pybpf_epochs_unwritten_total{mode="cpu"}'] >= 1, now
        assert process.returncode == 0 and "cannot write an epoch: No space left on device" in err, err


@pytest.mark.parametrize("name, words", [
    ("pybpf-maker", "processes that start cannot be sampled any more"),
    ("pybpf-keeper", "no more epochs can be written"),
])
def test_without_another_process_it_ends(tmp_path, name, words):
    """So that a service manager starts it again. Without helpers it would go on, and see no process that starts."""
    with agent(tmp_path / "epochs", "--epoch", "1h") as process:
        # A helper that was just forked still has its maker's name, and comes after it.
        pid = harness.wait_for(lambda: named(process.pid, name))[0]
        # It samples: what ends before that is another sentence's.
        harness.wait_for(lambda: harness.is_attached(process.pid))
        os.kill(pid, signal.SIGKILL)
        err = process.communicate(timeout=harness.PATIENCE)[1]
    assert process.returncode == 1 and words in err, err
