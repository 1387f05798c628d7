"""`fairgate risk`: how likely lost memories break the mutual exclusion of Sigma (figure 2 of its paper)."""

import json
from typing import Annotated

import typer

from fairgate.errors import BadInput
from fairgate.lab.sigma_risk import advised, break_probability, resets_survived
from fairgate.sim.config import Config


def risk_command(
    replicas: Annotated[int, typer.Option(metavar="N", help="Number of replicas, which vote on who enters.")] = 32,
    quorum: Annotated[
        int | None, typer.Option(metavar="M", show_default=False, help="Votes needed. Default: more than N/(k+1).")
    ] = None,
    k: Annotated[int, typer.Option("--k", metavar="K", help="Number of clients that may be inside.")] = 1,
    stay: Annotated[float, typer.Option(metavar="SECONDS", help="Time that a client stays inside.")] = 10.0,
    life: Annotated[
        float, typer.Option(metavar="SECONDS", help="Mean time until a replica loses its memory.")
    ] = 10_000.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
) -> None:
    """Print how likely it is that Sigma lets too many in, because replicas lose their memory during a stay.

    With the figures of the paper, and with the smallest quorum:

        fairgate risk --replicas 32 --quorum 24

        fairgate risk --replicas 3
    """
    m = replicas // (k + 1) + 1 if quorum is None else quorum
    if replicas < 1 or not 1 <= m <= replicas or k < 1 or replicas // m != k:
        raise BadInput(f"{m} of {replicas} votes do not let exactly {k} in: change --replicas, --quorum or --k")
    if not 0 <= stay < float("inf") or not 0 < life < float("inf"):
        raise BadInput(f"--stay and --life must be times in seconds, not {stay:g} and {life:g}")
    survived = resets_survived(replicas, m, k)
    chance = break_probability(replicas, m, stay, life, k)
    if as_json:
        found = {"replicas": replicas, "quorum": m, "k": k, "resets_survived": survived, "probability": chance}
        print(json.dumps(found))
        return
    print(f"{m} of {replicas} votes, k = {k}: {lost(survived)} lost during a stay {is_are(survived)} harmless")
    print(f"probability that a stay of {stay:g} s lets too many in, at a mean life of {life:g} s: {chance:.2g}")
    if k == 1 and survived < resets_survived(*advised(replicas)):
        print(advice(replicas, stay, life))


def advice(n: int, stay: float, life: float) -> str:
    """A stronger choice of about as many replicas."""
    more, m = advised(n)
    chance = break_probability(more, m, stay, life)
    survived = resets_survived(more, m)
    return f"better: {m} of {more} votes, with which {lost(survived)} {is_are(survived)} harmless ({chance:.2g})"


def weak_votes(config: Config) -> list[str]:
    """A warning for a simulation in which one lost memory may let too many in."""
    n: int = config.options.get("replicas") or 2 * config.k + 1
    m: int = config.options.get("quorum") or n // (config.k + 1) + 1
    if resets_survived(n, m, config.k):
        return []
    told = f"with {m} of {n} votes, one replica that loses its memory during a stay may let too many in"
    if config.replica_life:
        chance = break_probability(n, m, config.cs, config.replica_life, config.k)
        told += f" (probability {chance:.2g} per stay)"
    if config.k > 1:
        return [f"{told}: use a larger --quorum of more --replicas"]
    more, quorum = advised(n)
    return [f"{told}: use --replicas {more} --quorum {quorum}"]


def lost(memories: int) -> str:
    return f"{memories} memor{'y' if memories == 1 else 'ies'}"


def is_are(count: int) -> str:
    return "is" if count == 1 else "are"
