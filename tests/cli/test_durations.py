"""Durations on the command line: the same words everywhere, and one line for what is none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairgate.cli.app import run
from fairgate.cli.run.options import read_options
from fairgate.errors import BadInput

SHORTEST = 0.001  # of leases
WANTED = "a duration up to 1e+09 s, such as 10 (seconds), 500ms, 10m or 1h30m, not "


@pytest.mark.parametrize(
    ("word", "seconds"),
    [
        ("0", 0.0), ("10", 10.0), ("2.5", 2.5), ("1e3", 1000.0), ("500ms", 0.5), ("20us", 2e-5), ("7ns", 7e-9),
        ("0.5s", 0.5), ("10m", 600.0), ("6h", 21600.0), ("1h30m", 5400.0), ("1d12h", 129600.0), ("1m0.5s", 60.5),
    ],
)  # fmt: skip
def test_a_duration_is_seconds_or_has_units(word: str, seconds: float) -> None:
    for name, field in (("-w", "wait"), ("--lease", "lease"), ("--grace", "grace")):
        words = ["x", f"{name}={word}" if name.startswith("--") else f"{name}{word}", "--", "true"]
        if field == "lease" and seconds < SHORTEST:
            with pytest.raises(BadInput, match=r"--lease must be at least 0\.001 seconds, not "):
                read_options(words)
            continue
        assert getattr(read_options(words), field) == seconds
    assert read_options(["x", "--join-timeout", word, "--", "true"]).network == {"join_timeout": seconds}


BAD = [
    "x",
    "10x",
    "1_0",
    "1_0s",
    "m",
    "1h30",
    "10M",
    "1 h",
    "1.2.3s",
    "-5m",
    "-1",
    "inf",
    "nan",
    "1e10",
    "20000d",
    "500 ms",
]


@pytest.mark.parametrize("word", BAD)
def test_what_is_no_duration_is_refused_in_one_line(word: str) -> None:
    for name in ("--wait", "--lease", "--grace", "--join-timeout"):
        with pytest.raises(BadInput) as refused:
            read_options(["x", f"{name}={word}", "--", "true"])
        assert str(refused.value) == f"{name} must be {WANTED}{word!r} (see fairgate run --help)"


@pytest.mark.parametrize(
    "words",
    [
        ["peer", "--drain"],
        ["peer", "--create", "--listen", "unix:/x", "--lease"],
        ["who", "--join", "unix:/x", "--join-timeout"],
        ["torture", "--lease"],
        ["torture", "--every"],
    ],
)
def test_every_command_reads_them_alike(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A good one passes, and is refused for another reason: a value that is none of the parser's business."""
    assert run([*words, "10x"]) == 2
    assert capsys.readouterr().err == (
        f"fairgate: invalid value for '{words[-1]}': it must be {WANTED}'10x' (see fairgate {words[0]} --help)\n"
    )
    others = {"peer": ["-k", "0"], "who": ["--cluster", "lab", "--keys", "k"], "torture": ["-k", "0"]}
    assert run([*words, "1m30s", *others[words[0]]]) == 2
    assert "duration" not in capsys.readouterr().err


def test_the_help_says_how_to_write_them(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for words in (["run"], ["peer"], ["who"], ["torture"]):
        assert run([*words, "--help"]) == 0
        out = capsys.readouterr().out
        assert "DURATION" in out
        assert "500ms, 10m or 1h30m" in " ".join(out.split())


def test_options_of_protocols_take_the_same_units(say_options: Callable[[str], object]) -> None:
    assert say_options("1m") == 60 * 10**9
    assert say_options("1h30m") == 5400 * 10**9
    assert say_options("250") == 250


def test_counts_and_percentages_take_no_units() -> None:
    from fairgate.cli.values import read_options as read_protocol_options  # noqa: PLC0415
    from fairgate.registry import find_protocol  # noqa: PLC0415

    for text, protocol in (("retry=5s", "sigma"), ("drift=1ms", "sigma"), ("reentry=1m", "fair_k_bounded")):
        with pytest.raises(BadInput, match=f"^cannot use --option {text}: write {text.partition('=')[0]}="):
            read_protocol_options([text], find_protocol(protocol), ())


@pytest.fixture
def say_options() -> Callable[[str], object]:
    from fairgate.cli.values import read_options as read_protocol_options  # noqa: PLC0415
    from fairgate.registry import find_protocol  # noqa: PLC0415

    return lambda word: read_protocol_options([f"lease={word}"], find_protocol("leased"), ())["lease"]
