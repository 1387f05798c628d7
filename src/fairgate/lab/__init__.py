"""The lab: sweeps over the parameters of simulations, and the papers' figures made by them.

from fairgate import lab
rows = lab.sweep("fair_k", "bv95", nodes=[50, 100], rate=lab.logarithmic(0.01, 1, 8), trials=20)
outcome = lab.run("FK.3", size="quick")
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fairgate.lab.catalogue import run
    from fairgate.lab.grid import linear, logarithmic
    from fairgate.lab.sweeps import sweep

__all__ = ["linear", "logarithmic", "run", "sweep"]
MODULES = {"run": "catalogue", "linear": "grid", "logarithmic": "grid", "sweep": "sweeps"}


def __getattr__(name: str) -> "Any":
    """Import on first use: a contender of a live contest must start fast, and needs none of them."""
    from importlib import import_module  # noqa: PLC0415

    if name not in __all__:
        raise AttributeError(f"module 'fairgate.lab' has no attribute {name!r}")
    return getattr(import_module(f"fairgate.lab.{MODULES[name]}"), name)
