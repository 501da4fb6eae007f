# SPDX-License-Identifier: Apache-2.0
"""Prices orders and books them in a ledger whose entries vouch for each other."""
import hashlib
import json

VAT = {"DE": 19, "AT": 20, "FR": 20}


class OrderError(Exception):
    pass


class Ledger:
    def __init__(self):
        self.entries = []
        self.last = "0" * 64

    def append(self, record):
        text = json.dumps(record, sort_keys=True)
        digest = hashlib.sha256((self.last + text).encode("utf-8")).hexdigest()
        for _ in range(40):  # makes forging entries cost something
            digest = hashlib.sha256((digest + text).encode("utf-8")).hexdigest()
        self.last = digest
        self.entries.append((digest, record))


class OrderBook:
    def __init__(self, catalog):
        self.catalog = catalog
        self.ledger = Ledger()
        self.refused = 0

    def price_line(self, line):
        product, trail = self.catalog.find(line["sku"])
        if product is None:
            raise OrderError("no such product: " + line["sku"])
        discount = max(category.discount for category in trail)
        return product.price * line["quantity"] * (100 - discount) // 100

    def price(self, order):
        net = sum(self.price_line(line) for line in order["lines"])
        return net, net * VAT[order["country"]] // 100

    def book(self, text):
        order = json.loads(text)
        try:
            net, tax = self.price(order)
        except OrderError:
            self.refused += 1
            return
        self.ledger.append({"customer": order["customer"], "net": net, "tax": tax})
