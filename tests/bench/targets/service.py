# SPDX-License-Identifier: Apache-2.0
"""A web service, for WSGI and ASGI: a request is some work on a CPU, and the waits of the server itself."""

import json

ROWS = [{"id": i, "name": "row %d" % i, "tags": ["a", "b", str(i)]} for i in range(20)]


def answer():
    return json.dumps(sorted(ROWS, key=lambda row: row["name"])).encode()


def application(_, start_response):
    body = answer()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope, _, send):
    if scope["type"] != "http":
        return
    body = answer()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})
