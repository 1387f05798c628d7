"""`fairgate peer --print-unit`: a systemd unit that runs this peer.

The command is written anew from its options, because a unit starts in another directory and with another environment:
paths are absolute, and what the environment has said is in the unit.
"""

import hashlib
import math
import os
import pwd
import sys
from collections.abc import Sequence

from fairgate.cli.network.options import CREATE_OPTIONS, OBSERVE_OPTIONS, flag
from fairgate.cli.network.settings import NOTHING_SAID, NetworkSettings
from fairgate.net import secret
from fairgate.net.address import UnixAddress
from fairgate.net.keys_folder import keys_folder

SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:,=+@-")
IN_NAMES = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
CLUSTER, METRICS = "cluster", "metrics"
LONGEST_NAME = 200  # of the readable part of a unit's name; systemd allows a few more
DIGITS = 8  # of what makes it unique
STOP_SECONDS = 30  # that a peer has to leave, after it has drained
PATHS = ("keys", "state", "secret", "journal")

UNIT = """\
# Save this as /etc/systemd/system/{name}.service, then: systemctl daemon-reload && systemctl enable --now {name}
{remark}[Unit]
Description={description}
{after}
[Service]
Type=notify
User={user}
{environment}ExecStart={command}
{restart}
KillMode=mixed
TimeoutStopSec={stop}

[Install]
WantedBy=multi-user.target
"""
CREATES = "# The same command creates the cluster at its first start and joins it again after every other one.\n"
NETWORK = "Wants=network-online.target\nAfter=network-online.target\nStartLimitIntervalSec=0\n"
IN_CLUSTER = "TimeoutStartSec=infinity\nRestart=always\nRestartSec=1"  # it gives up by itself: --join-timeout
ON_HOST = "Restart=on-failure\nRestartPreventExitStatus=2"


def unit(
    network: NetworkSettings, gates: Sequence[str], k: int, protocol: str | None, group: str | None, drain: float
) -> str:
    gates = [os.path.abspath(gate) if "/" in gate else gate for gate in gates]
    words = ["peer", *gates]
    given = {"-k": str(k) if k != 1 else None, "--protocol": protocol, "--group": group}
    words += [word for name, value in given.items() if value is not None for word in (name, value)]
    words += ["--drain", shortest(drain)] if drain else []
    words += network_words(network)
    called = os.path.abspath(sys.argv[0])
    program = [sys.executable, "-m", "fairgate"] if called.endswith("__main__.py") else [called]
    folder = os.environ.get("FAIRGATE_DIR") and os.path.abspath(os.environ["FAIRGATE_DIR"])
    variable = quoted(f"FAIRGATE_DIR={folder}", in_command=False) if folder else ""
    user = user_name()
    if network.between_hosts:
        owner, names, description = CLUSTER, [network.name], f"standing peer of cluster {network.name}"
    elif gates:
        owner, names, description = user, gates, f"keeps {', '.join(gates)} open"
    else:
        owner, names, description = user, [], "metrics of the gates of this host"
    return UNIT.format(
        name=unit_name(owner, names, folder or ""),
        remark=CREATES if network.create else "",
        description=f"fairgate, {description}".replace("%", "%%").replace("\\", "\\\\"),  # one at the end continues it
        after=NETWORK if network.between_hosts else "",
        user=user,
        environment=f"Environment={variable}\n" if variable else "",
        command=" ".join(map(quoted, [*program, *words])),
        restart=IN_CLUSTER if network.between_hosts else ON_HOST,
        stop=STOP_SECONDS + math.ceil(drain),
    )


def network_words(network: NetworkSettings) -> list[str]:
    """The network options that were given, and those that the environment has said or that must not change."""
    values = {name: getattr(network, name) for name in (*CREATE_OPTIONS, *OBSERVE_OPTIONS)}
    if network.between_hosts:
        values["state"] = network.state_folder(network.join)
        unix = any(isinstance(address, UnixAddress) for address in network.addresses(network.join))
        values["keys"] = network.keys or keys_of_environment(network)
        values["secret"] = network.secret or (None if unix else os.environ.get(secret.VARIABLE))
    words = []
    for name, value in values.items():
        if value == getattr(NOTHING_SAID, name):
            continue
        if value is True:
            words.append(flag(name))
        for one in value if isinstance(value, tuple) else () if value is True else (value,):
            text = shortest(one) if isinstance(one, float) else str(one)
            words += [flag(name), os.path.abspath(text) if name in PATHS else text]
    return words


def keys_of_environment(network: NetworkSettings) -> str | None:
    """The keys folder that it needs, unless the unit's user finds the same one without this environment."""
    needed = network.leaves_host(network.join) and not network.insecure
    chosen = keys_folder()
    return str(chosen) if needed and chosen != keys_folder({"HOME": home()}) else None


def unit_name(owner: str, names: Sequence[str], folder: str) -> str:
    """Without what would have to be quoted in a shell or escaped in a unit. Other peers' units have other names.

    Where the readable part could be another peer's too, a digest follows of what it leaves out.
    """
    readable = "-".join([owner, *[name.lstrip("/") for name in names or [METRICS]]])
    plain = "".join([char if char in IN_NAMES else "-" for char in readable])[:LONGEST_NAME]
    certain = len(names) == 1 and names != [METRICS] and "-" not in owner and not folder
    if (not names and not folder) or (certain and plain == readable == f"{owner}-{names[0]}"):
        return f"fairgate-{plain}"
    digest = hashlib.sha256("\0".join([folder, owner, *names]).encode(errors="surrogateescape")).hexdigest()
    return f"fairgate-{plain}-{digest[:DIGITS]}"


def shortest(number: float) -> str:
    """The number in full: `1234567.5`, not `1.23457e+06`."""
    return repr(number).removesuffix(".0")


def user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def home() -> str:
    """Of the unit's user, as systemd sets it."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        return "/"


def quoted(word: str, in_command: bool = True) -> str:
    """As systemd reads it: not the same as in a shell. Only a command has variables."""
    word = word.replace("%", "%%")
    if word and SAFE.issuperset(word.replace("%", "")):
        return word
    if in_command:
        word = word.replace("$", "$$")
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'
