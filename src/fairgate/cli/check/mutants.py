"""`fairgate check --mutants`: mutation testing. How many deleted statements of a protocol do the checks miss?"""

import json
import multiprocessing

from rich.table import Table

from fairgate.cli.screen import progress_bar, stdout
from fairgate.core.mutex import Mutex
from fairgate.mutation.deletions import Deleted, count_places, delete_all
from fairgate.mutation.survivors import explain

NOT_EXPLAINED = "NOT EXPLAINED"
ADVICE = "write the reason into src/fairgate/mutation/survivors.py, or remove the statement"


def mutants_command(protocol: type[Mutex], as_json: bool) -> int:
    """Delete each statement in turn. Returns 1 if a deletion survives that mutation/survivors.py does not explain."""
    found: list[Deleted] = []
    interrupted = False
    with progress_bar(f"mutants of {protocol.about.name}", count_places(protocol)) as advance:
        try:
            for deleted in delete_all(protocol, multiprocessing.cpu_count()):
                found.append(deleted)
                advance(len(found))
        except KeyboardInterrupt:
            interrupted = True
    found.sort(key=lambda deleted: deleted.line)
    survivors = [deleted for deleted in found if not deleted.caught]
    if as_json:
        print(json.dumps(report(protocol, found, survivors, interrupted)))
    else:
        show(protocol, found, survivors)
    if interrupted:
        return 130
    return 1 if any(not explain(deleted) for deleted in survivors) else 0


def report(
    protocol: type[Mutex], found: list[Deleted], survivors: list[Deleted], interrupted: bool
) -> dict[str, object]:
    return {
        "protocol": protocol.about.name,
        "mutants": len(found),
        "caught": len(found) - len(survivors),
        "survivors": [
            {"handler": d.handler, "line": d.line, "statement": d.statement, "why": explain(d)} for d in survivors
        ],
        "interrupted": interrupted,
    }


def show(protocol: type[Mutex], found: list[Deleted], survivors: list[Deleted]) -> None:
    console = stdout()
    caught = len(found) - len(survivors)
    share = 100 * caught / len(found) if found else 0.0
    console.print(
        f"{protocol.about.name}: {len(found)} statements deleted one at a time, {caught} noticed ({share:.0f} %)",
        markup=False,
    )
    if survivors:
        table = Table("line", "handler", "deletion not noticed", "reason", box=None, padding=(0, 2, 0, 0))
        for deleted in survivors:
            why = explain(deleted) or NOT_EXPLAINED
            table.add_row(str(deleted.line), deleted.handler, deleted.statement, why)
        console.print(table, markup=False)
        if not all(map(explain, survivors)):
            console.print(f"{NOT_EXPLAINED}: {ADVICE}", markup=False, soft_wrap=True)
