# SPDX-License-Identifier: Apache-2.0
"""pybpf on a terminal."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import tempfile
import termios

import harness


class Terminal:
    """Runs pybpf with its stdout on a terminal, and keeps what it shows."""

    def __init__(self, *args, columns=0, command=(harness.PYBPF,), **environment):
        self.shown = b""
        keyboard, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if columns else 0, columns, 0, 0))
        complaints = tempfile.TemporaryFile()  # a pipe could fill up while only the terminal is read
        try:
            process = subprocess.Popen(
                [*command, *map(str, args)], stdin=terminal, stdout=terminal, stderr=complaints,
                env={"PATH": os.environ["PATH"], "TERM": "dumb", **environment}, close_fds=False,
            )
            os.close(terminal)
            while select.select([keyboard], [], [], harness.PATIENCE)[0]:
                try:
                    part = os.read(keyboard, 65536)
                except OSError:  # nobody has the terminal open any more
                    break
                if not part:
                    break
                self.shown += part
            self.code = process.wait(timeout=harness.PATIENCE)
            complaints.seek(0)
            self.err = complaints.read().decode()
        finally:
            complaints.close()
            os.close(keyboard)

    def lines(self):
        return self.shown.decode().replace("\r\n", "\n").splitlines()
