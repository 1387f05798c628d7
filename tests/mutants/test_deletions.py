"""Every statement of every handler deleted in turn is noticed, or its survival is explained."""

import pytest

from fairgate.check.deletions import delete_all
from fairgate.check.survivors import SURVIVORS, explain
from fairgate.registry import PROTOCOLS

QUICK = ["naimi_trehel", "centralised"]
LONG = ["fair_k", "suzuki_kasami", "ricart_agrawala", "raymond"]


@pytest.mark.parametrize("name", [*QUICK, *[pytest.param(name, marks=pytest.mark.stress) for name in LONG]])
def test_every_deletion_is_noticed_or_explained(name: str) -> None:
    found = list(delete_all(PROTOCOLS[name]))
    survivors = [deleted for deleted in found if not deleted.caught]
    assert [deleted for deleted in survivors if not explain(deleted)] == []
    assert {(deleted.handler, deleted.statement) for deleted in survivors} == set(SURVIVORS.get(name, {}))
    assert len(survivors) < len(found) / 5
