"""The command `fairgate`. A command is one module here, with one function that returns its exit code (see app.py)."""

from fairgate.cli.app import main

__all__ = ["main"]
