"""All experiments, in the order of the papers."""

from collections.abc import Sequence
from difflib import get_close_matches

from fairgate.errors import BadInput
from fairgate.lab import (  # noqa: F401 (they register their experiments)
    backups,
    coordinator_order,
    end_to_end,
    fair_k,
    live,
    ours,
    raymond,
    sigma,
)
from fairgate.lab.experiment import EXPERIMENTS, Bench, Experiment, Outcome

# Ids begin with these; the last that fits counts.
ORDER = ("FK", "FK.order", "SG", "EE", "RF", "X.cost", "X.fair", "X.crash", "X.backups", "X.live")
ALL = "all"


def all_experiments() -> list[Experiment]:
    return sorted(EXPERIMENTS.values(), key=place)


def place(each: Experiment) -> int:
    return max(number for number, start in enumerate(ORDER) if each.id.startswith(start))


def find(id: str) -> Experiment:
    """The experiment of this id, in any case of letters; raises BadInput with the nearest ids if there is none."""
    known = {name.lower(): each for name, each in EXPERIMENTS.items()}
    if id.lower() in known:
        return known[id.lower()]
    near = [known[name].id for name in get_close_matches(id.lower(), known, 3, 0.5)]
    advice = f"did you mean {' or '.join(near)}?" if near else "`fairgate lab list` lists all"
    raise BadInput(f"there is no experiment {id!r}: {advice}")


def chosen(ids: Sequence[str]) -> list[Experiment]:
    """These experiments, each once, or all of them."""
    named = list(dict.fromkeys(find(id) for id in ids if id != ALL))
    return all_experiments() if ALL in ids else named


def run(id: str, size: str = "quick", seed: int = 1, workers: int = 1, wide_area: str = "wan") -> Outcome:
    """Run one experiment and return its rows, pictures and claims.

    Args:
        id: Such as "FK.3"; `fairgate lab list` lists all.
        size: "quick", or "paper" for the size of the paper.
        seed: The first seed.
        workers: Processes that share the runs.
        wide_area: A file of round-trip times for Fair-k's wide area, instead of the synthetic one.

    Raises:
        BadInput: There is no such experiment or size.
    """
    return find(id).run(Bench(size=size, seed=seed, workers=workers, wide_area=wide_area))
