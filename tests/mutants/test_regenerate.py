"""Mutants of recovery/regenerate.py: each breaks one rule, and walks in which peers crash must catch it."""

from __future__ import annotations

import pytest

from fairgate.protocols.fair_k import FairK
from fairgate.protocols.ricart_agrawala import RicartAgrawala
from fairgate.recovery import regenerate
from fairgate.recovery.census import Answer, Dated, Install
from fairgate.recovery.regenerate import Regenerate
from fairgate.scenario.manual import Violation
from tests.mutants.mutate import mutant
from tests.support.regenerate_walk import mortal_walk

WALKS = 600


class TakesOldMessages(Regenerate):
    def on_dated(self, src: int, m: Dated) -> None:
        if m.epoch <= self.epoch == self.view:
            self.lift().on_message(src, m.inner)
        else:
            Regenerate.on_dated(self, src, m)


class ForgetsEarlyMessages(Regenerate):
    def on_dated(self, src: int, m: Dated) -> None:
        if m.epoch <= self.epoch:
            Regenerate.on_dated(self, src, m)


class DoesNotFreeze(Regenerate):
    """Continues in the old epoch after it has answered the census."""

    def on_dated(self, src: int, m: Dated) -> None:
        if m.epoch == self.epoch:
            self.lift().on_message(src, m.inner)
        else:
            Regenerate.on_dated(self, src, m)


class SaysNobodyIsInside(Regenerate):
    def tell(self, member: int, msg: object) -> None:
        if isinstance(msg, Answer):
            request = msg.request if not msg.inside else -1
            msg = Answer(msg.view, request, False, -1, -1, msg.waited, msg.seen, msg.epoch, msg.sure, msg.trail)
        Regenerate.tell(self, member, msg)  # type: ignore[arg-type]


class DoesNotCatchUp(Regenerate):
    def catch_up(self, m: Install) -> None:
        if m.granted and self.request == m.request:
            self.let_in(m.slot, m.fence)


class TakesAnyAnswer(Regenerate):
    def on_answer(self, src: int, m: Answer) -> None:
        self.answers.pop(src, None)
        Regenerate.on_answer(self, src, m)


class TakesAnyInstall(Regenerate):
    def on_install(self, src: int, m: Install) -> None:
        if self.view not in (m.view, self.epoch):
            self.view = m.view
        Regenerate.on_install(self, src, m)


def walks(layer: type[Regenerate]) -> None:
    for seed in range(WALKS):
        for protocol in (FairK, RicartAgrawala):
            mortal_walk(protocol, seed, layer)


MUTANTS = (
    TakesOldMessages,
    ForgetsEarlyMessages,
    DoesNotFreeze,
    SaysNobodyIsInside,
    DoesNotCatchUp,
    TakesAnyAnswer,
    TakesAnyInstall,
)


@pytest.mark.parametrize("layer", MUTANTS)
def test_a_mutant_is_caught(layer: type[Regenerate]) -> None:
    with pytest.raises((Violation, AssertionError, RuntimeError, ValueError)):
        walks(layer)


def test_an_epoch_whose_fences_start_again_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    module = mutant("recovery.rebuild", "setup.epoch + epoch", "setup.epoch")
    monkeypatch.setattr(regenerate, "epoch_setup", module.epoch_setup)
    with pytest.raises(Violation, match="fence"):
        walks(Regenerate)
