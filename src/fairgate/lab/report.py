"""The report of a run: one HTML file with figures, claims and how to repeat them, and the data beside it.

The page needs nothing else: figures are inline SVG, there is no script, and no request leaves it. Its colours follow
the reader's preference, light or dark. In a checkout of the project each claim links to the page of its paper.
"""

import os
import shlex
from collections.abc import Sequence
from html import escape
from pathlib import Path

import fairgate
from fairgate.lab.experiment import FAILS, HOLDS, PARTLY, Claim, Experiment
from fairgate.lab.outcomes import About, Finished
from fairgate.lab.plot import svg_of
from fairgate.lab.tables import write_page

NAME = "report.html"
CLASSES = {HOLDS: "good", PARTLY: "partly", FAILS: "bad"}
SYMBOLS = {HOLDS: "✓", PARTLY: "≈", FAILS: "✗"}
SHORT = " This is a short run. Some measures grow with the length of a run, so the verdicts of the paper size count."
PAPERS = {
    "FK": "Fair-k: V. A. Reddy, P. Mittal, I. Gupta, Fair K Mutual Exclusion Algorithm for Peer To Peer Systems",
    "SG": "Sigma: S. Lin, Q. Lian, M. Chen, Z. Zhang, A Practical Distributed Mutual Exclusion Protocol in Dynamic"
    " Peer-to-Peer Systems",
    "EE": "End-to-End: M. Muhammad, A. S. Cheema, I. Gupta, Efficient Mutual Exclusion in Peer-to-Peer Systems",
    "RF": "Raymond with failure detectors: Bouillaguet, Arantes, Sens, Fault Tolerant K-Mutual Exclusion"
    " Algorithm Using Failure Detector",
    "X": "Ours: all protocols side by side",
}
STYLE = """
:root { color-scheme: light dark; --ink: #1d2126; --soft: #5b6470; --page: #ffffff; --box: #f4f6f8; --line: #d8dde3;
  --good: #00694d; --partly: #8a5a00; --bad: #b3261e; --link: #00539c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7eb; --soft: #a3acb7; --page: #15181c; --box: #1f242a;
  --line: #39414a; --good: #5fd3a8; --partly: #f0b95b; --bad: #ff8f86; --link: #7dbcff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.25rem; margin: 3rem 0 .5rem; padding-top: .8rem; border-top: 2px solid var(--line); }
h3 { font-size: 1.1rem; margin: 2.2rem 0 .1rem; }
p { margin: .4rem 0; }
.soft { color: var(--soft); font-size: .9rem; }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .3rem .5rem; margin: 1rem 0; }
nav a { padding: .15rem .55rem; border: 1px solid var(--line); border-radius: 1rem; text-decoration: none;
  font-size: .9rem; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.figures svg { display: block; width: 100%; height: auto; max-width: 36rem; margin: 0 auto; }
.figures svg text { font-family: inherit !important; }
table { border-collapse: collapse; table-layout: fixed; width: 100%; margin: .8rem 0; font-size: .92rem; }
th { text-align: left; color: var(--soft); font-weight: 600; }
th, td { padding: .4rem .6rem .4rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
.good { color: var(--good); } .partly { color: var(--partly); } .bad { color: var(--bad); }
.verdict { font-weight: 600; }
th:nth-child(1) { width: 24%; } th:nth-child(2) { width: 12%; } th:nth-child(3) { width: 20%; }
th:nth-child(4) { width: 13%; }
.own th:nth-child(2) { width: 34%; } .own th:nth-child(3) { width: 12%; } .own th:nth-child(4) { width: auto; }
.counts span { display: inline-block; margin-right: 1.2rem; font-weight: 600; }
details { margin: .6rem 0; } summary { cursor: pointer; color: var(--soft); font-size: .9rem; }
pre { background: var(--box); padding: .6rem .8rem; border-radius: .4rem; overflow-x: auto; font-size: .85rem;
  margin: .4rem 0; }
@media (max-width: 40rem) {
  thead { display: none; } tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0; }
  td { display: block; border: 0; padding: .1rem 0; }
  td[data-name]::before { content: attr(data-name) ": "; color: var(--soft); }
}
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --page: #fff; --box: #f4f4f4; --line: #bbb; --good: #00694d;
    --partly: #8a5a00; --bad: #b3261e; --link: #000; }
  body { max-width: none; padding: 0; font-size: 11pt; } nav { display: none; }
  header, tr, details { break-inside: avoid; } h2 { break-after: avoid; } .figures svg { max-width: 13cm; }
  .figures { grid-template-columns: repeat(auto-fit, minmax(8cm, 1fr)); }
  details::details-content { content-visibility: visible; } pre { white-space: pre-wrap; }
}
"""


class Section:
    """The part of the page about one experiment. It is drawn once, although the page grows with each experiment."""

    def __init__(self, each: Finished, folder: Path) -> None:
        self.id = each.experiment.id
        self.about = each.about
        self.made = each.made
        self.verdicts = [claim.verdict for claim in each.outcome.claims]
        self.html = section(each, ledger_folder(folder))


def ledger_folder(folder: Path) -> str | None:
    """Where the pages of the papers are, seen from the report; None if this is not a checkout of the project."""
    papers = Path(fairgate.__file__).parents[2] / "papers"
    return Path(os.path.relpath(papers, folder)).as_posix() if papers.is_dir() else None


def write_report(folder: Path, sections: Sequence[Section]) -> Path:
    """Write the page into the folder and return its path. The data of each experiment is written by `save`."""
    path = folder / NAME
    write_page(path, page(sections))
    return path


def page(sections: Sequence[Section]) -> str:
    links = "".join(f'<a href="#{each.id}">{each.id}</a>' for each in sections)
    body, paper = [], ""
    for each in sections:
        if (key := each.id.partition(".")[0]) != paper:
            paper = key
            body.append(f"<h2>{escape(PAPERS[key])}</h2>")
        body.append(each.html)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>fairgate lab</title><style>{STYLE}</style></head><body>\n"
        f"<h1>The papers' figures, measured again</h1>\n{preface(sections)}{counts(sections)}<nav>{links}</nav>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def preface(sections: Sequence[Section]) -> str:
    about = sections[0].about
    network = f"the wide area is read from {about.latency}" if about.latency else "the wide area is synthetic"
    short = SHORT if about.size != "paper" else ""
    return (
        "<p>Each figure of the papers, made again, and each claim beside our measurement. An interval (±) holds"
        " the mean with 95 % confidence. “Holds with this definition” means that the claim holds, but the text leaves"
        f" open what exactly is measured; the reason says which definition was used.{short}</p>\n"
        f'<p class="soft">{escape(about.size.capitalize())} size, seed {about.seed}, {escape(network)}.'
        f" {escape(makers(sections))}</p>\n"
    )


def makers(sections: Sequence[Section]) -> str:
    """What made the sections: once, if it was the same for all."""
    found: dict[str, list[str]] = {}
    for each in sections:
        made = each.made
        found.setdefault(f"{made.version}, {made.python}, {made.machine}, {made.day}", []).append(each.id)
    if len(found) == 1:
        return f"Made by {next(iter(found))}."
    return " ".join(f"{', '.join(ids)}: {made}." for made, ids in found.items())


def counts(sections: Sequence[Section]) -> str:
    verdicts = [verdict for each in sections for verdict in each.verdicts]
    parts = (f'<span class="{CLASSES[name]}">{SYMBOLS[name]} {name}: {verdicts.count(name)}</span>' for name in CLASSES)
    return f'<p class="counts">{"".join(parts)}</p>\n'


def section(finished: Finished, ledger: str | None) -> str:
    each, outcome = finished.experiment, finished.outcome
    figures = "".join(svg_of(picture, f"{each.id}-{number}") for number, picture in enumerate(outcome.pictures))
    data = f'<a href="{each.id}.csv">runs</a>, <a href="{each.id}.points.csv">points of the figure</a>'
    notes = "".join(f'<p class="soft">{escape(note)}</p>\n' for note in outcome.notes)
    return (
        f'<section id="{each.id}"><header><h3>{each.id} {escape(each.title)}</h3>\n'
        f'<p class="soft">{escape(each.section)}. Data: {data}</p>\n'
        f'<div class="figures">{figures}</div></header>\n{notes}{claims_table(outcome.claims, ledger)}'
        f"<details><summary>How to make this figure</summary><pre>{escape(command(finished.about, each))}</pre>"
        f"<pre>{escape(call(finished.about, each))}</pre></details></section>"
    )


def command(about: About, each: Experiment) -> str:
    words = ["fairgate", "lab", "run", each.id, f"--{about.size}", "--seed", str(about.seed)]
    return shlex.join(words + (["--latency", about.latency] if about.latency else []))


def call(about: About, each: Experiment) -> str:
    network = f", wide_area={about.latency!r}" if about.latency else ""
    return (
        "from fairgate import lab\n\n"
        f'outcome = lab.run("{each.id}", size="{about.size}", seed={about.seed}{network})\n'
        "outcome.rows, outcome.claims"
    )


def claims_table(claims: Sequence[Claim], ledger: str | None = None) -> str:
    if not claims:
        return ""
    heads = "".join(f"<th>{name}</th>" for name in columns(claims))
    rows = "".join(claim_row(claim, ledger) for claim in claims)
    own = "" if "paper" in columns(claims) else ' class="own"'
    return f"<table{own}><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>\n"


def columns(claims: Sequence[Claim]) -> list[str]:
    """Claims of our own have no paper's value. The claims of one experiment are all a paper's, or all our own."""
    paper = ["paper"] if any(claim.paper for claim in claims) else []
    return ["claim", *paper, "ours", "verdict", "why"]


def claim_row(claim: Claim, ledger: str | None) -> str:
    kind = CLASSES[claim.verdict]
    section = f' <span class="soft">({escape(claim.section)})</span>' if claim.section else ""
    paper = f'<td data-name="paper">{escape(claim.paper)}</td>' if claim.paper else ""
    return (
        f'<tr><td>{escape(claim.gist)}{section}</td>{paper}<td data-name="ours">{escape(claim.ours)}</td>'
        f'<td class="verdict {kind}">{SYMBOLS[claim.verdict]} {escape(claim.verdict)}</td>'
        f"<td>{escape(claim.why)} {ledger_link(claim, ledger)}</td></tr>"
    )


def ledger_link(claim: Claim, ledger: str | None) -> str:
    """The entry in papers/. A reader without the checkout still sees its name."""
    if not claim.ledger:
        return ""
    page = claim.ledger.partition("#")[0]
    if ledger is None:
        return f'<span class="soft">papers/{escape(page)}</span>'
    return f'<a class="soft" href="{escape(ledger)}/{escape(claim.ledger)}">papers/{escape(page)}</a>'
