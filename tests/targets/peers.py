# SPDX-License-Identifier: Apache-2.0
"""Threads that read from unix sockets, each called after whom its socket is connected to; says the inodes of the sockets."""

import json
import os
import socket
import sys
import tempfile
import threading
import time

# Abstract names may have any bytes.
ODD = "\0odd\nname"


def listens(name):
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen(5)
    return server


def connects(name):
    client = socket.socket(socket.AF_UNIX)
    client.connect(name)
    return client


path = os.path.join(tempfile.mkdtemp(), "s")
abstract = "\0peers-%d" % os.getpid()
servers = [listens(path), listens(abstract), listens(ODD + str(os.getpid()))]
pair = socket.socketpair()
bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
bound.bind(path + ".d")
sockets = {
    "pair": pair[0],
    "path": connects(path),
    "abstract": connects(abstract),
    "odd": connects(ODD + str(os.getpid())),
    "bound": bound,
}
# A connection that waits to be accepted has no peer with a name yet.
accepted = [server.accept()[0] for server in servers]
sockets["accepted"] = accepted[0]


def stand(name):
    sockets[name].recv(1)


for name in sockets:
    thread = threading.Thread(target=stand, args=(name,), name=name)
    thread.daemon = True
    thread.start()
time.sleep(0.3)
inodes = dict((name, os.fstat(sockets[name].fileno()).st_ino) for name in sockets)
print(json.dumps({"pid": os.getpid(), "path": path, "inodes": inodes}))
sys.stdout.flush()
time.sleep(1000)
