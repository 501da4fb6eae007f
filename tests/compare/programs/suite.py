# SPDX-License-Identifier: Apache-2.0
"""networkx's tests of flows, in which it takes longer to add an edge: suite.py, until the tests end."""
import gc
import sys

import pytest
import slower

slower.install("networkx.classes.digraph", "DiGraph.add_edge")
# The collector's time belongs to whoever allocates when it is due: with more calls of add_edge it would move to others.
gc.disable()
SUITES = ("flow", "shortest_paths", "centrality")
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "--pyargs", *("networkx.algorithms." + name for name in SUITES)]))
