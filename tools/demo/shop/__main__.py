# SPDX-License-Identifier: Apache-2.0
"""python3 -m shop [SECONDS]: works through batches of traffic until time is up (60 s) or it is killed."""
import sys
import time

from shop import accesslog, catalog, orders, report, traffic


def work(batch, book):
    requests = list(accesslog.requests(batch))
    for request in requests:
        if request.order:
            book.book(request.order)
    return report.summary(requests, list(accesslog.sessions(requests)), book.ledger)


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60
    source = traffic.Traffic()
    end = time.time() + seconds
    batches = 0
    while time.time() < end:
        book = orders.OrderBook(catalog.build())
        summary = work(source.lines(4000), book)
        batches += 1
    print("%d batches, p95 of the last %d bytes" % (batches, summary["p95"]))


if __name__ == "__main__":
    main()
