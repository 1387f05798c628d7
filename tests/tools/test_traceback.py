"""A traceback from compiled code names the line of the source, although Cython compiles an expanded copy."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import fairgate
from fairgate.core.numbers import COMPILED
from fairgate.core.outbox import Collected
from fairgate.core.setup import Setup
from fairgate.protocols.fair_k_bounded import FairKBounded

SOURCE = Path(fairgate.__file__).parent / "protocols" / "fair_k_bounded.py"


@pytest.mark.skipif(not COMPILED, reason="nothing is compiled here")
def test_a_traceback_names_the_source_and_its_line() -> None:
    node = FairKBounded(1, Setup((1, 2), 2), Collected())
    with pytest.raises(ValueError, match="unpack") as raised:
        node.take_idle(99)
    last = traceback.extract_tb(raised.tb)[-1]
    assert SOURCE.parts[-4:] == Path(last.filename).parts[-4:]
    assert last.lineno is not None
    assert SOURCE.read_text().splitlines()[last.lineno - 1].strip().startswith("(fence,) = ")
