"""Prepares the hot modules of the waiting room for Cython, from their annotations.

A table is called `m` everywhere in fairgate.room. In the hot modules,

- `m[at]` becomes `get(m, at)`, and `m[at] = value` becomes `put(m, at, value)`. These are C functions that check the
  bounds. A store is volatile: the C compiler must neither reorder nor join stores, because a process may die after any;
- integer constants become C constants;
- `return` without a value becomes `return 0`, see `with_results`;
- the blank line before a function that stays a Python function takes a decorator with the C types of its parameters.

No line moves. The .pxd has the C types of fields, parameters and results, from their annotations or from the value that
a field is set to first, and whatever the module uses of other hot modules. A function that Cython cannot turn into a C
function (closures, defaults, decorators) stays a Python function.

A method costs most on an object of a Python class that extends a compiled one: C code asks every time whether the class
overrides it.
"""

import ast
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

from tools.c_types import can_be_c, has_closure, names_in_pxd, with_results

PACKAGE = "fairgate.room"
HOT = (
    "bell", "changes", "desk", "file", "guestbook", "keeping", "lending", "links", "notes", "permit", "rules", "senses",
    "table",
)  # fmt: skip
WORDS = f"{PACKAGE}.words"
TABLE = "m"
LITERALS = 1 << 31  # integers below are C literals to Cython; larger ones would be Python objects without a declaration
LARGEST = 1 << 63
NUMBERS = {"int": "long long", "bool": "bint", "float": "double"}
C_TYPES = {"Table": "Words", **{name: name for name in ("list", "dict", "set", "tuple", "str", "bytes")}, **NUMBERS}
DISPLAYS = {ast.List: "list", ast.Dict: "dict", ast.Tuple: "tuple", ast.JoinedStr: "str"}
Edit = tuple[int, int, str]  # what to put in place of the bytes from .. to


def is_hot(name: str) -> bool:
    package, _, module = name.rpartition(".")
    return package == PACKAGE and module in HOT


class HotModule:
    def __init__(self, src: Path, name: str) -> None:
        self.src = src
        self.name = name
        self.text = with_results(self.path(name).read_text()).encode()  # ast counts columns in bytes
        self.tree = ast.parse(self.text)
        self.starts = [0]
        for line in self.text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.constants = {
            each: value
            for each, value in vars(import_module(name)).items()
            if each.isupper() and type(value) is int and abs(value) < LARGEST
        }

        self.cimported = list(dict.fromkeys(self.cimports()))
        self.known = {line.split()[-1] for line in self.cimported} | {one.name for one in classes_in(self.tree)}

    def path(self, name: str) -> Path:
        return self.src.joinpath(*name.split(".")).with_suffix(".py")

    # The source.

    def py(self) -> str:
        lines = self.edited(self.tree).decode().split("\n")
        first = next(one for one in self.tree.body if isinstance(one, ast.Import | ast.ImportFrom))
        lines[(first.end_lineno or 0) - 1] += "; import cython"
        for one in ast.walk(self.tree):
            if isinstance(one, ast.FunctionDef) and not (can_be_c(one) or has_closure(one) or one.decorator_list):
                typed = {each.arg: c_type(each.annotation, self.known) for each in one.args.args}
                types = [f"{name}={c}" for name, c in typed.items() if c == "Words" or c in self.known]
                if types and not lines[one.lineno - 2].strip():
                    lines[one.lineno - 2] = f"{' ' * one.col_offset}@cython.locals({', '.join(types)})"
        return "\n".join(lines)

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
        end = self.starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        return self.starts[node.lineno - 1] + node.col_offset, end

    def edits(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.Assign) and any(is_word(one) for one in targets(node)):
            yield *self.span(node), "; ".join(self.stores(node))
        elif is_word(node):
            yield *self.span(node), f"get({self.arguments(node)})"
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.constants:
            yield *self.span(node), self.constant(node.id)
        else:
            for inner in ast.iter_child_nodes(node):
                yield from self.edits(inner)

    def constant(self, name: str) -> str:
        value = self.constants[name]
        return f"({value})" if abs(value) < LITERALS else f"c_{name}"

    def stores(self, node: ast.Assign) -> Iterator[str]:
        """One statement for each target. The value is evaluated again for each, so it must not read the table."""
        several = len(targets(node)) > 1
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple):
                assert isinstance(node.value, ast.Tuple), self.refused(node)
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for one, value in pairs:
                assert not several or not any(is_word(inner) for inner in ast.walk(value)), self.refused(node)
                text = self.edited(value).decode()
                yield f"put({self.arguments(one)}, {text})" if is_word(one) else f"{self.edited(one).decode()} = {text}"

    def arguments(self, word: ast.AST) -> str:
        assert isinstance(word, ast.Subscript), self.refused(word)
        assert not isinstance(word.slice, ast.Slice), self.refused(word)
        return f"{self.edited(word.value).decode()}, {self.edited(word.slice).decode()}"

    def refused(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return f"{self.name}: C access cannot replace {self.text[start:end].decode()}"

    # The declarations.

    def pxd_text(self) -> str:
        lines = [
            "cimport cython",
            f"from {WORDS} cimport Words, get, put",
            *self.cimported,
            *self.large_constants(),
            "",
        ]
        lines += [f"cdef class {one.name}" for one in classes_in(self.tree)]
        for one in classes_in(self.tree):
            lines += ["", *class_lines(one, self.known, self.inherited(one))]
        lines += ["", *[signature(one, self.known) for one in functions_in(self.tree)]]
        return "\n".join([*lines, ""])

    def large_constants(self) -> Iterator[str]:
        """What is declared as external stands for itself in the C source."""
        for name, value in self.constants.items():
            if abs(value) >= LITERALS:
                yield f'cdef extern from *:\n    const long long c_{name} "{value}LL"'

    def cimports(self) -> Iterator[str]:
        for one in ast.walk(self.tree):
            if not isinstance(one, ast.ImportFrom):
                continue
            for name in [each.name for each in one.names]:
                if one.module == PACKAGE and self.is_compiled(f"{PACKAGE}.{name}"):
                    yield f"from {PACKAGE} cimport {name}"
                elif one.module and one.module.startswith(f"{PACKAGE}.") and name in self.c_names(one.module):
                    yield f"from {one.module} cimport {name}"

    def inherited(self, definition: ast.ClassDef) -> set[str]:
        """The fields of its base classes."""
        found: set[str] = set()
        for module in HOT:
            for one in classes_in(ast.parse(self.path(f"{PACKAGE}.{module}").read_text())):
                if one.name in [ast.unparse(base) for base in definition.bases]:
                    found |= set(fields(one, set())) | self.inherited(one)
        return found

    def is_compiled(self, module: str) -> bool:
        return is_hot(module) or self.path(module).with_suffix(".pxd").exists()

    def c_names(self, module: str) -> set[str]:
        """What a module offers to C code."""
        if is_hot(module):
            tree = ast.parse(self.path(module).read_text())
            return {one.name for one in functions_in(tree)} | {one.name for one in classes_in(tree)}
        pxd = self.path(module).with_suffix(".pxd")
        return set(names_in_pxd(pxd.read_text())) if pxd.exists() else set()


def is_word(node: ast.AST) -> bool:
    """Is it a word of a table: m[at], or self.file.m[at]?"""
    if not isinstance(node, ast.Subscript):
        return False
    of = node.value
    return (isinstance(of, ast.Name) and of.id == TABLE) or (isinstance(of, ast.Attribute) and of.attr == TABLE)


def targets(node: ast.Assign) -> list[ast.expr]:
    return [one for each in node.targets for one in (each.elts if isinstance(each, ast.Tuple) else [each])]


def functions_in(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for one in tree.body:
        if isinstance(one, ast.FunctionDef) and can_be_c(one):
            yield one


def classes_in(tree: ast.Module) -> Iterator[ast.ClassDef]:
    for one in tree.body:
        if isinstance(one, ast.ClassDef) and not is_exception(one):
            yield one


def is_exception(one: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == "Exception" for base in one.bases)


def class_lines(definition: ast.ClassDef, known: set[str], inherited: set[str]) -> Iterator[str]:
    bases = f"({', '.join(ast.unparse(base) for base in definition.bases)})" if definition.bases else ""
    yield f"cdef class {definition.name}{bases}:"
    for name, c in fields(definition, known).items():
        if name not in inherited:
            yield f"    cdef public {c} {name}"
    for one in functions_in(definition):
        yield from (f"    {line}" for line in signature(one, known).split("\n"))
    yield "    pass"


def fields(definition: ast.ClassDef, known: set[str]) -> dict[str, str]:
    """The fields of a class, and their C types."""
    found: dict[str, str] = {}
    for inner in definition.body:
        if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
            found[inner.target.id] = c_type(inner.annotation, known)
    for function in definition.body:
        if not isinstance(function, ast.FunctionDef):
            continue
        parameters = {one.arg: c_type(one.annotation, known) for one in function.args.args}
        for one in ast.walk(function):  # the outermost statements come first
            if isinstance(one, ast.AnnAssign):
                for name in fields_among([one.target]):
                    found.setdefault(name, c_type(one.annotation, known))
            elif isinstance(one, ast.Assign):
                for name in fields_among(one.targets):
                    found.setdefault(name, type_of(one.value, parameters, known))
    return found


def fields_among(targets: Sequence[ast.expr]) -> Iterator[str]:
    for one in targets:
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == "self":
            yield one.attr


def type_of(value: ast.expr, parameters: dict[str, str], known: set[str]) -> str:
    if isinstance(value, ast.UnaryOp):
        value = value.operand
    if isinstance(value, ast.Constant):
        return C_TYPES.get(type(value.value).__name__, "object")
    if isinstance(value, ast.Name):
        return parameters.get(value.id, "object")
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in known:
        return value.func.id
    return DISPLAYS.get(type(value), "object")


def signature(function: ast.FunctionDef, known: set[str]) -> str:
    """Its line in the .pxd. `known` are names of other hot modules, the names of their classes among them."""
    arguments = [
        one.arg if one.arg == "self" else f"{c_type(one.annotation, known)} {one.arg}" for one in function.args.args
    ]
    result = "bint" if is_none(function.returns) else c_type(function.returns, known)  # None becomes 0
    failure = " except -1" if result == "bint" else ""  # for numbers Cython's default: after -1 it asks Python
    return f"{c_locals(function, known)}cpdef {result} {function.name}({', '.join(arguments)}){failure}"


def c_locals(function: ast.FunctionDef, known: set[str]) -> str:
    """A line with the local variables that are annotated with a compiled class."""
    found = [
        f"{one.target.id}={one.annotation.id}"
        for one in ast.walk(function)
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(one.annotation, ast.Name)
        if one.annotation.id in known
    ]
    return f"@cython.locals({', '.join(found)})\n" if found else ""


def is_none(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Constant) and annotation.value is None


def c_type(annotation: ast.expr | None, known: set[str]) -> str:
    if isinstance(annotation, ast.BinOp) and is_none(annotation.right):  # `list[int] | None`: an object may be None
        found = c_type(annotation.left, known)
        return "object" if found in NUMBERS.values() else found
    if isinstance(annotation, ast.Subscript):
        annotation = annotation.value
    if not isinstance(annotation, ast.Name):
        return "object"
    return annotation.id if annotation.id in known else C_TYPES.get(annotation.id, "object")
