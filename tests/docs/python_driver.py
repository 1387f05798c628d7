"""Runs the Python blocks of a page in one namespace: `python_driver.py SECONDS`, see blocks.py.

Reads one JSON line per block from stdin, [source, name], and answers with one on stdout: "" or a traceback. What the
blocks print goes to stderr.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import sys
import traceback


async def run_block(source: str, name: str, namespace: dict[str, object]) -> None:
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = eval(code, namespace)
    if inspect.iscoroutine(outcome):
        await outcome


async def main(seconds: float) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        source, name = json.loads(line)
        failure = ""
        try:
            async with asyncio.timeout(seconds):
                await run_block(source, name, namespace)
        except BaseException:
            failure = traceback.format_exc()
        print(json.dumps(failure), file=answers, flush=True)


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
