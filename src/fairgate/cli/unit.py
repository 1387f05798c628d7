"""`fairgate peer --print-unit`: a systemd unit for the standing peer of this host."""

import getpass
import os
import shlex
import sys

UNIT = """\
# Save this as /etc/systemd/system/fairgate.service, then: systemctl enable --now fairgate
# The same command creates the cluster at its first start and joins it again after every other one.
[Unit]
Description=fairgate, standing peer of cluster {cluster}
Wants=network-online.target
After=network-online.target

[Service]
User={user}
ExecStart={command}
Restart=always
RestartSec=1
KillMode=mixed
TimeoutStopSec=30

[Install]
WantedBy=multi-user.target
"""


def unit(arguments: list[str], cluster: str, state: str | None) -> str:
    """The unit that runs `fairgate ARGUMENTS`."""
    words = [word for word in arguments if word != "--print-unit"]
    if state is not None and "--state" not in words:
        words += ["--state", os.path.abspath(state)]
    called = os.path.abspath(sys.argv[0])
    program = [sys.executable, "-m", "fairgate"] if called.endswith("__main__.py") else [called]
    command = shlex.join([*program, *words]).replace("%", "%%")
    return UNIT.format(cluster=cluster, user=getpass.getuser(), command=command)
