# SPDX-License-Identifier: Apache-2.0
"""A WSGI application: a signed cookie, a page of a catalogue, a compressed answer. Rows may take longer to write."""
import base64
import hashlib
import hmac
import html
import json
import random
import string
import urllib.parse
import zlib

import slower

KEY = b"not a secret"
ROW = string.Template("<tr><td>$sku</td><td>$name</td><td>$price</td><td>$stock</td></tr>")
PAGE = string.Template("<!doctype html><title>$title</title><table>$rows</table>")
WORDS = "amber birch cedar delta ember flint grove hazel iris juniper".split()


def catalogue(count):
    numbers = random.Random(5)
    return [
        {
            "sku": "SKU-%05d" % number,
            "name": " & ".join(numbers.sample(WORDS, 3)),
            "price": numbers.randrange(199, 99900),
            "stock": numbers.randrange(500),
        }
        for number in range(count)
    ]


PRODUCTS = catalogue(1500)


def sign(session):
    body = base64.urlsafe_b64encode(json.dumps(session, sort_keys=True).encode())
    return body + b"." + hmac.new(KEY, body, hashlib.sha256).hexdigest().encode()


def read_session(cookie):
    body, _, signature = cookie.partition(b".")
    if not hmac.compare_digest(hmac.new(KEY, body, hashlib.sha256).hexdigest().encode(), signature):
        return {}
    return json.loads(base64.urlsafe_b64decode(body))


def chosen(products, word, least):
    return [product for product in products if word in product["name"] and product["stock"] >= least]


def price(cents):
    return "%d.%02d" % divmod(cents, 100)


def row(product):
    return ROW.substitute(
        sku=product["sku"], name=html.escape(product["name"]), price=price(product["price"]), stock=product["stock"]
    )


slower.install(__name__, "chosen")


def page(query):
    word = query.get("word", ["birch"])[0]
    found = chosen(PRODUCTS, word, int(query.get("least", ["100"])[0]))
    found.sort(key=lambda product: (product["price"], product["sku"]))
    return PAGE.substitute(title=html.escape(word), rows="".join(row(product) for product in found[:40]))


def application(environ, start_response):
    session = read_session(sign({"user": 7, "cart": WORDS}))
    query = urllib.parse.parse_qs(environ.get("QUERY_STRING") or "word=%s&least=50" % session["cart"][1])
    body = zlib.compress(page(query).encode(), 4)
    start_response("200 OK", [("Content-Length", str(len(body))), ("Content-Encoding", "deflate")])
    return [body]
