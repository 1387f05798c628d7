"""The build step that expands declarations for Cython. It reads pure Python classes, so these tests need pure mode."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import ModuleType

import pytest

from fairgate.core.numbers import COMPILED
from fairgate.errors import BadDeclaration
from tests.support.expanded import (
    ALONE,
    SRC,
    expanded,
    moved_lines,
    other_outcomes,
    unreported,
    wrong_text,
    wrong_types,
)
from tools import expand
from tools.c_types import Project, c_locals, c_signature, is_declared

pytestmark = pytest.mark.skipif(COMPILED, reason="`make test` runs it with FAIRGATE_PURE=1")

DECLARED = [
    ".".join(path.relative_to(SRC).with_suffix("").parts)
    for path in sorted(SRC.rglob("*.py"))
    if is_declared(path.read_text()) and not path.with_suffix(".pxd").exists()
]

FAIR_K_PXD = """\
cimport cython
from fairgate.core.message cimport Message
from fairgate.core.mutex cimport Mutex
from fairgate.core.outside cimport checked_bool, checked_int, checked_place, checked_shape, checked_str
from fairgate.core.pool cimport pooled
from fairgate.core.setup cimport Setup
from fairgate.core.tuples cimport replaced, taken
from fairgate.core.units cimport left, moment

@cython.final
cdef class Request(Message):
    cdef readonly long long r

@cython.final
cdef class Token(Message):
    cdef readonly long long slot
    cdef readonly long long fence

@cython.final
cdef class Child(Message):
    cdef readonly long long r

@cython.final
cdef class TokenLocations(Message):
    cdef readonly tuple a
    cdef readonly long long b

cdef class FairK(Mutex):
    cdef public long long parent
    cdef public long long next
    cdef public long long child
    cdef public long long slot
    cdef public long long fence
    cdef public tuple token_locations
    cdef public long long counter_number
    cdef public bint parent_on_child
    cdef public bint token_present
    cdef public bint is_coordinator
    cpdef bint on_request(self, Request m) except -1
    cpdef bint on_token(self, Token m) except -1
    cpdef bint on_child(self, Child m) except -1
    cpdef bint on_token_locations(self, TokenLocations m) except -1
    cpdef bint assign(self, long long r) except -1
    cpdef bint take_token(self) except -1
    cpdef bint send_token(self, long long r) except -1

@cython.locals(m=Request)
cdef Request make_Request(long long r)
@cython.locals(m=Token)
cdef Token make_Token(long long slot, long long fence)
@cython.locals(m=Child)
cdef Child make_Child(long long r)
@cython.locals(m=TokenLocations)
cdef TokenLocations make_TokenLocations(tuple a, long long b)
"""

BOUNDED_CLASS = """\
cdef class FairKBounded(FairK):
    cdef public long long reentry
    cdef public tuple idle
    cdef public long long turn
    cdef public long long reentries
    cdef public bint deferred
    cpdef bint ask(self) except -1
    cpdef bint assign_itself(self) except -1
    cpdef bint on_numbered_child(self, NumberedChild m) except -1
    cpdef bint waits(self) except -1
    cpdef bint nobody_waits(self) except -1
    cpdef bint begin_turn(self, long long c) except -1
    cpdef bint take_up(self, long long c) except -1
    cpdef bint put_aside(self) except -1
    cpdef long long take_idle(self, long long c)

"""


def test_the_c_types_of_fair_k() -> None:
    assert expanded(expand, "fairgate.protocols.fair_k").pxd_text() == FAIR_K_PXD


def test_a_subclass_repeats_neither_fields_nor_methods_of_its_base() -> None:
    assert BOUNDED_CLASS in expanded(expand, "fairgate.protocols.fair_k_bounded").pxd_text()


def test_annotated_locals_are_typed_and_what_cython_cannot_do_stays_python() -> None:
    assert wrong_types(expand) == []


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("def f(self, x: Literal[1]): pass", r"f: x: typing.Literal\[1\]"),
        ("def f(self) -> Literal[1]: pass", r"f: return: typing.Literal\[1\]"),
        ("def f(self):\n    x: 'Token' = 1", "f: x: Token"),
    ],
)
def test_what_has_no_c_type_is_refused(source: str, what: str) -> None:
    """Else it would be a Python object without anybody noticing."""
    module = ModuleType("written")
    exec(f"from typing import Literal\n{source}", vars(module))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    translate = c_locals if "Token" in what else c_signature
    with pytest.raises(BadDeclaration, match=f"^{what} is not a class"):
        translate(Project(SRC), function, module if "Token" in what else module.f)


def test_constructors_and_constants_in_functions_become_c() -> None:
    text = expanded(expand, "fairgate.protocols.fair_k").py()
    assert "self.out.send_direct(r, make_Token(self.slot, self.fence))" in text
    assert "if self.parent != (-1):" in text


def test_an_annotation_does_not_change_the_c_type_of_a_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    module = expanded(expand, "fairgate.protocols.fair_k")
    monkeypatch.setattr(module.module, "__annotations__", {"VOTES": Sequence[int]}, raising=False)
    assert module.constant("VOTES", (1, 2)) == "c_VOTES"
    assert module.variables == {"VOTES": "tuple"}


def test_derived_methods_replace_the_declaration() -> None:
    text = expanded(expand, "fairgate.protocols.fair_k").py()
    tree = ast.parse(text)
    token = next(one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == "Token")
    assert [ast.unparse(one).splitlines()[0] for one in token.body] == [
        "tag = 'fk.token'",
        "def __init__(self, slot, fence):",
        "def key(self):",
        "def tokens(self):",
        "def slots(self):",
    ]


@pytest.mark.parametrize("name", DECLARED)
def test_no_statement_moves_to_another_line(name: str) -> None:
    assert moved_lines(expand, name) == []


@pytest.mark.parametrize("protocol", ALONE)
def test_the_expanded_text_behaves_the_same_as_python(protocol: str) -> None:
    assert other_outcomes(expand, protocol) == []


@pytest.mark.parametrize("name", DECLARED)
def test_the_expanded_text_suits_cython(name: str) -> None:
    assert wrong_text(expand, name) == []


@pytest.mark.parametrize("protocol", ALONE)
def test_an_expanded_class_reports_its_fields_and_checks_what_it_decodes(protocol: str) -> None:
    assert unreported(expand, protocol) == []


def test_a_class_without_room_for_its_methods_is_refused() -> None:
    module = expanded(expand, "fairgate.protocols.fair_k")
    definition = next(one for one in module.tree.body if isinstance(one, ast.ClassDef) and one.name == "Request")
    with pytest.raises(ValueError, match="no room for 50 derived lines"):
        module.place(definition, ["pass"] * 50)
