# SPDX-License-Identifier: Apache-2.0
"""A name server that knows one name, at an address of this machine's loopback that each process of tests has for itself."""
import contextlib
import os
import socket
import socketserver
import struct
import threading

ADDRESS = "127.%d.%d.1" % (1 + os.getpid() // 250 % 250, os.getpid() % 250)
NAME = "receiver.test"
QUESTION_AT = 12  # in a message (RFC 1035, 4.1)
TYPE_A = 1
ANSWERED, TRUNCATED, NO_SUCH_NAME = 0x8180, 0x8380, 0x8183  # flags


def answer(message, truncated):
    """NAME has 127.0.0.1, and no address of IPv6; no other name is there."""
    end = message.index(b"\0", QUESTION_AT) + 5
    question = message[QUESTION_AT:end]
    wanted = b"".join(bytes([len(part)]) + part.encode() for part in NAME.split("."))
    (kind,) = struct.unpack("!H", question[-4:-2])
    known = question[:-5] == wanted
    has = known and kind == TYPE_A and not truncated
    flags = NO_SUCH_NAME if not known else TRUNCATED if truncated else ANSWERED
    head = message[:2] + struct.pack("!HHHHH", flags, 1, has, 0, 0)
    record = struct.pack("!HHHIH", 0xc00c, TYPE_A, 1, 1, 4) + socket.inet_aton("127.0.0.1")
    return head + question + (record if has else b"")


@contextlib.contextmanager
def answering(by_tcp=False):
    """by_tcp: by UDP it says only that the answer is too long for it."""

    class Datagram(socketserver.BaseRequestHandler):
        def handle(self):
            message, sender = self.request
            sender.sendto(answer(message, by_tcp), self.client_address)

    class Stream(socketserver.StreamRequestHandler):
        def handle(self):
            while size := self.rfile.read(2):
                reply = answer(self.rfile.read(struct.unpack("!H", size)[0]), False)
                self.wfile.write(struct.pack("!H", len(reply)) + reply)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with socketserver.UDPServer((ADDRESS, 53), Datagram) as datagrams, Server((ADDRESS, 53), Stream) as streams:
        threads = [threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}) for one in (datagrams, streams)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for one, thread in zip((datagrams, streams), threads):
                one.shutdown()
                thread.join()
