# SPDX-License-Identifier: Apache-2.0
"""Waits in an expression of a line that has several, with wide characters and tabs before it."""

import json
import os
import sys
import time


def waits(x):
	if x:	return (x,	time.sleep(1000))


class Wörter:
    def 漢字(self, ü):
        return [len("漢字"), waits(ü), len("漢字")]


def lines():
    return max(
        1,
        Wörter().漢字(1)[1],
    )


print(json.dumps({"pid": os.getpid()}))
sys.stdout.flush()
lines()
