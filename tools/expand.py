"""Expands declared modules (core/declare.py) into what Cython compiles: a plain .py and an augmenting .pxd.

The module is imported as plain Python, so that its classes know their fields, handlers and bases; its source is parsed
for positions. The expanded .py is the source with these changes, none of which moves a line:

- decorators and field declarations are blanked, and the derived methods take their lines, one per line;
- `Token(slot, fence)` inside a function becomes `make_Token(slot, fence)`, a C function that sets the fields directly,
  because calling a class packs the arguments into Python objects first;
- `self.out.send` becomes `self.out.send_direct`, a C method, and `@final` becomes Cython's;
- `return` without a value becomes `return 0`, see `with_results`;
- integer constants inside functions become literals, or C variables if they are large;
- the blank line before a function takes a decorator with the C types of its annotated local variables.

Everything longer is appended after the last line. So a traceback from compiled code names the right line of the source.

The .pxd has the C types of fields, from their declaration, and of parameters and results, from their annotations. A
message or record without subclasses is final; a node is not, so that tests may override its methods in Python. A
function that Cython cannot turn into a C function (closures, defaults, decorators) stays a Python function.
"""

import ast
import sys
from collections.abc import Iterator
from typing import Any, TypeGuard

from fairgate.core.declare import (
    DERIVED,
    FIELDS,
    HANDLERS,
    merged_fields,
    merged_handlers,
    message_parts,
    named_classes,
    node_parts,
    record_parts,
)
from fairgate.core.derive import MISSING, Field, Function, assignments, decoder, required
from fairgate.core.kinds import kind_of
from fairgate.core.message import Message
from fairgate.core.node import Node
from tools.c_types import Project, c_locals, c_signature, can_be_c, is_final, with_finals, with_results

DECLARE = "fairgate.core.declare"
POOL = "fairgate.core.pool"
SEND = "self.out.send"
LITERALS = 1 << 31  # integers below are C literals to Cython, larger ones would be Python objects
CHECKS = ("checked_bool", "checked_int", "checked_place", "checked_shape", "checked_str")


class Expanded:
    """The expanded text of one module."""

    def __init__(self, project: Project, name: str) -> None:
        self.project = project
        self.name = name
        self.module = sys.modules[name]
        source = project.source_of(name).read_text()
        self.tree = ast.parse(source)
        lines = with_finals(with_results(source)).splitlines()
        self.lines = [line.encode() for line in lines]  # ast counts columns in bytes
        self.appended: list[str] = []
        self.class_pxds: list[str] = []
        self.function_pxds: list[str] = []
        self.imports: dict[str, set[str]] = {}  # what the appended text needs: module -> names
        self.makers: dict[str, set[str]] = {}
        self.cimports: dict[str, set[str]] = {}
        self.variables: dict[str, str] = {}  # C variables for constants, with their types
        self.taken: set[int] = set()  # lines that now have the types of a function's local variables
        self.classes = [one for one in self.tree.body if isinstance(one, ast.ClassDef) and self.live(one) in FIELDS]
        self.edit_functions()
        for each in self.classes:
            self.expand_class(each)
        self.declare_functions()
        self.cimport_names()

    def live(self, definition: ast.ClassDef) -> Any:
        return vars(self.module)[definition.name]

    # Changes in place.

    def edit_functions(self) -> None:
        """Replace calls of declared classes, constants, and `self.out.send`, inside functions."""
        edits: list[tuple[ast.Name | ast.Attribute, str]] = []
        for function in functions_in(self.tree):
            for name in names_in(function):
                value: Any = vars(self.module).get(name.id)
                if is_constructed(value) and is_made(function, name):
                    edits.append((name, self.maker(value)))
                elif name.id.isupper() and isinstance(name.ctx, ast.Load) and name.id in vars(self.module):
                    edits.append((name, self.constant(name.id, value)))
            edits += [(send, f"{SEND}_direct") for send in ast.walk(function) if is_send(send)]
            self.type_locals(function)
        for one, text in sorted(set(edits), key=lambda edit: (edit[0].lineno, -edit[0].col_offset)):
            line = self.lines[one.lineno - 1]
            assert one.end_col_offset is not None
            self.lines[one.lineno - 1] = line[: one.col_offset] + text.encode() + line[one.end_col_offset :]

    def type_locals(self, function: ast.FunctionDef) -> None:
        typed = c_locals(self.project, function, self.module)
        if typed:
            first = function.lineno - len(function.decorator_list)
            before = self.lines[first - 2]
            assert not before.strip() or before.strip().startswith(b"#"), f"no blank line before {function.name}"
            self.lines[first - 2] = b" " * function.col_offset + typed.encode()
            self.taken.add(first - 1)

    def maker(self, cls: type) -> str:
        name = f"make_{cls.__name__}"
        if cls.__module__ != self.name and cls.__module__ in self.project.declared:
            self.makers.setdefault(cls.__module__, set()).add(name)
            self.cimports.setdefault(cls.__module__, set()).add(name)
        return name if cls.__module__ in self.project.declared else cls.__name__

    def constant(self, name: str, value: Any) -> str:
        """What stands for the constant inside functions. Its C type is that of its value, whatever its annotation."""
        if type(value) is int and abs(value) < LITERALS:
            return f"({value})"
        if type(value) in (int, list, dict, tuple):
            unsigned = type(value) is int and value >> 63 > 0
            self.variables[name] = "unsigned long long" if unsigned else kind_of(type(value)).c
            return f"c_{name}"
        return name

    # Classes.

    def expand_class(self, definition: ast.ClassDef) -> None:
        cls = self.live(definition)
        for decorator in definition.decorator_list:
            self.blank(decorator.lineno, decorator.end_lineno or decorator.lineno)
        decorator = definition.decorator_list[0]
        inside = self.class_lines(cls, decorator)
        self.place(definition, inside)
        self.report(cls, definition)
        self.class_pxd(cls, definition)

    def class_lines(self, cls: type, decorator: ast.expr) -> list[str]:
        """The derived lines of the class body; functions that need several lines are appended to the module."""
        if issubclass(cls, Node):
            owners = {handler.name: owner_of(cls, handler.name) for handler in merged_handlers(cls)}
            lines = []
            for function in node_parts(cls, {name: owner.__name__ for name, owner in owners.items()}):
                long = any(line.endswith(":") for line in function.body)
                lines += one_line(self.beside(cls, function) if long else function)
                if long and function.name == "on_message":
                    lines += one_line(receive(cls))
            for owner in owners.values():
                self.need(owner)
            for needed in named_classes(cls).values():
                self.need(needed)
            return lines
        if issubclass(cls, Message):
            tag, counts = message_arguments(decorator)
            functions = message_parts(cls, tag, counts.get("tokens", 0), counts.get("coordinators", 0))
            self.make_function(cls)
            if tag:
                self.appended.append(decoder(cls.__name__, merged_fields(cls), f"make_{cls.__name__}").text)
                self.appended.append(f"register_decoder({cls.__name__}, decode_{cls.__name__})\n")
            return [f"tag = {tag!r}", *[line for function in functions for line in one_line(function)]]
        if not is_constructed(cls):
            return []
        self.make_function(cls)
        lines = [line for function in record_parts(cls) for line in one_line(function)]
        lines.insert(lines.index("@classmethod"), f"@cython.locals(made={cls.__name__})")  # of `from_key`
        return lines

    def beside(self, cls: type, function: Function) -> Function:
        """Append a function that does not fit on one line to the module; return a method that calls it."""
        beside = Function(f"{cls.__name__}_{function.name}", function.parameters, function.body)
        types = f"@cython.locals(self={cls.__name__}, src=cython.longlong, msg=Message)"
        self.appended.append(
            f"@cython.cfunc\n@cython.inline\n@cython.returns(cython.int)\n@cython.exceptval(-1, check=False)\n{types}"
        )
        self.appended.append(beside.text)
        self.need(Message)
        return Function(function.name, function.parameters, (f"{beside.name}({function.parameters})",))

    def make_function(self, cls: type) -> None:
        fields = merged_fields(cls)
        body = (f"m = {self.new_object(cls)}", *assignments("m", fields))
        body += ("m.complete()",) * hasattr(cls, "complete") + ("return m",)
        names = ", ".join(field.name for field in required(fields))
        self.appended.append(Function(f"make_{cls.__name__}", names, body).text)
        typed = ", ".join(f"{self.project.c_type(field.kind)} {field.name}" for field in required(fields))
        self.function_pxds += [
            f"@cython.locals(m={cls.__name__})",
            f"cdef {cls.__name__} make_{cls.__name__}({typed})",
        ]
        for needed in named_classes(cls).values():
            self.need(needed)

    def new_object(self, cls: type) -> str:
        if not issubclass(cls, Message):
            return f"{cls.__name__}.__new__({cls.__name__})"
        self.makers.setdefault(POOL, set()).add("pooled")
        self.cimports.setdefault(POOL, set()).add("pooled")
        return f"cython.cast({cls.__name__}, pooled({cls.__name__}))"

    def need(self, cls: type) -> None:
        """Import this class, because the appended text names it."""
        if cls.__module__ != self.name:
            self.imports.setdefault(cls.__module__, set()).add(cls.__name__)
            if self.project.is_compiled(cls):
                self.cimports.setdefault(cls.__module__, set()).add(cls.__name__)

    def place(self, definition: ast.ClassDef, inside: list[str]) -> None:
        """Put these lines in place of the docstring, declarations, comments and blank lines at the top of the class."""
        fields = {field.name for field in FIELDS[self.live(definition)]} | {"shown"}
        kept = set(self.taken)
        end = (definition.end_lineno or 0) + 2  # two blank lines follow a class
        for one in definition.body:
            first = min([one.lineno, *[each.lineno for each in getattr(one, "decorator_list", ())]])
            if isinstance(one, ast.FunctionDef | ast.ClassDef):
                end = first - 1
                break
            if not (is_docstring(one) or set(targets_of(one)) & fields):
                kept |= set(range(first, (one.end_lineno or first) + 1))
        free = [line for line in range(definition.body[0].lineno, end + 1) if line not in kept]
        self.lines += [b""] * (end - len(self.lines))
        if len(inside) > len(free):
            raise ValueError(
                f"{self.name}.{definition.name}: no room for {len(inside)} derived lines, only {len(free)} are free: "
                "make the docstring longer"
            )
        for line in free:
            self.lines[line - 1] = b""
        for line, text in zip(free, inside or ["pass"], strict=False):
            self.lines[line - 1] = f"    {text}".encode()

    def blank(self, first: int, last: int) -> None:
        for line in range(first, last + 1):
            self.lines[line - 1] = b""

    def report(self, cls: type, definition: ast.ClassDef) -> None:
        """Register at import what the decorator of the class would have registered."""
        annotations = {
            one.target.id: ast.unparse(one.annotation)
            for one in definition.body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }
        fields = []
        for field in FIELDS[cls]:
            hint = annotations[field.name].strip("'")
            fields.append(f"{field.name!r}: {hint if field.default is MISSING else f'({hint}, {default_text(field)})'}")
        handlers = [f"({one.name!r}, {one.message.__name__}, {one.takes_source})" for one in HANDLERS[cls]]
        derived = sorted(DERIVED[cls])
        self.appended.append(
            f"declared({cls.__name__}, {{{', '.join(fields)}}}, [{', '.join(handlers)}], {derived!r})\n"
        )

    # The .pxd.

    def class_pxd(self, cls: type, definition: ast.ClassDef) -> None:
        base = cls.__bases__[0]
        self.need(base)
        lines = [f"cdef class {cls.__name__}{f'({base.__name__})' * (base is not object)}:"]
        final = not cls.__subclasses__() and not issubclass(cls, Node)
        access = "readonly" if final and issubclass(cls, Message) else "public"  # Python subclasses set their fields
        inherited = {field.name for one in cls.__mro__[1:] for field in FIELDS.get(one, ())}
        own = [(self.project.c_type(field.kind), field.name) for field in FIELDS[cls] if field.name not in inherited]
        own.sort(key=lambda field: field[0] == "bint")  # of 4 bytes, all others of 8: together they leave no gaps
        lines += [f"    cdef {access} {c} {name}" for c, name in own]
        for function in definition.body:
            if isinstance(function, ast.FunctionDef) and can_be_c(function):
                lines += [f"    {line}" for line in self.method_pxd(cls, function)]
        self.class_pxds += [*["@cython.final"] * final, *lines, *["    pass"] * (len(lines) == 1), ""]

    def method_pxd(self, cls: type, function: ast.FunctionDef) -> list[str]:
        if any(function.name in vars(base) for base in cls.__mro__[1:]):
            return []
        signature = c_signature(self.project, function, vars(cls)[function.name])
        return ["@cython.final", signature.replace("cpdef", "cdef", 1)] if is_final(function) else [signature]

    def declare_functions(self) -> None:
        for function in self.tree.body:
            if isinstance(function, ast.FunctionDef) and can_be_c(function):
                self.function_pxds.append(c_signature(self.project, function, vars(self.module)[function.name]))

    def cimport_names(self) -> None:
        for one in self.tree.body:
            if isinstance(one, ast.ImportFrom) and one.module and one.module.startswith("fairgate."):
                for alias in one.names:
                    thing = vars(self.module)[alias.name]
                    if getattr(thing, "__module__", "") == one.module and self.project.is_compiled(thing):
                        self.cimports.setdefault(one.module, set()).add(alias.name)

    # The results.

    def py(self) -> str:
        imports = [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(self.imports.items())]
        for module, names in sorted(self.makers.items()):  # C functions, but the text must also run as Python
            imports.append(f"if not cython.compiled: from {module} import {', '.join(sorted(names))}")
        imports += [f"from {DECLARE} import HELPERS, declared"]
        imports += ["from fairgate.core.message import as_tuples, decode_as, register_decoder"]
        imports += [f"from fairgate.core.outside import {', '.join(CHECKS)}"]
        imports += ["from fairgate.core.units import left, moment", "chosen = HELPERS['chosen']"]
        constants = [f"c_{name} = {name}" for name in self.variables]
        lines = [line.decode() for line in self.lines]
        first = next(one for one in self.tree.body if isinstance(one, ast.Import | ast.ImportFrom)).lineno - 1
        lines[first] = f"import cython; {lines[first]}"
        return "\n".join([*lines, *imports, *constants, "", *self.appended])

    def pxd_text(self) -> str:
        self.cimports.setdefault("fairgate.core.outside", set()).update(CHECKS)
        self.cimports.setdefault("fairgate.core.units", set()).update(["left", "moment"])
        cimports = [f"from {name} cimport {', '.join(sorted(names))}" for name, names in sorted(self.cimports.items())]
        variables = [f"cdef {c} c_{name}" for name, c in self.variables.items()]
        return "\n".join(["cimport cython", *cimports, "", *variables, *self.class_pxds, *self.function_pxds, ""])


def receive(cls: type) -> Function:
    """`receive`, by which the simulator skips `on_message`, unless a subclass may override that."""
    handled, asked = f"{cls.__name__}_on_message(self, src, msg)", "self.on_message(src, msg)"
    return Function("receive", "self, src, msg", (f"return {handled} if type(self) is {cls.__name__} else {asked}",))


def functions_in(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    for one in tree.body:
        if isinstance(one, ast.FunctionDef):
            yield one
        elif isinstance(one, ast.ClassDef):
            yield from (each for each in one.body if isinstance(each, ast.FunctionDef))


def names_in(function: ast.FunctionDef) -> Iterator[ast.Name]:
    """The names in the function's body, except in f-strings: Python 3.11 gives those no positions."""
    todo: list[ast.AST] = list(function.body)
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Name):
            yield one
        if not isinstance(one, ast.JoinedStr):
            todo += [each for each in ast.iter_child_nodes(one) if each is not getattr(one, "annotation", None)]


def is_send(one: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(one, ast.Attribute) and ast.unparse(one) == SEND


def is_constructed(thing: Any) -> bool:
    """Is this a message or a record class? Other classes have their own `__init__`."""
    return isinstance(thing, type) and thing in FIELDS and (issubclass(thing, Message) or hasattr(thing, "from_key"))


def is_made(function: ast.FunctionDef, name: ast.Name) -> bool:
    """Is the class of this name called here, with positional arguments only?"""
    for one in ast.walk(function):
        if isinstance(one, ast.Call) and one.func is name:
            return not one.keywords and not any(isinstance(argument, ast.Starred) for argument in one.args)
    return False


def owner_of(cls: type, method: str) -> type:
    return next(base for base in cls.__mro__ if method in vars(base))


def one_line(function: Function) -> list[str]:
    lines = ["@classmethod"] if function.is_classmethod else []
    return [*lines, f"def {function.name}({function.parameters}): {'; '.join(function.body)}"]


def is_docstring(one: ast.stmt) -> bool:
    return isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)


def targets_of(one: ast.stmt) -> list[str]:
    targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def message_arguments(decorator: ast.expr) -> tuple[str, dict[str, int]]:
    assert isinstance(decorator, ast.Call)
    tag = ast.literal_eval(decorator.args[0]) if decorator.args else ""
    return tag, {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in decorator.keywords}


def default_text(field: Field) -> str:
    return f"one_of{tuple(field.default)!r}" if type(field.default).__name__ == "Choices" else repr(field.default)
