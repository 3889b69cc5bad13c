"""What clients and the daemon say of scripts that a model writes or repairs."""

from typing import Any, Literal, TypeAlias

import msgspec

from tallystick.contract.authoring.prompt import Arm
from tallystick.contract.events import ErrorInfo
from tallystick.engine.authoring.choices import Attempts, CandidateLine, ModelChoice
from tallystick.engine.messages import Conflict, Diagnostic, Excerpt, Limits, Spend

WritingState: TypeAlias = Literal["writing", "accepted", "given_up"]


class SkillDocument(msgspec.Struct, frozen=True):
    """The document that a model gets, and how many tokens it has at most."""

    text: str
    tokens: int


class AuthorRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Have a model write a script for ``request``, as a new run that is launched when somebody resumes it.

    ``draft`` is a script that exists and is refused. ``attempts``: scripts that are asked for at most.
    """

    request: str
    args: Any = None
    name: str = ""
    limits: Limits = Limits()
    model: ModelChoice = ModelChoice()
    attempts: Attempts | None = None
    draft: str | None = None
    seed: int = 0


class RepairRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Have a model repair the script of a run that stopped; nothing is started.

    ``wish`` is what a person adds for the model. ``arm`` is how much the prompt tells of the committed calls.
    ``budget_usd`` takes the place of the run's budget, which model calls count against.
    """

    model: ModelChoice = ModelChoice()
    attempts: Attempts | None = None
    wish: str = ""
    arm: Arm = "sites"
    budget_usd: float | None = None


class CandidateReport(CandidateLine, frozen=True, kw_only=True):
    """All that is kept of one candidate: the script, and why it was not accepted.

    ``calls`` counts its call expressions, ``calls_before`` those that it must not fall short of. ``source`` is None
    where no script was read in the answer; ``answer`` is the model's own text.
    """

    source: str | None = None
    answer: Any = None
    violations: tuple[Diagnostic, ...] = ()
    counterexamples: tuple[Conflict, ...] = ()
    calls: int = 0
    calls_before: int = 0
    usage: Any = None


class WritingReport(msgspec.Struct, frozen=True, kw_only=True):
    """How the writing or the repair of a run's script stands, or ended.

    ``base`` is the script that was to be repaired, "" where there was none; ``source`` the accepted one. ``frozen``
    are the committed calls in ``base``. ``candidates`` are those of this request. ``spend`` is the whole run's.
    """

    run: str
    purpose: Literal["author", "repair"]
    state: WritingState
    model: str = ""
    base: str = ""
    source: str | None = None
    frozen: tuple[Excerpt, ...] = ()
    candidates: tuple[CandidateReport, ...] = ()
    error: ErrorInfo | None = None
    spend: Spend = Spend()
