"""A plugin for pytest that runs one suite: it follows the suite's list, and writes the outcomes to a file.

The environment names both. Listed tests get little time, since some of them can only wait forever. The process ends at
once after the last test, because such tests leave threads behind.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.peers import lists
from tests.peers.adapters import gates

OUTCOMES, SUITE = "PEERS_OUTCOMES", "PEERS_SUITE"
LISTED_SECONDS, SECONDS = 4, 60  # per test


def name_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2].replace("::", ".")


class Outcomes:
    def __init__(self, suite: lists.Suite, path: Path) -> None:
        self.suite = suite
        self.path = path
        self.all: dict[str, str] = {}
        self.before = 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        kept = []
        for item in items:
            name = name_of(item)
            if lists.listed_as(name, self.suite.not_applicable | self.suite.not_run) in self.suite.not_run:
                self.all[name] = lists.NOT_RUN
                continue
            listed = lists.listed_as(name, self.suite.not_applicable)
            item.add_marker(pytest.mark.timeout(LISTED_SECONDS if listed else SECONDS), append=False)
            kept.append(item)
            self.all[name] = lists.NOT_ENDED
        items[:] = kept
        self.write()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        report = yield
        name = name_of(item)
        if report.when == "setup":
            self.before = gates.count_opened()
            self.all[name] = lists.PASSED
        if report.outcome != "passed":
            self.all[name] = f"{lists.FAILED}: {why(report)}"
        elif report.when == "teardown" and self.all[name] == lists.PASSED and gates.count_opened() == self.before:
            self.all[name] = lists.NO_GATE
        self.write()
        return report

    def write(self) -> None:
        self.path.write_text(json.dumps(self.all), encoding="utf-8")

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool | None:
        """Run tests that are coroutines in a new loop each, with the fixtures that are generators of `loops`."""
        if not inspect.iscoroutinefunction(pyfuncitem.obj):
            return None
        wanted = inspect.signature(pyfuncitem.obj).parameters
        asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
        return True

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        self.write()
        os._exit(0)


def why(report: Any) -> str:
    """The last line of what pytest says, which names the exception."""
    if report.outcome == "skipped":
        return f"skipped by the suite: {report.longrepr[2]}"
    text = str(getattr(getattr(report.longrepr, "reprcrash", None), "message", report.longrepr))
    return text.strip().partition("\n")[0][:200]


def pytest_configure(config: pytest.Config) -> None:
    suite = lists.load(lists.FOLDER / f"{os.environ[SUITE]}.toml")
    config.pluginmanager.register(Outcomes(suite, Path(os.environ[OUTCOMES])))
    adapter = import_module(f"tests.peers.adapters.{suite.adapter}")
    config.pluginmanager.register(adapter)
