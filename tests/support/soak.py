"""Whether heavy tests run in full (`make soak` sets REDRAFT_SOAK=1) or with the counts of CI.

Invariant: it is looked up once, before any test runs, since `conftest.sealed` takes our variables away from each.
"""

import os

SOAK = os.environ.get("REDRAFT_SOAK") == "1"
