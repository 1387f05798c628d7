"""Scenarios: plain text files of commands, with the output after each block of them.

    # Node 4 asks; the coordinator is 3.
    protocol fair_k members 1..8 k 3 root 3
    acquire 4
    ----
    4 -> 3 fk.request(4)

    deliver 4->3 request
    ----
    3 -> 1 fk.child(4)
    3 -> 4 fk.token_locations((4, 2, 3), 1)

A block consists of commands, a line of dashes, and the output up to a blank line. `run_scenario` runs the commands and
returns the text with the actual output, so that a test compares two texts and a change shows up in review as a diff.
Lines that begin with # are comments, and so is everything after " #" in a command.

  protocol NAME members 1..8 [k 3] [root 3] [epoch 0] [seed 1] [over LAYER,LAYER] [census off] [OPTION=VALUE...]
  acquire | release | again | cancel | crash NODE...   a node is a number, or a range as in 4..7; `again`: a node
                                                 leaves and asks again in one step
  deliver all | next | to NODE | SRC->DST [KIND]  `all`: until none is in flight; else only messages in flight now
  drop, duplicate                                 messages are selected as for deliver
  fire NODE TIMER     advance SECONDS     suspect | trust NODE PEER [T|S]
  state [FIELD...] [NODE...]     flight     timers
"""

from collections.abc import Iterator

from fairgate.scenario.commands import Registry, Runner, Wrong

DASHES = "----"


class ScenarioError(Exception):
    """A command is not valid; `line` is its line in the file, `why` the reason."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why


def run_scenario(text: str, make: Registry) -> str:
    """The text with the actual output of its commands. Raises ScenarioError at a command that is not valid."""
    runner = Runner(make)
    result: list[str] = []
    lines = enumerate(text.splitlines(), 1)
    for number, line in lines:
        if not command_of(line):
            result.append(line)
            continue
        result += run_block(number, line, lines, runner)
    return "".join(f"{line}\n" for line in result)


def run_block(number: int, line: str, lines: Iterator[tuple[int, str]], runner: Runner) -> Iterator[str]:
    """Run the block that begins with `line`; yields its lines with the new output instead of the old.

    It ends with the blank line or comment after its old output.
    """
    output: list[str] = []
    while True:
        yield line
        try:
            output += runner.run(command_of(line))
        except Wrong as wrong:
            raise ScenarioError(number, f"{wrong} (in {line.strip()!r})") from wrong
        before = number
        number, line = next(lines, (number, ""))
        if line.strip() == DASHES:
            break
        if not line.strip():
            raise ScenarioError(before, f"no line {DASHES} after this command")
    yield DASHES
    yield from output or ["ok"]
    for _, old in lines:
        if not old.strip() or old.startswith("#"):
            yield old
            break


def command_of(line: str) -> list[str]:
    """The words of a command, without comments; empty if there is none."""
    return [] if line.startswith("#") else line.split(" #", maxsplit=1)[0].split()
