"""The registry: names and where their classes are. No class is imported before it is asked for."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fairgate.registry import LAYERS, OVERLAYS, PROTOCOLS, find_protocol

ONE_LINE = {f"fairgate.protocols.one_line{part}" for part in ("", ".coordinator", ".line", ".protocol")}
LOADED = "import sys, json; print(json.dumps([m for m in sys.modules if m.startswith('fairgate.')]))"


def loaded_by(code: str) -> set[str]:
    """The modules of protocols, overlays and layers that a fresh interpreter has loaded after this code."""
    said = subprocess.run([sys.executable, "-c", f"{code}; {LOADED}"], capture_output=True, text=True, check=True)
    packages = ("fairgate.protocols.", "fairgate.overlay.", "fairgate.recovery.")
    return {module for module in json.loads(said.stdout) if module.startswith(packages)}


def test_importing_the_registry_loads_no_protocol() -> None:
    assert loaded_by("import fairgate.registry") == set()


@pytest.mark.parametrize(
    ("name", "modules"),
    [
        ("fair_k", {"fair_k"}),
        ("fair_k_bounded", {"fair_k", "fair_k_bounded"}),
        ("one_line", {"one_line", "one_line.coordinator", "one_line.line", "one_line.protocol"}),
        ("e2e", {"e2e", "e2e.messages", "e2e.protocol", "e2e.replica", "stamps"}),
    ],
)
def test_asking_for_a_protocol_loads_that_one_alone(name: str, modules: set[str]) -> None:
    found = loaded_by(f"from fairgate.registry import find_protocol; find_protocol({name!r})")
    assert found == {f"fairgate.protocols.{module}" for module in modules}


def test_importing_one_protocol_loads_no_other() -> None:
    assert loaded_by("import fairgate.protocols.bv95") == {"fairgate.protocols.bv95"}


def test_a_live_peer_loads_the_default_protocols_alone() -> None:
    found = {module for module in loaded_by("import fairgate.live.threads") if module.startswith("fairgate.protocols.")}
    assert found == {"fairgate.protocols.bv95", *ONE_LINE}


def test_a_gate_of_one_host_loads_no_protocol() -> None:
    assert "fairgate.protocols" not in loaded_by("from fairgate import sync; sync.join()")


def test_import_fairgate_gives_its_parts_on_first_use() -> None:
    uses = "import fairgate; fairgate.sync.join; fairgate.lab.sweep; assert not hasattr(fairgate, 'other')"
    subprocess.run([sys.executable, "-c", uses], check=True)


def test_every_name_leads_to_a_class() -> None:
    for table in (PROTOCOLS, OVERLAYS, LAYERS):
        for name, found in table.items():
            assert isinstance(found, type), name
    assert find_protocol("Fair-K") is PROTOCOLS["fair_k"]
