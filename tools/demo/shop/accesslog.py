# SPDX-License-Identifier: Apache-2.0
"""Parses the access log."""
import re
from collections import namedtuple

LINE = re.compile(
    r'(?P<client>\d+\.\d+\.\d+\.\d+) \S+ \S+ \[(?P<time>\d+)\] "(?P<method>[A-Z]+) (?P<path>\S+) [^"]*" '
    r'(?P<status>\d{3}) (?P<size>\d+) "[^"]*" "(?P<agent>[^"]*)"(?: (?P<order>\{.*\}))?$'
)
NUMBER = re.compile(r"\d+")
Request = namedtuple("Request", "client time path status size agent order")


def normalise(path):
    """/product/123 and /product/99 are the same page."""
    return NUMBER.sub("N", path.partition("?")[0])


def parse_line(line):
    match = LINE.match(line)
    if not match:
        return None
    return Request(
        match.group("client"),
        int(match.group("time")),
        normalise(match.group("path")),
        int(match.group("status")),
        int(match.group("size")),
        match.group("agent"),
        match.group("order"),
    )


def requests(lines):
    for line in lines:
        request = parse_line(line)
        if request:
            yield request


def sessions(found, gap=1800):
    """Requests of one client that follow each other closely."""
    open_sessions = {}
    for request in found:
        session = open_sessions.get(request.client)
        if session is None or request.time - session[-1].time > gap:
            session = open_sessions[request.client] = []
            yield session
        session.append(request)
