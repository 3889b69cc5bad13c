"""What a request says of the model to be asked, and the lines on it in a run's report; ``messages`` has the rest."""

from typing import Annotated, Literal

import msgspec

from tallystick.contract.candidates import CandidateState
from tallystick.contract.events import ErrorInfo

#: Model calls that one request may ask for.
MAX_ATTEMPTS = 20
Attempts = Annotated[int, msgspec.Meta(ge=1, le=MAX_ATTEMPTS)]


class ModelChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which model is asked; what is None is taken from the configuration.

    ``base_url`` is the address of a server that speaks the language of OpenAI's API and needs no key; ``provider`` is
    a configured one instead.
    """

    model: str | None = None
    base_url: str | None = None
    provider: str | None = None


class AutoRepair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Let a model repair a run that fails, without asking: at most so many ``rewrites`` in all."""

    rewrites: Attempts
    model: ModelChoice = ModelChoice()


class AutoRepairReport(msgspec.Struct, frozen=True):
    """How the unattended repair of a run stands: ``rewrites`` asked for of those ``allowed``.

    ``over`` when it goes no further; ``why`` says why not where the run has not completed.
    """

    rewrites: int
    allowed: int
    over: bool = False
    why: ErrorInfo | None = None


class CandidateLine(msgspec.Struct, frozen=True, kw_only=True):
    """A script that a model was asked for, in a run's report; GET /v1/runs/{run}/candidates has all of each."""

    candidate: int
    purpose: Literal["author", "repair"]
    revision: int | None
    state: CandidateState
    provider: str
    model: str
    at: float
    digest: str
    text: str
    cost_usd: float | None
    tokens: int | None
