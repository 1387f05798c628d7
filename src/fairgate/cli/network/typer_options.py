"""The options of options.py as options of a typer command."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from fairgate.cli.network.options import PANEL, TO_TELL, WORDS, Word, flag
from fairgate.cli.network.settings import Net

Command = Callable[..., int]


def net_options(*names: str) -> Callable[[Command], Command]:
    """The command's argument `net` is made of these options."""

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_net(**given: Any) -> int:
            net = Net.of({name: given.pop(name) for name in names})
            net.check()
            return command(net=net, **given)

        signature = inspect.signature(command)
        own = [each for each in signature.parameters.values() if each.name != "net"]
        parameters = [*own, *[parameter(name, WORDS[name]) for name in names]]
        # Typer goes by both.
        with_net.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_net.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": int}
        return with_net

    return decorate


def parameter(name: str, word: Word) -> inspect.Parameter:
    kind: Any = {bool: bool, list: list[str] | None}.get(word.kind, word.kind | None)
    panel = None if name in TO_TELL else PANEL
    option = typer.Option(
        flag(name), metavar=word.metavar or None, help=word.help, show_default=False, rich_help_panel=panel
    )
    default = False if word.kind is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
