"""The engine's clock. Pure code is told the time; this is where it comes from."""

import time
from functools import partial

# ns. It runs on while the machine sleeps, as whatever a lease protects does.
clock = partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
