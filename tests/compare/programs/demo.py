# SPDX-License-Identifier: Apache-2.0
"""The demo's shop, in which a line of the access log takes longer to parse: demo.py SECONDS."""
import slower
from shop import __main__ as shop

slower.install("shop.accesslog", "parse_line")
shop.main()
