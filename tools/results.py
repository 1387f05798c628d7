"""Makes the docs pages of figures and claims from a run of the lab: `python -m tools.results DIR docs/results`.

DIR is the directory of `fairgate lab run all --paper --out DIR`. Each paper gets a page, and each figure an SVG file
beside it, with a white background, because an image does not follow the colours of the site. An experiment that was
run again alone replaces its part.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from fairgate.errors import BadInput
from fairgate.lab.experiment import Claim
from fairgate.lab.outcomes import Finished, Made, saved
from fairgate.lab.plot import draw
from fairgate.lab.report import PAPERS, SYMBOLS, command

PAGES = {"FK": "fair-k", "SG": "sigma", "EE": "end-to-end", "RF": "raymond", "X": "ours"}
HEADS = ("claim", "paper", "ours", "verdict", "why")


def write_pages(run: Path, folder: Path) -> list[Path]:
    """The pages that were written. Figures of an earlier run are removed."""
    found = saved(run)
    if not found:
        raise BadInput(f"there are no outcomes in {run}: make some with `fairgate lab run all --paper --out {run}`")
    folder.mkdir(exist_ok=True)
    for old in folder.glob("*.svg"):
        old.unlink()
    return [write_paper(folder, key, found) for key in PAGES if any(key_of(each) == key for each in found)]


def key_of(each: Finished) -> str:
    return each.experiment.id.partition(".")[0]


def write_paper(folder: Path, key: str, found: Sequence[Finished]) -> Path:
    chosen = [each for each in found if key_of(each) == key]
    name, _, title = PAPERS[key].partition(": ")
    parts = [f"# Figures: {name}", "", f"{title.capitalize()}." if key == "X" else f"*{title}*.", "", *preface(chosen)]
    for each in chosen:
        parts += section(folder, each)
    path = folder / f"{PAGES[key]}.md"
    path.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return path


def preface(chosen: Sequence[Finished]) -> list[str]:
    makers: dict[Made, list[str]] = {}
    for each in chosen:
        makers.setdefault(each.made, []).append(each.experiment.id)
    about = chosen[0].about
    made = "; ".join(
        f"{', '.join(ids)} by {made.version}, {made.python}, {made.machine}, {made.day}" for made, ids in makers.items()
    )
    return [
        f"Made by `make results` from a run in {about.size} size with seed {about.seed}: {made}. [The lab](../lab.md)"
        " says what the verdicts mean.",
        "",
    ]


def section(folder: Path, each: Finished) -> list[str]:
    experiment, outcome = each.experiment, each.outcome
    parts = [f"## {experiment.id} {experiment.title}", ""]
    parts += [f"{experiment.section}: `{command(each.about, experiment)}`", ""]
    for number, picture in enumerate(outcome.pictures, 1):
        name = f"{experiment.id.replace('.', '-')}-{number}.svg"
        draw(folder / name, picture)
        parts += [f"![{picture.title or experiment.title}: {picture.y} against {picture.x}]({name})", ""]
    for note in outcome.notes:
        parts += [note, ""]
    return parts + claims_table(outcome.claims)


def claims_table(claims: Sequence[Claim]) -> list[str]:
    ruled = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    return [*ruled, *(claim_row(claim) for claim in claims), ""]


def claim_row(claim: Claim) -> str:
    gist = f"{claim.gist} ({claim.section})" if claim.section else claim.gist
    page = claim.ledger.partition("#")[0]
    why = f"{claim.why} [papers/{page}](../../papers/{claim.ledger})"
    cells = (gist, claim.paper, claim.ours, f"{SYMBOLS[claim.verdict]} {claim.verdict}", why)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    run, folder = map(Path, sys.argv[1:])
    for page in write_pages(run, folder):
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
