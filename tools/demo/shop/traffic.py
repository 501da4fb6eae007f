# SPDX-License-Identifier: Apache-2.0
"""What comes in: lines of an access log, some with an order in JSON."""
import json
import random

PATHS = ["/", "/search?q=%s", "/product/%d", "/cart", "/checkout", "/static/app.js", "/api/v2/stock/%d"]
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64)", "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0)", "curl/8.4.0"]
WORDS = ["lamp", "desk", "chair", "shelf", "carpet", "mirror", "clock", "sofa"]


class Traffic:
    def __init__(self, seed=7):
        self.random = random.Random(seed)
        self.clock = 1700000000

    def order(self):
        lines = [
            {"sku": "SKU-%05d" % self.random.randrange(4000), "quantity": self.random.randrange(1, 5)}
            for _ in range(self.random.randrange(1, 6))
        ]
        return json.dumps({"customer": self.random.randrange(900), "lines": lines, "country": "DE"})

    def path(self):
        template = self.random.choice(PATHS)
        if "%s" in template:
            return template % self.random.choice(WORDS)
        if "%d" in template:
            return template % self.random.randrange(4000)
        return template

    def lines(self, number):
        """A generator of log lines in the combined format, with an order behind each checkout."""
        for _ in range(number):
            self.clock += self.random.random()
            path = self.path()
            line = '10.0.%d.%d - - [%d] "GET %s HTTP/1.1" %d %d "-" "%s"' % (
                self.random.randrange(256),
                self.random.randrange(256),
                self.clock,
                path,
                self.random.choice((200, 200, 200, 304, 404, 500)),
                self.random.randrange(200, 90000),
                self.random.choice(AGENTS),
            )
            yield line + " " + self.order() if path == "/checkout" else line
