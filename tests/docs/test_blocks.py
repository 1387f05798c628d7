"""Every code block of the README and the docs runs as its page says (blocks.py lists the rules).

`REWRITE=1 pytest tests/docs` writes the real output of commands into the pages: review the diff.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from tests.docs.blocks import RUN, SHOWN, Block, BlockFailed, PageRunner, blocks, matches

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("papers/**/*.md")])
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
RUNNABLE = [name for name in NAMES if any(block.language in RUN for block in blocks((ROOT / name).read_text()))]


def all_blocks(name: str) -> list[Block]:
    return list(blocks((ROOT / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", NAMES)
def test_every_block_names_a_known_language(name: str) -> None:
    """A block without a language would be neither run nor noticed."""
    unknown = [(block.line, block.language) for block in all_blocks(name) if block.language not in RUN + SHOWN]
    assert unknown == []


def test_few_blocks_are_left_out() -> None:
    """Each exception has a reason, and exceptions stay rare."""
    runnable = [block for name in NAMES for block in all_blocks(name) if block.language in RUN and not block.file]
    skipped = [block for block in runnable if block.not_run]
    assert all(len(block.not_run) > 5 for block in skipped)
    assert len(skipped) < len(runnable) / 4


@pytest.mark.parametrize("name", RUNNABLE)
def test_page(name: str) -> None:
    page = ROOT / name
    text = page.read_text(encoding="utf-8")
    rewritten = text
    failures = []
    with tempfile.TemporaryDirectory(prefix="page") as folder, PageRunner(Path(folder)) as runner:
        for block in blocks(text):
            if (block.language not in RUN and not block.file) or block.not_run:
                continue
            try:
                real = runner.run(block)
            except BlockFailed as failed:
                failures.append(f"{name}, line {block.line}: {failed}")
                continue
            rewritten = rewritten.replace(block.body, real, 1)
            if real != block.body and not os.environ.get("REWRITE"):
                failures.append(f"{name}, line {block.line}: expected\n{block.body}\ngot\n{real}")
    if os.environ.get("REWRITE"):
        page.write_text(rewritten, encoding="utf-8")
    assert not failures, "\n\n".join(failures)


# The runner itself.

WRONG = {
    "a command fails": "```sh\nfalse\n```\n",
    "an early command fails": "```sh\nfalse\ntrue\n```\n",
    "a console command fails": "```console\n$ false\n```\n",
    "other output": "```console\n$ echo one\ntwo\n```\n",
    "other output around an ellipsis": "```console\n$ echo one two\none ... three\n```\n",
    "another exit code": "<!-- exit 3 -->\n```sh\nexit 4\n```\n",
    "an exception": "```python\nraise ValueError\n```\n",
    "an exception after await": "```python\nimport asyncio\nawait asyncio.sleep(0)\n1 / 0\n```\n",
    "the process ends": "```python\nimport os\nos._exit(3)\n```\n",
}


@pytest.mark.parametrize("why", WRONG)
def test_wrong_blocks_are_noticed(why: str, tmp_path: Path) -> None:
    (block,) = blocks(WRONG[why])
    with PageRunner(tmp_path) as runner:
        try:
            assert runner.run(block) != block.body
        except BlockFailed:
            return
    assert block.language == "console"


RIGHT = """
<!-- setup: name=world -->
```sh
echo "hello $name" > greeting
```

<!-- file: greet.py -->
```python
GREETING = "hello"
```

```console
$ cat greeting
hello world
$ echo a b c
a ... c
```

```python
import greet
```

1. In a list:

   <!-- exit 3 -->
   ```sh
   exit 3
   ```

```python
import asyncio

assert await asyncio.sleep(0, greet.GREETING) == "hello"
```
"""


def test_right_blocks_pass_and_share_their_directory(tmp_path: Path) -> None:
    found = list(blocks(RIGHT))
    assert [block.line for block in found] == [3, 8, 12, 19, 26, 30]
    with PageRunner(tmp_path) as runner:
        for block in found:
            assert runner.run(block) == block.body


def test_an_ellipsis_matches_any_text() -> None:
    assert matches("one ... three", "one two\ntwo three\n")
    assert not matches("one ... three", "one three four")
