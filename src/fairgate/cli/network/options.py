"""The options that `run`, `peer`, `who`, `top` and `break` share, each once: for argparse and for typer alike."""

import argparse
from collections.abc import Sequence

import msgspec

PANEL = "Between hosts"
BETWEEN_HOSTS = """\
Between hosts. One peer makes the cluster, stays, and keeps the list of its peers; the others join by the address of any
of them, and from then on gates are the cluster's, not this host's:

  fairgate peer --create --listen 10.0.0.5:7400 --keys /etc/fairgate       # on one host
  fairgate run gpu --join 10.0.0.5:7400 --keys /etc/fairgate -- ./train    # on any
  fairgate who --join 10.0.0.5:7400 --keys /etc/fairgate

Off this host everything is by TLS: `fairgate keys init` and `fairgate keys add HOST` make what --keys names. A peer
that is killed is not survived there (guarantee: none): what it held stays taken.
"""


class NetworkOption(msgspec.Struct, frozen=True):
    """One option. Its kind is bool, str, int, float, or list: then it may be given several times."""

    kind: type
    metavar: str
    help: str


OPTIONS = {
    "join": NetworkOption(
        list, "HOST:PORT", "Join the cluster in which this peer is. Several may be given: one will do."
    ),
    "mdns": NetworkOption(bool, "", "Find the cluster by its name, on the local network (needs the extra mdns)."),
    "create": NetworkOption(
        bool, "", "Make a new cluster, and keep the list of its peers. Nobody else ever makes one."
    ),
    "listen": NetworkOption(
        str, "HOST:PORT", "Where to listen. Left out, any free port where the cluster can reach us."
    ),
    "advertise": NetworkOption(
        str, "HOST:PORT", "Where others reach us, if that is another address (NAT, containers)."
    ),
    "cluster": NetworkOption(str, "NAME", "Its name: fairgate if left out. Peers of another name are refused."),
    "keys": NetworkOption(
        str,
        "DIR",
        "The keys of this host, for TLS: DIR has ca.crt and one host's .crt and .key, or name that .crt itself. Left"
        " out, ~/.config/fairgate/keys, if there is one and somebody is not on this host.",
    ),
    "insecure": NetworkOption(bool, "", "Do without TLS: whoever can reach us may enter, and read along."),
    "join_timeout": NetworkOption(float, "SECONDS", "Give up when nobody has answered for so long: 30 if left out."),
    "metrics": NetworkOption(
        int, "PORT", "Answer Prometheus on this port of the loopback (needs the extra metrics); 0: any."
    ),
    "journal": NetworkOption(
        str, "FILE", "Write every step to this file, for fairgate replay. {gate} stands for the gate."
    ),
}
INSPECT_OPTIONS = ("join", "mdns", "cluster", "keys", "insecure", "join_timeout")
JOIN_OPTIONS = ("join", "listen", "advertise", "mdns", "cluster", "keys", "insecure", "join_timeout")
CREATE_OPTIONS = ("create", *JOIN_OPTIONS)
OBSERVE_OPTIONS = ("metrics", "journal")


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def add_options(parser: argparse._ArgumentGroup, names: Sequence[str]) -> None:
    for name in names:
        option = OPTIONS[name]
        help = option.help[:1].lower() + option.help[1:].rstrip(".")
        if option.kind is bool:
            parser.add_argument(flag(name), dest=name, action="store_true", help=help)
        elif option.kind is list:
            parser.add_argument(flag(name), dest=name, action="append", default=[], metavar=option.metavar, help=help)
        else:
            parser.add_argument(flag(name), dest=name, type=option.kind, metavar=option.metavar, help=help)
