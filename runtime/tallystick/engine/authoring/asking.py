"""One script from a model: within the budget, journalled before and after, judged before anybody hears of it.

The order is that of every paid call (contract.md, section 6.2): budget, note (durable), call once, outcome (durable).
Nothing is retried here, and whatever the answer is, it becomes a verdict.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from typing import Any

import anyio
import msgspec

from tallystick.contract.authoring import acceptance, extraction
from tallystick.contract.authoring.untrusted import harmless
from tallystick.contract.budget import OVER_CAP, OVER_TOKENS, Cap, fits_tokens
from tallystick.contract.candidates import Candidate
from tallystick.contract.capability import MICROS_PER_USD, Envelope, usd
from tallystick.contract.errors import PolicyDeniedError
from tallystick.contract.events import AnyEvent, CandidateAsked, CandidateJudged
from tallystick.contract.gate import FrozenSite
from tallystick.contract.history import History
from tallystick.contract.runtime_rule import OVER_BUDGET, fits_budget
from tallystick.contract.script import Script
from tallystick.engine import outcomes
from tallystick.engine.authoring.models import CAPABILITY, Model
from tallystick.engine.authoring.settings import AuthoringSettings
from tallystick.engine.authoring.skill import estimated_tokens
from tallystick.engine.gate_actor import ReviewScript
from tallystick.engine.hearing import heard, own_copy
from tallystick.engine.journal import Journal
from tallystick.engine.purse import Purse
from tallystick.engine.results import ResultKeeper
from tallystick.kernel import Clock, KernelError, Ref
from tallystick.providers.protocol import Outcome, Refused, Sample, Succeeded, Unknown, Unusable

REVIEW_DEADLINE = 60.0
#: Tokens that an answer is taken to have at most where no ``max_tokens`` is set.
ANSWER_TOKENS = 8_000
#: Characters of what is said of a call that came to nothing.
TEXT_LIMIT = 500
#: Findings of a kind that are written down with a candidate.
MOST_KEPT = 100


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What a candidate is asked for, and by what it is judged.

    ``revision`` is the one to be repaired, None for a new script. ``budget`` is the envelope whose budget counts,
    ``rules`` the one that the checker judges within, None for the script rules alone. ``calls_before`` is the number of
    call expressions that must be left. ``accepted`` makes the events that an accepted script brings with it.
    """

    model: Model
    system: str
    revision: int | None
    budget: Envelope
    rules: Envelope | None
    frozen: Mapping[str, FrozenSite]
    retired: frozenset[str] = frozenset()
    calls_before: int = 0
    accepted: Callable[[Script], list[AnyEvent]] = lambda _: []


class Asker:
    """Asks models for scripts."""

    def __init__(
        self,
        *,
        journal: Journal,
        keeper: ResultKeeper,
        gate: Ref[ReviewScript],
        settings: AuthoringSettings,
        purse: Purse,
        clock: Clock,
    ) -> None:
        self._journal = journal
        self.keeper = keeper
        self._gate = gate
        self._settings = settings
        self._purse = purse
        self._clock = clock

    async def ask(self, history: History, order: Order, prompt: str) -> Candidate:
        """Ask once, and return the candidate with its verdict; ``history`` is in step with the journal.

        Raises:
            PolicyDeniedError: the call does not fit under the budget of the run or the daemon's cap; it was not made.
            StoreError: the note could not be written, so that nobody was asked; or the verdict could not.
        """
        estimate = round(self._settings.estimate * MICROS_PER_USD)
        tokens = estimated_tokens(order.system + prompt) + (self._settings.max_tokens or ANSWER_TOKENS)
        _require_room(history, order, estimate, tokens, self._purse.cap())
        self._purse.take(estimate)
        try:
            return await self._ask(history, order, prompt, estimate)
        finally:
            self._purse.give_back(estimate)

    async def _ask(self, history: History, order: Order, prompt: str, estimate: int) -> Candidate:
        payload = self._payload(order.system, prompt)
        number = len(history.candidates) + 1
        asked = CandidateAsked(
            run=history.run,
            at=self._clock.now(),
            candidate=number,
            purpose="author" if order.revision is None else "repair",
            revision=order.revision,
            provider=order.model.provider_name,
            model=order.model.name,
            prompt=await self.keeper.keep_raw(payload),
            key=_key(self._journal.store.key(), history.run, number),
            reserved=estimate,
        )
        await self._journal.append([asked])
        outcome: Outcome = Unknown(reason="the daemon was stopped before the model had answered")
        try:
            outcome = await self._call(order.model, payload, asked)
        finally:
            # Also on the way down: what was asked is never left without an end in the journal.
            with anyio.CancelScope(shield=True):
                await self._journal.append(await self._judged(asked, outcome, order))
        return history.candidates[number]

    def _payload(self, system: str, prompt: str) -> dict[str, Any]:
        payload: dict[str, Any] = {"system": system, "prompt": prompt}
        for name in ("max_tokens", "temperature"):
            value = getattr(self._settings, name)
            if value is not None:
                payload[name] = value
        return payload

    async def _call(self, model: Model, payload: dict[str, Any], asked: CandidateAsked) -> Outcome:
        sample, seconds = Sample(seed=asked.candidate, execution=asked.candidate), self._settings.timeout
        return await heard(
            self._clock,
            seconds,
            lambda: model.provider.call(CAPABILITY, own_copy(payload), asked.key, sample),
            outcomes.sound,
            silence=f"the model did not answer within {seconds:g} s",
        )

    async def _judged(self, asked: CandidateAsked, outcome: Outcome, order: Order) -> list[AnyEvent]:
        """Return the events that an outcome brings: its verdict, and what an accepted script brings with it."""
        told = CandidateJudged(run=asked.run, at=self._clock.now(), candidate=asked.candidate, outcome="failed")
        match outcome:
            case Refused(kind=kind, text=text, cost=cost):
                return [_said(told, "failed", f"{kind}: {text}", cost)]
            case Unknown(reason=reason, cost=cost):
                return [_said(told, "unknown", reason, cost)]
            case Unusable(text=text, cost=cost, raw=raw):
                kept = await self.keeper.keep_raw(_bounded(raw))
                return [msgspec.structs.replace(_said(told, "no_script", text, cost), answer=kept)]
            case Succeeded(result=result, cost=cost, usage=usage):
                answer = _text_of(result)
                told = msgspec.structs.replace(
                    told, cost=cost, usage=usage, answer=await self.keeper.keep_raw(_bounded(answer))
                )
                return await self._judge(told, answer, order)

    async def _judge(self, told: CandidateJudged, answer: str, order: Order) -> list[AnyEvent]:
        found = extraction.extract(answer)
        if isinstance(found, extraction.NoScript):
            return [_said(told, "no_script", found.reason, told.cost)]
        source = found.source.encode("utf-8", "replace").decode()
        told = msgspec.structs.replace(
            told,
            source=await self.keeper.keep_raw(source),
            digest=hashlib.sha256(source.encode()).hexdigest(),
            text=found.note,
        )
        try:
            asked = ReviewScript(source, order.rules, order.frozen, order.retired)
            review = await self._gate.ask(asked, deadline=REVIEW_DEADLINE)
        except KernelError as error:
            return [_said(told, "failed", f"the candidate could not be judged: {error}", told.cost)]
        judgement = acceptance.judge(review.report, review.verdict, order.calls_before)
        accepted = judgement.accepted and review.script is not None
        verdict = msgspec.structs.replace(
            told,
            outcome="accepted" if accepted else "rejected",
            violations=judgement.violations[:MOST_KEPT],
            counterexamples=judgement.counterexamples[:MOST_KEPT],
            calls=judgement.calls,
            calls_before=judgement.calls_before,
        )
        return [verdict, *(order.accepted(review.script) if accepted and review.script is not None else [])]


def judgement_of(judged: CandidateJudged) -> acceptance.Judgement:
    """Return the judgement as it was written down."""
    return acceptance.Judgement(
        violations=judged.violations,
        counterexamples=judged.counterexamples,
        calls=judged.calls,
        calls_before=judged.calls_before,
    )


def _require_room(history: History, order: Order, estimate: int, tokens: int, cap: Cap | None) -> None:
    held = history.held + history.held_in_flight
    if not fits_tokens(order.budget, history, tokens):
        used = history.tokens + history.tokens_held
        raise PolicyDeniedError(
            f"asking {order.model.asked} takes up to {tokens:,} tokens, and the budget of "
            f"{order.budget.budget_tokens or 0:,} has {used:,} used or reserved; nobody was asked",
            hint="resume with a larger --budget-tokens and the repaired script, or set max_tokens under [authoring]",
            code=OVER_TOKENS,
        )
    if cap is not None and not cap.fits(estimate):
        raise PolicyDeniedError(
            f"asking {order.model.asked} needs {usd(estimate)}, and all runs together may spend {usd(cap.limit)} a day "
            f"and have {usd(cap.spent)} spent and {usd(cap.in_flight)} reserved today; nobody was asked",
            hint="try after midnight UTC, or raise cap_usd under [budget] in the configuration",
            code=OVER_CAP,
        )
    if not fits_budget(order.budget, history.spent, held, estimate):
        least = usd(history.spent + held + estimate).removeprefix("$").replace(",", "")
        raise PolicyDeniedError(
            f"asking {order.model.asked} needs {usd(estimate)}, and the budget of {usd(order.budget.budget or 0)} has "
            f"{usd(history.spent)} spent and {usd(held)} reserved; nobody was asked",
            hint=f"--budget {least} or more has room for it; what is committed replays for free",
            code=OVER_BUDGET,
        )


def _key(secret: bytes, run: str, number: int) -> str:
    """Return the idempotency key of a model call."""
    return "ts-" + hmac.new(secret, f"m1 {run} {number}".encode(), hashlib.sha256).hexdigest()[:40]


def _said(told: CandidateJudged, outcome: Any, text: str, cost: int | None) -> CandidateJudged:
    return msgspec.structs.replace(told, outcome=outcome, text=harmless(text, TEXT_LIMIT), cost=cost)


def _text_of(result: Any) -> str:
    text = result.get("text") if isinstance(result, dict) else None
    return text if isinstance(text, str) else ""


def _bounded(answer: Any) -> Any:
    """Return an answer as it is kept: the beginning of one that is too long for any script."""
    return answer[: extraction.ANSWER_LIMIT] if isinstance(answer, str) else answer
