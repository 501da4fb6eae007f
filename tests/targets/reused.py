# SPDX-License-Identifier: Apache-2.0
"""Code objects that live for some milliseconds: the next one is made where the last one was.

Function made_N is in file_N.py and calls at line N % 500 + 2: a mix of two code objects shows.
"""

import expect


def burn():
    sum(range(20000))  # burn: hot


def run(number):
    name = "made_%d" % number
    source = "def %s(burn):\n%s    burn()\n" % (name, "\n" * (number % 500))
    scope = {}
    exec(compile(source, "file_%d.py" % number, "exec"), scope)
    scope[name](burn)


def main():
    number = 0
    while True:
        number += 1
        run(number)


if __name__ == "__main__":
    wanted = expect.describe(__file__)
    expect.ready(wanted)
    main()  # <module> > main
