"""Makes the docs pages of figures and claims from a run of the lab: `python -m tools.results DIR docs/results`.

DIR is the directory of `fairgate lab run all --paper --out DIR`. Each paper gets a page, and each figure an SVG file
beside it, with a white background, because an image does not follow the colours of the site. If DIR has only some of
the experiments, the others keep their sections and figures: each section says what made it.
"""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from fairgate.errors import BadInput
from fairgate.lab.catalogue import all_experiments
from fairgate.lab.experiment import Claim, Experiment
from fairgate.lab.outcomes import Finished, saved
from fairgate.lab.plot import draw
from fairgate.lab.report import PAPERS, SYMBOLS, columns, command

PAGES = {"FK": "fair-k", "SG": "sigma", "EE": "end-to-end", "RF": "raymond", "X": "ours"}
PREFACE = (
    "Made by `make results`. ± is the 95 % interval of a mean over trials, and a range in parentheses that of a share."
    " [The lab](../lab.md) says what the verdicts mean, and how large these runs are."
)


def write_pages(run: Path, folder: Path) -> list[Path]:
    """The pages that were written."""
    found = saved(run)
    if not found:
        raise BadInput(f"there are no outcomes in {run}: make some with `fairgate lab run all --paper --out {run}`")
    folder.mkdir(exist_ok=True)
    return [write_paper(folder, key, found) for key in PAGES if any(key_of(each.experiment) == key for each in found)]


def key_of(experiment: Experiment) -> str:
    return experiment.id.partition(".")[0]


def write_paper(folder: Path, key: str, found: Sequence[Finished]) -> Path:
    path = folder / f"{PAGES[key]}.md"
    sections = sections_of(path)
    for each in found:
        if key_of(each.experiment) == key:
            sections[each.experiment.id] = "\n".join(section(folder, each))
    name, _, title = PAPERS[key].partition(": ")
    head = [f"# Figures: {name}", "", f"{title.capitalize()}." if key == "X" else f"*{title}*.", "", PREFACE]
    body = [sections[one.id] for one in all_experiments() if one.id in sections]
    path.write_text("\n\n".join(["\n".join(head), *body]) + "\n", encoding="utf-8")
    return path


def sections_of(path: Path) -> dict[str, str]:
    """The text of each experiment on a page that was made earlier."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return {part.split()[1]: part.strip() for part in re.split(r"^(?=## )", text, flags=re.MULTILINE)[1:]}


def section(folder: Path, each: Finished) -> list[str]:
    experiment, outcome, made = each.experiment, each.outcome, each.made
    start = experiment.id.replace(".", "-")
    for old in folder.glob(f"{start}-*.svg"):
        old.unlink()
    parts = [f"## {experiment.id} {experiment.title}", ""]
    parts += [f"{experiment.section}: `{command(each.about, experiment)}`", ""]
    for number, picture in enumerate(outcome.pictures, 1):
        name = f"{start}-{number}.svg"
        draw(folder / name, picture)
        parts += [f"![{picture.title or experiment.title}: {picture.y} against {picture.x}]({name})", ""]
    for note in outcome.notes:
        parts += [note, ""]
    parts += claims_table(outcome.claims)
    return [*parts, f"Made by {made.version}, {made.python}, {made.machine}, {made.day}."]


def claims_table(claims: Sequence[Claim]) -> list[str]:
    heads = columns(claims)
    ruled = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*ruled, *(claim_row(claim) for claim in claims), ""]


def claim_row(claim: Claim) -> str:
    gist = f"{claim.gist} ({claim.section})" if claim.section else claim.gist
    page = claim.ledger.partition("#")[0]
    why = f"{claim.why} [papers/{page}](../../papers/{claim.ledger})" if page else claim.why
    paper = [claim.paper] if claim.paper else []
    cells = (gist, *paper, claim.ours, f"{SYMBOLS[claim.verdict]} {claim.verdict}", why)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    run, folder = map(Path, sys.argv[1:])
    for page in write_pages(run, folder):
        print(f"wrote {page}")


if __name__ == "__main__":
    main()
