# SPDX-License-Identifier: Apache-2.0
"""A server with a thread for each client. A client's first line says what its thread is called and what it does then:

    NAME holds       takes a lock, and waits for its client's lines, each of which it answers
    NAME lock        waits for that lock
    NAME condition   waits to be notified
    NAME event       waits until an event is set
    NAME queue       waits for an item
    NAME sleep
    NAME pipe        reads from a pipe
    NAME select      waits for the pipe or its client's next line
    NAME echo        waits for its client's lines, each of which it answers
    NAME spin
    NAME stacks      answers with the stack of each other thread, as sys._current_frames() has it, and ends
"""

import json
import os
import select
import sys
import threading
import time

import expect

try:
    import queue
    import socketserver
except ImportError:
    import Queue as queue
    import SocketServer as socketserver

held = threading.Lock()
condition = threading.Condition()
event = threading.Event()
items = queue.Queue()
reads, writes = os.pipe()


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        name, does = self.rfile.readline().decode().split()
        threading.current_thread().name = name
        if does != "stacks":
            self.wfile.write(b"begins\n")
        getattr(self, "do_" + does)()

    def do_holds(self):
        with held:
            self.do_echo()

    def do_lock(self):
        held.acquire()

    def do_condition(self):
        with condition:
            condition.wait()

    def do_event(self):
        event.wait()

    def do_queue(self):
        items.get()

    def do_sleep(self):
        time.sleep(1000)

    def do_pipe(self):
        os.read(reads, 1)

    def do_select(self):
        select.select([reads, self.connection], [], [])

    def do_echo(self):
        while True:
            line = self.connection.recv(1000)
            if not line:
                return
            self.connection.sendall(line)

    def do_spin(self):
        while True:
            pass

    def do_stacks(self):
        names = dict((thread.ident, thread.name) for thread in threading.enumerate())
        own = threading.current_thread().ident
        frames = sys._current_frames()
        stacks = dict((names[ident], expect.chain(frame)) for ident, frame in frames.items() if ident != own)
        self.wfile.write(json.dumps(stacks).encode() + b"\n")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 400


def main():
    server = Server(("127.0.0.1", 0), Handler)
    print(json.dumps({"pid": os.getpid(), "port": server.server_address[1]}))
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
