"""What `fairgate` shows to people and their tools: names, and the arguments of `join`."""

from __future__ import annotations

import dataclasses
import inspect
import pydoc
import subprocess
import sys

import pytest

import fairgate
from fairgate import sync
from fairgate.live.cluster_options import ClusterOptions

API = {*fairgate.__all__, "sync"}
JOINS = pytest.mark.parametrize("join", [fairgate.join, sync.join], ids=["asyncio", "threads"])


def in_new_process(code: str) -> list[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()


def test_dir_and_completion_show_the_api_before_it_is_imported() -> None:
    shown = in_new_process("import sys, fairgate; print(*dir(fairgate)); assert 'fairgate.api' not in sys.modules")
    assert set(shown) >= API
    assert {name for name in shown if not name.startswith("__")} == {*API, "lab"}
    complete = "import rlcompleter, fairgate; print(rlcompleter.Completer(vars()).complete('fairgate.Sema', 0))"
    assert in_new_process(complete)[0].startswith("fairgate.Semaphore")


def test_help_describes_every_class_and_function() -> None:
    text = pydoc.plain(pydoc.render_doc(fairgate))
    for name in fairgate.__all__:
        found = getattr(fairgate, name)
        assert (f"    class {name}(" if inspect.isclass(found) else f"    {name}(") in text, name


@JOINS
def test_join_names_every_option_of_a_cluster(join: object) -> None:
    options = {field.name for field in dataclasses.fields(ClusterOptions)} - {"seeds"}
    parameters = inspect.signature(join).parameters  # type: ignore[arg-type]
    assert set(parameters) == {*options, "seeds", "journal"}
    kinds = {one.kind for one in parameters.values()}
    assert kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.KEYWORD_ONLY}


def test_both_joins_have_the_same_parameters() -> None:
    assert inspect.signature(fairgate.join).parameters == inspect.signature(sync.join).parameters


@JOINS
def test_a_misspelt_option_is_refused(join: object) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'adress'"):
        join(adress="10.0.0.5:7400")  # type: ignore[operator]
