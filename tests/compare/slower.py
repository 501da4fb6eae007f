# SPDX-License-Identifier: Apache-2.0
"""Makes one function of a program slower: as many calls as a percentage says are made twice.

The wrapper is there with 0 % as well, so that a program and its slower variant have the same functions.
"""
import functools
import importlib
import os
import random

VARIABLE = "PYBPF_COMPARE_PERCENT"


def wrap(function, percent):
    draw = random.Random(14).random  # no pattern that calls could be in step with

    @functools.wraps(function)
    def repeated(*args, **kwargs):
        if draw() * 100 < percent:
            function(*args, **kwargs)
        return function(*args, **kwargs)

    return repeated


def install(module, name):
    """name: of a function, or Class.method, that may be called twice."""
    owner = importlib.import_module(module)
    *classes, last = name.split(".")
    for part in classes:
        owner = getattr(owner, part)
    setattr(owner, last, wrap(getattr(owner, last), float(os.environ[VARIABLE])))
