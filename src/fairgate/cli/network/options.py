"""Network options that `run`, `peer`, `who`, `top` and `break` share, declared once."""

from fairgate.cli.durations import Duration

PANEL = "Several hosts"
BETWEEN_HOSTS = """\
several hosts:
  One peer creates the cluster; the others join through the address of any peer. With three standing
  peers (`fairgate peer`) a cluster survives the death of any one of them, with five that of any two.
  With --join or --mdns, GATE is a gate of that cluster, not of this host:

    fairgate peer --create --listen 10.0.0.5:7400 --keys /etc/fairgate       # on one host
    fairgate run gpu --join 10.0.0.5:7400 --keys /etc/fairgate -- ./train    # on any host
    fairgate who --join 10.0.0.5:7400 --keys /etc/fairgate

  Connections to other hosts use TLS: `fairgate keys init` and `fairgate keys add HOST` create the files
  that --keys names. If a peer is killed, its slots are free once its lease is over (guarantee: lease).

  On a host with a standing peer (`fairgate peer --create` or `--join`), `fairgate run --join` is its guest: it
  waits in a room of that peer, and needs no keys and no port. While that peer is being restarted, it waits for
  it, as long as -w allows.

  A cluster can also run on one host, over Unix sockets, to try a protocol: unix:PATH takes the place of
  HOST:PORT, and needs no keys. PATH is absolute, in a directory that only you can write to.
"""


class NetworkOption:
    """One option. `kind` is bool, str, int, float, Duration, or list for an option that may be repeated."""

    def __init__(self, kind: type, metavar: str, help: str) -> None:
        self.kind = kind
        self.metavar = metavar
        self.help = help


OPTIONS = {
    "join": NetworkOption(
        list,
        "HOST:PORT",
        "Address of any peer of the cluster, such as 10.0.0.5:7400, or unix:PATH. May be repeated: the first peer that"
        " answers is used.",
    ),
    "mdns": NetworkOption(
        bool,
        "",
        "Find the cluster by its name (see --cluster) on the local network, instead of by --join. Requires the mdns"
        " extra.",
    ),
    "create": NetworkOption(
        bool,
        "",
        "Create a new cluster; needs --listen. A host that has been in a cluster of this name joins that one again"
        " instead (see --state), so the same command can be used for every start.",
    ),
    "lease": NetworkOption(
        Duration,
        "DURATION",
        "With --create: how long a peer that cannot reach a majority of the voters keeps its permits, and how long it"
        " takes until the slots of a killed peer are free (default: 10).",
    ),
    "drift": NetworkOption(
        float,
        "FRACTION",
        "With --create: by how much the clocks of two hosts may differ in speed (default: 0.01, which is 1 %).",
    ),
    "state": NetworkOption(
        str,
        "DIR",
        "Directory in which a standing peer saves what it must know after a restart: the id of the cluster, addresses"
        " and the highest epoch. Default: one for each cluster name in ~/.local/state/fairgate, unless the cluster is"
        " one of loopback addresses or Unix sockets, for which nothing is saved.",
    ),
    "listen": NetworkOption(
        str,
        "HOST:PORT",
        "Address to listen on for other peers, or unix:PATH (default: a free port of the address from which the --join"
        " peer is reached, or a new Unix socket beside that peer's).",
    ),
    "advertise": NetworkOption(
        str,
        "HOST:PORT",
        "Address at which other peers reach this one, if it differs from --listen, as behind NAT or in a container.",
    ),
    "cluster": NetworkOption(
        str, "NAME", "Name of the cluster; peers with another cluster name are rejected (default: fairgate)."
    ),
    "keys": NetworkOption(
        str,
        "DIR",
        "Directory with the TLS files of this host: ca.crt and one host's .crt and .key. If it holds several hosts'"
        " files, name the .crt file itself. Default: ~/.config/fairgate/keys, if it exists and one of the given"
        " addresses is not a loopback address.",
    ),
    "insecure": NetworkOption(
        bool, "", "Do not use TLS: anyone who can reach a peer can enter its gates and read its messages."
    ),
    "secret": NetworkOption(
        str,
        "FILE",
        "File with the secret that all peers of the cluster share. Required with a loopback address, unless there are"
        " --keys: every user of this host can connect to it. `fairgate keys secret FILE` creates one. Default: the file"
        " that FAIRGATE_SECRET names.",
    ),
    "join_timeout": NetworkOption(
        Duration,
        "DURATION",
        "Fail if no peer of the cluster has answered within DURATION (default: 30; to look at a cluster: 10;"
        " `fairgate run -n`: 5; `fairgate run -w`: as long as it may wait, 5 to 30).",
    ),
    "metrics": NetworkOption(
        int,
        "PORT",
        "Serve Prometheus metrics at http://127.0.0.1:PORT/metrics; 0 picks a free port and prints it. Requires"
        " the metrics extra.",
    ),
    "journal": NetworkOption(
        str,
        "FILE",
        "Write every protocol step of this peer to FILE, for `fairgate replay`. {gate} in FILE is replaced by the name"
        " of the gate.",
    ),
}
INSPECT_OPTIONS = ("join", "mdns", "cluster", "keys", "insecure", "secret", "join_timeout")
JOIN_OPTIONS = ("join", "listen", "advertise", "mdns", "cluster", "keys", "insecure", "secret", "join_timeout")
CREATE_OPTIONS = ("create", "lease", "drift", "state", *JOIN_OPTIONS)
OBSERVE_OPTIONS = ("metrics", "journal")


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")
