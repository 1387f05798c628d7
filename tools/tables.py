"""Prepares the modules of a waiting room for Cython: what they read from and store into a table becomes a C access.

A table is called `m` everywhere in fairgate.room. In the hot modules there, those with a .pxd beside them,

- `m[at]` becomes `get(m, at)`, and `m[at] = value` becomes `put(m, at, value)`. These are C functions that check the
  bounds. A store is volatile: the C compiler must neither reorder nor join stores, because a process may die after any;
- integer constants become literals;
- `return` without a value becomes `return 0`, see `with_results`.

No line moves. The .pxd is extended by the signatures of the module's functions, from their annotations, and by what
they use of other hot modules. A function that Cython cannot turn into a C function stays a Python function.
"""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

from tools.c_types import can_be_c, names_in_pxd, with_results

PACKAGE = "fairgate.room"
WORDS = f"{PACKAGE}.words"
TABLE = "m"
LITERALS = 1 << 31  # integers below are C literals to Cython, larger ones would be Python objects
C_TYPES = {"int": "long long", "bool": "bint", "Table": "Words", "float": "double"} | {
    name: name for name in ("list", "dict", "set", "tuple", "str", "bytes")
}
Edit = tuple[int, int, str]  # what to put in place of the bytes from .. to


def is_table_code(name: str, pxd: Path) -> bool:
    return name.startswith(f"{PACKAGE}.") and name != WORDS and pxd.exists() and not pxd.with_suffix(".pyx").exists()


class TableCode:
    """One hot module of the room."""

    def __init__(self, src: Path, name: str) -> None:
        self.src = src
        path = self.path(name)
        self.declared = path.with_suffix(".pxd").read_text()
        self.text = with_results(path.read_text()).encode()  # ast counts columns in bytes
        self.tree = ast.parse(self.text)
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.constants = {
            each: value
            for each, value in vars(import_module(name)).items()
            if each.isupper() and type(value) is int and abs(value) < LITERALS
        }

    def path(self, name: str) -> Path:
        return self.src.joinpath(*name.split(".")).with_suffix(".py")

    # The source.

    def py(self) -> str:
        return self.edited(self.tree).decode()

    def edited(self, node: ast.AST) -> bytes:
        """The text of a node, with all that becomes C."""
        start, end = self.span(node)
        text = self.text[start:end]
        for at, to, new in sorted(self.edits(node), reverse=True):
            text = text[: at - start] + new.encode() + text[to - start :]
        return text

    def span(self, node: ast.AST) -> tuple[int, int]:
        if isinstance(node, ast.Module):
            return 0, len(self.text)
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def edits(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.Assign) and any(is_word(one) for one in targets(node)):
            yield *self.span(node), "; ".join(self.stores(node))
        elif is_word(node):
            yield *self.span(node), f"get({self.arguments(node)})"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.constants:
            yield *self.span(node), f"({self.constants[node.id]})"
        else:
            for inner in ast.iter_child_nodes(node):
                yield from self.edits(inner)

    def stores(self, node: ast.Assign) -> Iterator[str]:
        """One statement for each target. The value is evaluated again for each, so it must be a name or a number."""
        several = len(targets(node)) > 1
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple):
                assert isinstance(node.value, ast.Tuple), self.said(node)
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for one, value in pairs:
                assert not several or not any(is_word(inner) for inner in ast.walk(value)), self.said(node)
                text = self.edited(value).decode()
                yield f"put({self.arguments(one)}, {text})" if is_word(one) else f"{self.edited(one).decode()} = {text}"

    def arguments(self, word: ast.AST) -> str:
        assert isinstance(word, ast.Subscript) and not isinstance(word.slice, ast.Slice), self.said(word)
        return f"{self.edited(word.value).decode()}, {self.edited(word.slice).decode()}"

    def said(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return f"not something that a C access can replace: {self.text[start:end].decode()}"

    # The declarations.

    def pxd_text(self) -> str:
        cimports = list(self.cimports())
        classes = {line.split()[-1] for line in cimports} | set(names_in_pxd(self.declared))
        signatures = [signature(one, classes) for one in c_functions(self.tree)]
        return "\n".join([f"from {WORDS} cimport Words, get, put", *cimports, self.declared, *signatures, ""])

    def cimports(self) -> Iterator[str]:
        for one in ast.walk(self.tree):
            if not isinstance(one, ast.ImportFrom):
                continue
            for name in [each.name for each in one.names]:
                if one.module == PACKAGE and self.path(f"{PACKAGE}.{name}").with_suffix(".pxd").exists():
                    yield f"from {PACKAGE} cimport {name}"
                elif one.module and one.module.startswith(f"{PACKAGE}.") and name in self.c_names(one.module):
                    yield f"from {one.module} cimport {name}"

    def c_names(self, module: str) -> set[str]:
        """What a module offers to C code."""
        path = self.path(module)
        if not path.with_suffix(".pxd").exists():
            return set()
        declared = set(names_in_pxd(path.with_suffix(".pxd").read_text()))
        if not is_table_code(module, path.with_suffix(".pxd")):
            return declared
        return declared | {one.name for one in c_functions(ast.parse(path.read_text()))}


def is_word(node: ast.AST) -> bool:
    """Is it a word of a table: m[at], or self.file.m[at]?"""
    if not isinstance(node, ast.Subscript):
        return False
    of = node.value
    return (isinstance(of, ast.Name) and of.id == TABLE) or (isinstance(of, ast.Attribute) and of.attr == TABLE)


def targets(node: ast.Assign) -> list[ast.expr]:
    return [one for each in node.targets for one in (each.elts if isinstance(each, ast.Tuple) else [each])]


def c_functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for one in tree.body:
        if isinstance(one, ast.FunctionDef) and can_be_c(one):
            yield one


def signature(function: ast.FunctionDef, classes: set[str]) -> str:
    """Its line in the .pxd. `classes` are those that C code knows, among other names."""
    arguments = [f"{c_type(one.annotation, classes)} {one.arg}" for one in function.args.args]
    result = "bint" if is_none(function.returns) else c_type(function.returns, classes)  # None becomes 0
    failure = " except -1" if result == "bint" else ""  # for numbers Cython's default: after -1 it asks Python
    return f"cpdef {result} {function.name}({', '.join(arguments)}){failure}"


def is_none(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Constant) and annotation.value is None


def c_type(annotation: ast.expr | None, classes: set[str]) -> str:
    if isinstance(annotation, ast.BinOp) and is_none(annotation.right):  # `list[int] | None`: an object may be None
        found = c_type(annotation.left, classes)
        return "object" if found in ("long long", "bint", "double") else found
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if not isinstance(annotation, ast.Name):
        return "object"
    return annotation.id if annotation.id in classes else C_TYPES.get(annotation.id, "object")
