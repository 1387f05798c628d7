"""The default directory for keys. It is apart from keys.py, because cryptography is slow to import."""

import os
from collections.abc import Mapping
from pathlib import Path


def keys_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """By the XDG base directory standard, relative paths in the environment are ignored."""
    given = environ.get("XDG_CONFIG_HOME", "")
    config = Path(given) if given.startswith("/") else Path(environ.get("HOME") or Path.home()) / ".config"
    return config / "fairgate" / "keys"
