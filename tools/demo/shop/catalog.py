# SPDX-License-Identifier: Apache-2.0
"""Products in a tree of categories."""
import random


class Category:
    def __init__(self, name, discount):
        self.name = name
        self.discount = discount
        self.children = []
        self.products = {}

    def find(self, sku):
        """The product, and the categories on the way to it."""
        if sku in self.products:
            return self.products[sku], [self]
        for child in self.children:
            product, trail = child.find(sku)
            if product:
                return product, trail + [self]
        return None, []


class Product:
    def __init__(self, sku, price, stock):
        self.sku = sku
        self.price = price
        self.stock = stock


def build(depth=4, width=4, seed=11):
    numbers = random.Random(seed)
    skus = ("SKU-%05d" % number for number in range(4000))

    def category(level, name):
        node = Category(name, numbers.choice((0, 0, 2, 5)))
        if level == depth:
            for _ in range(16):
                sku = next(skus, None)
                if sku:
                    node.products[sku] = Product(sku, numbers.randrange(199, 99900), numbers.randrange(50, 5000))
        else:
            node.children = [category(level + 1, "%s.%d" % (name, n)) for n in range(width)]
        return node

    return category(0, "all")
