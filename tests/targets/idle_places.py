# SPDX-License-Identifier: Apache-2.0
"""idle_places.py KIND: threads that wait for work in a pool or loop, each woken now and then; the main thread sleeps or serves.

The functions nudge() and consumer() are the program's own: they wait, too, and for no pool's work.
"""

import json
import os
import socket
import sys
import threading
import time

try:
    import queue
except ImportError:
    import Queue as queue

NAP_S = 0.05


def work():
    return sum(range(100))


def nudge(call):
    """No thread is to sleep throughout a run."""
    call()
    sys.stdout.write(json.dumps({"pid": os.getpid()}) + "\n")
    sys.stdout.flush()
    while True:
        call()
        time.sleep(NAP_S)


def start(target, *args):
    thread = threading.Thread(target=target, args=args)
    thread.daemon = True
    thread.start()
    return thread


def executor():
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(2)
    nudge(lambda: pool.submit(work).result())


def process_executor():
    from concurrent.futures import ProcessPoolExecutor

    pool = ProcessPoolExecutor(2)
    nudge(lambda: pool.submit(work).result())


def pool():
    import multiprocessing

    workers = multiprocessing.Pool(2)
    nudge(lambda: workers.apply(work))


def thread_pool():
    from multiprocessing.pool import ThreadPool

    workers = ThreadPool(2)
    nudge(lambda: workers.apply(work))


def knock(port):
    socket.create_connection(("127.0.0.1", port)).close()


def server():
    try:
        import socketserver
    except ImportError:
        import SocketServer as socketserver

    serving = socketserver.TCPServer(("127.0.0.1", 0), socketserver.BaseRequestHandler)
    start(serving.serve_forever)
    nudge(lambda: knock(serving.server_address[1]))


def serve_http():
    """A server that keeps its connections open, and one of these."""
    try:
        from http.server import BaseHTTPRequestHandler, HTTPServer
        from socketserver import ThreadingMixIn
    except ImportError:
        from BaseHTTPServer import BaseHTTPRequestHandler, HTTPServer
        from SocketServer import ThreadingMixIn

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    class Server(ThreadingMixIn, HTTPServer):
        daemon_threads = True

    serving = Server(("127.0.0.1", 0), Handler)
    start(serving.serve_forever)
    connection = socket.create_connection(serving.server_address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def take_answer(connection):
    answer = b""
    while not answer.endswith(b"\r\n\r\n"):
        answer += connection.recv(4096)


def keep_alive():
    """The server's thread waits for the next request."""
    connection = serve_http()

    def ask():
        connection.sendall(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
        take_answer(connection)

    nudge(ask)


def slow_headers():
    """The server's thread waits in the middle of each request."""
    connection = serve_http()
    connection.sendall(b"GET / HTTP/1.1\r\n")

    def ask():
        connection.sendall(b"Host: here\r\n\r\n")
        take_answer(connection)
        connection.sendall(b"GET / HTTP/1.1\r\n")

    nudge(ask)


# No Python 2 can parse it.
LOOP = """
async def main():
    serving = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    start(nudge, lambda: knock(serving.sockets[0].getsockname()[1]))
    await asyncio.sleep(1000)

async def asks():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        start(answer, listener)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        while True:
            writer.write(b"?")
            await reader.readexactly(1)
"""


def answer(listener):
    """What a database does."""
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    nudge(lambda: connection.sendall(connection.recv(1)))


def run_loop(name):
    import asyncio

    functions = dict(globals(), asyncio=asyncio)
    exec(LOOP, functions)
    asyncio.get_event_loop().run_until_complete(functions[name]()) if sys.version_info < (3, 7) else asyncio.run(functions[name]())


def loop():
    """Its server is idle, and so is the loop; another thread knocks."""
    run_loop("main")


def asking_loop():
    """It has nothing to do but waits for what another thread answers."""
    run_loop("asks")


def consumer(jobs):
    """The program's own: the queue is all that it waits for, but nobody knows whether others wait for it."""
    while True:
        jobs.get()


def consumers():
    jobs = queue.Queue()
    start(consumer, jobs)
    nudge(lambda: jobs.put(1))


def accepts():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(5)

    def acceptor():
        while True:
            listener.accept()[0].close()

    start(acceptor)
    nudge(lambda: knock(listener.getsockname()[1]))


def shutdown():
    """The main thread is at its end, and waits for the others."""
    thread = threading.Thread(target=nudge, args=(work,))
    thread.start()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
