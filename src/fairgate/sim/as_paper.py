"""The experiment of EE section VI as one setting, `fairgate sim PROTOCOL --as-paper`.

The paper's protocols have no leases, and nodes that wait ask no second time. Its tables 1 and 2 give the number of
nodes, resources, replicas, rounds and requests; 1,000 nodes have 10 resources, 6,500 have 65. The requests are per
resource, and Sigma's responses are routed, because only so its figures come out (papers/e2e.md).
"""

from dataclasses import replace
from typing import Any

from fairgate.errors import BadInput
from fairgate.sim.config import Config

OPTIONS: dict[str, dict[str, Any]] = {
    "sigma": {"lease": 0, "retry": 0, "responses": "routed"},
    "e2e": {},
    "non_e2e": {},
    "non_e2e_faults": {"lease": 0},
}
REPLICAS = 10
REQUESTERS = 400  # under churn: the paper says that requesters are not churned, but not how many there are
DEFAULT = Config()


def as_paper(config: Config) -> Config:
    """The configuration with the paper's settings wherever it has the defaults of `fairgate sim`."""
    if config.protocol not in OPTIONS:
        raise BadInput(f"--as-paper is for {', '.join(OPTIONS)}, not {config.protocol}")
    settings: dict[str, Any] = {
        "workload": "rounds",
        "rounds": 20,
        "requests": 20,
        "per_resource": True,
        "resources": max(1, config.nodes // 100),
        "latency": "0.05",
        "stack": ("settled_pastry",),
    }
    if config.churn:
        settings["requesters"] = min(REQUESTERS, config.nodes)
    unset = {name: value for name, value in settings.items() if getattr(config, name) == getattr(DEFAULT, name)}
    options = {"replicas": min(REPLICAS, config.nodes), **OPTIONS[config.protocol], **config.options}
    return replace(config, **unset, options=options)
