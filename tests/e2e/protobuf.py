# SPDX-License-Identifier: Apache-2.0
"""Messages of protobuf, without their descriptions: what is in the fields of a number."""


def number(data, at):
    """A number of protobuf, and where the next thing begins."""
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a message: a number or bytes each."""
    at = 0
    while at < len(data):
        key, at = number(data, at)
        if key & 7 == 0:
            value, at = number(data, at)
        else:
            size, at = number(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def of(data, *path):
    """All values at a path of field numbers."""
    for key, value in fields(data):
        if key == path[0]:
            yield from of(value, *path[1:]) if path[1:] else [value]


def numbers(packed):
    at = 0
    while at < len(packed):
        value, at = number(packed, at)
        yield value
