# SPDX-License-Identifier: Apache-2.0
"""Functions that have the same objects in their variables, and others that look the same; says their addresses."""

import json
import os
import sys
import threading
import time

said = {}


class Account(object):
    def __init__(self, balance):
        self.balance = balance
        self.owner = "the owner of the account number %d" % balance

    def outer(self, config):
        other = Account(1)
        said.update(self=id(self), other=id(other), config=id(config), lock=id(lock), second=id(second))
        self.middle(config, other, [self, other])

    def middle(self, settings, other, rows):
        method = self.middle
        again, config = self, {"another": "of the same name, which is long enough to count"}
        self.inner(settings, config, rows, method, again)

    def inner(self, settings, config, rows, method, again):
        text = "a text that is long enough to be told briefly"
        same = text
        one, two, alone = lock, second, Alone()
        print(json.dumps({"pid": os.getpid(), "ids": said}))
        sys.stdout.flush()
        time.sleep(1000)
        return text, same, one, two, alone


class Alone(object):
    pass


lock, second = threading.Lock(), threading.Lock()

if __name__ == "__main__":
    Account(1).outer({"host": "10.0.0.1", "port": 5432, "why": "it is long enough to be told briefly"})
