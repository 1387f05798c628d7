"""The build step that prepares the hot modules of the waiting room for Cython. It imports them as plain Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fairgate.core.numbers import COMPILED
from tests.support.expanded import SRC
from tools.tables import HOT, PACKAGE, HotModule, is_word

pytestmark = pytest.mark.skipif(COMPILED, reason="`make test` runs it with FAIRGATE_PURE=1")

SAMPLE = '''\
"""A sample."""

from fairgate.room.layout import DIRTY, LIMIT, STATE
from fairgate.room.links import Table, unlink
from fairgate.room.table import Change


class Record(Change):
    """Has fields."""

    def __init__(self, change: Change, name: str) -> None:
        self.change = change
        self.name = name
        self.count = 0
        self.found: set[int] = set()

    def total(self, m: Table) -> int:
        return m[DIRTY] + self.count


def transition(m: Table, seat: int, woken: list[int] | None) -> None:
    if m[DIRTY]:
        return
    m[DIRTY] = 1
    m[seat], m[seat + STATE] = LIMIT, 2
    m[m[seat] + STATE] = m[DIRTY] = 0


def with_default(m: Table, seat: int = 0) -> bool:
    return m[seat] == 0
'''


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HotModule:
    """The sample as a module of the package."""
    monkeypatch.setattr("tools.tables.HOT", (*HOT, "sample"))
    package = tmp_path / "fairgate" / "room"
    package.mkdir(parents=True)
    for path in (SRC / "fairgate" / "room").glob("*.p*"):
        (package / path.name).symlink_to(path)
    (package / "sample.py").write_text(SAMPLE)
    monkeypatch.setattr("fairgate.room.__path__", [str(package), str(SRC / "fairgate" / "room")])
    return HotModule(tmp_path, f"{PACKAGE}.sample")


def test_loads_and_stores_become_calls(sample: HotModule) -> None:
    text = sample.py()
    assert "    if get(m, (11)):\n        return 0\n    put(m, (11), 1)\n" in text
    assert "    put(m, seat, c_LIMIT); put(m, seat + (0), 2)\n" in text
    assert "    put(m, get(m, seat) + (0), 0); put(m, (11), 0)\n" in text


def test_types_come_from_annotations(sample: HotModule) -> None:
    text = sample.pxd_text()
    assert "cpdef bint transition(Words m, long long seat, list woken) except -1\n" in text
    assert '    const long long c_LIMIT "4611686018427387904LL"\n' in text
    assert "from fairgate.room.links cimport unlink\n" in text
    fields = ("Change change", "str name", "long long count", "set found")
    assert all(f"    cdef public {field}\n" in text for field in fields)
    assert "    cpdef long long total(self, Words m)\n" in text


def test_functions_that_stay_python_functions_know_the_types_of_their_parameters(sample: HotModule) -> None:
    assert "with_default" not in sample.pxd_text()
    assert "@cython.locals(m=Words)\ndef with_default(" in sample.py()
    assert "    @cython.locals(change=Change)\n    def __init__(" in sample.py()


def test_a_value_that_reads_the_table_is_not_stored_twice(sample: HotModule) -> None:
    chained = ast.parse("m[1] = m[2] = m[3]").body[0]
    assert isinstance(chained, ast.Assign)
    sample.text, sample.starts = b"m[1] = m[2] = m[3]", [0]
    with pytest.raises(AssertionError, match="C access cannot replace"):
        list(sample.stores(chained))


@pytest.mark.parametrize("name", HOT)
def test_no_access_is_left_and_no_line_moves(name: str) -> None:
    module = HotModule(SRC, f"{PACKAGE}.{name}")
    tree = ast.parse(module.py())
    assert not any(is_word(one) for one in ast.walk(tree))
    assert places(tree) == places(ast.parse((SRC / "fairgate" / "room" / f"{name}.py").read_text()))


def places(tree: ast.Module) -> list[tuple[str, int]]:
    return [(one.name, one.lineno) for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.ClassDef)]


def test_stores_are_volatile() -> None:
    """Otherwise the C compiler may reorder them, and a process that dies in between leaves what no plain one would."""
    assert "cdef volatile long long* words" in (SRC / "fairgate" / "room" / "words.pxd").read_text()
