"""Adds the options of options.py to a typer command."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from fairgate.cli.durations import Duration
from fairgate.cli.network.options import OBSERVE_OPTIONS, OPTIONS, PANEL, NetworkOption, flag
from fairgate.cli.network.settings import NetworkSettings
from fairgate.cli.options import duration

Command = Callable[..., int]


def network_options(*names: str, checked: bool = True) -> Callable[[Command], Command]:
    """Decorate a command: the named options become its options, and it receives them as one argument `network`.

    With `checked` false, the command calls `network.check()` itself, if it has to.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_net(**given: Any) -> int:
            network = NetworkSettings.of({name: given.pop(name) for name in names})
            if checked:
                network.check()
            return command(network=network, **given)

        signature = inspect.signature(command)
        own = [each for each in signature.parameters.values() if each.name != "network"]
        parameters = [*own, *[parameter(name, OPTIONS[name]) for name in names]]
        # Typer reads both.
        with_net.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_net.__annotations__ = {each.name: each.annotation for each in parameters} | {"return": int}
        return with_net

    return decorate


def parameter(name: str, word: NetworkOption) -> inspect.Parameter:
    kind: Any = {bool: bool, list: list[str] | None, Duration: float | None}.get(word.kind, word.kind | None)
    panel = None if name in OBSERVE_OPTIONS else PANEL
    if word.kind is Duration:
        option = duration(flag(name), word.help, panel)
    else:
        option = typer.Option(
            flag(name), metavar=word.metavar or None, help=word.help, show_default=False, rich_help_panel=panel
        )
    default = False if word.kind is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option])
