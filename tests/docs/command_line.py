"""The reference of all commands and options in docs/command-line.md, made from the parsers themselves."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import typer.main

from fairgate.cli.app import app
from fairgate.cli.run.help import parser as run_parser

NOT_LISTED = ("--help",)  # every command has it


def reference() -> str:
    """The Markdown text: one section per command."""
    root: Any = typer.main.get_command(app)
    parts = list(sections("fairgate", root))
    return "\n".join(parts)


def sections(path: str, command: Any) -> Iterator[str]:
    if path == "fairgate run":
        yield from run_section()
        return
    yield f"### {path}\n"
    yield from prose(command.help or "")
    yield from table(list(rows(command)))
    for name, inner in sorted(getattr(command, "commands", {}).items()):
        yield from sections(f"{path} {name}", inner)


def prose(help: str) -> Iterator[str]:
    """The help text: paragraphs, with indented lines as examples."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(help))
    for indented, group in groupby(paragraphs, lambda each: each.startswith("    ")):
        if indented:
            examples = inspect.cleandoc("\n".join(group))
            yield f"```text\n{examples}\n```\n"
        else:
            yield from (escaped(re.sub(r"\[/?bold\]", "**", each)) + "\n" for each in group)


def escaped(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;")


def rows(command: Any) -> Iterator[tuple[str, str]]:
    """Each argument and option of a typer command, with its meaning."""
    for parameter in command.params:
        names = [*parameter.opts, *parameter.secondary_opts]
        if parameter.param_type_name == "argument":
            names = [parameter.metavar or parameter.human_readable_name]
        elif parameter.metavar:
            names[-1] += f" {parameter.metavar}"
        if names[0] in NOT_LISTED:
            continue
        meaning = escaped(re.sub(r"\s*\n\s*", " ", parameter.help or ""))
        if parameter.show_default and parameter.default is not None and parameter.default is not False:
            meaning += f" Default: {parameter.default}."
        yield ", ".join(f"`{name}`" for name in names), meaning


def run_section() -> Iterator[str]:
    """`fairgate run` is parsed by argparse. Its long help is shown as it is."""
    parser = run_parser()
    yield "### fairgate run\n"
    yield f"```text\n{parser.usage}\n\n{(parser.description or '').rstrip()}\n```\n"
    found = []
    for action in parser._actions:
        if "--help" not in action.option_strings:
            found.append((", ".join(f"`{name}`" for name in run_names(action)), escaped(action.help or "")))
    yield from table(found)
    yield f"```text\n{(parser.epilog or '').rstrip()}\n```\n"


def run_names(action: argparse.Action) -> list[str]:
    names = [*action.option_strings] or [str(action.metavar)]
    if action.option_strings and action.nargs != 0:
        names[-1] += " " + str(action.metavar or "|".join(action.choices or ()))
    return names


def table(found: list[tuple[str, str]]) -> Iterator[str]:
    if found:
        yield "| option | meaning |\n|---|---|"
        yield from (f"| {names} | {meaning} |" for names, meaning in found)
        yield ""
