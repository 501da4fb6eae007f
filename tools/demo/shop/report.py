# SPDX-License-Identifier: Apache-2.0
"""What the back office reads in the morning."""
from collections import Counter, defaultdict


def by_importance(item):
    page, (hits, size, errors) = item
    return -errors * 100 - hits, size, page


def pages(requests):
    table = defaultdict(lambda: [0, 0, 0])
    for request in requests:
        row = table[request.path]
        row[0] += 1
        row[1] += request.size
        row[2] += request.status >= 500
    return sorted(table.items(), key=by_importance)


def percentile(values, share):
    ordered = sorted(values)
    return ordered[int(share * (len(ordered) - 1))]


def shingles(text, width=3):
    return {text[i:i + width] for i in range(len(text) - width + 1)}


def similarity(left, right):
    a, b = shingles(left), shingles(right)
    return len(a & b) / float(len(a | b) or 1)


def suspects(sessions, limit=40):
    """Clients whose walk through the shop resembles one another's, as that of robots does."""
    walks = sorted(("".join(r.path for r in s) for s in sessions), key=len, reverse=True)[:limit]
    return sum(similarity(a, b) > 0.8 for i, a in enumerate(walks) for b in walks[:i])


def summary(requests, sessions, ledger):
    customers = Counter()
    for _, record in ledger.entries:
        customers[record["customer"]] += record["net"]
    return {
        "pages": pages(requests)[:10],
        "p95": percentile([request.size for request in requests], 0.95),
        "robots": suspects(sessions),
        "best": customers.most_common(5),
    }
