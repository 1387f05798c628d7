"""Where the standing peer of this host saves which cluster it is in."""

import os
from urllib.parse import quote

from fairgate.room.place import Places


def default_state(cluster: str) -> str:
    """A directory for each cluster name, of this user on this host. It must outlive a restart of the machine."""
    base = os.environ.get("FAIRGATE_DIR") or Places(os.geteuid()).in_home()
    return os.path.join(base, "clusters", quote(cluster, safe=""))
