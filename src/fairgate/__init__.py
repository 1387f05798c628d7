"""fairgate: fair distributed locks and k-semaphores with no server.

`FAIRGATE_PURE=1` makes this package import its plain Python files even where compiled ones lie
beside them: to debug, to profile, to compare, and to run mutants (C classes refuse patching).
"""

import os

__version__ = "0.1.0"

if os.environ.get("FAIRGATE_PURE"):
    from fairgate._pure import prefer_source

    prefer_source()
