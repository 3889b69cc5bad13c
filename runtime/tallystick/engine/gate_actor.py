"""The gate's actor: checks scripts and compares rewrites with what is committed, before anything starts.

The work is pure and may take a while on a large script, so that it runs in a worker thread, one at a time.
"""

from collections.abc import Mapping

import anyio.to_thread
import msgspec

from tallystick.contract.capability import CapabilitySpec, Envelope
from tallystick.contract.checker import check
from tallystick.contract.gate import FrozenSite, Verdict, gate
from tallystick.contract.report import Report
from tallystick.contract.script import Script
from tallystick.kernel import Actor, Request


class Review(msgspec.Struct, frozen=True):
    """What came of a script: the checker's report, and the gate's verdict where there was a prefix to ask about."""

    report: Report
    script: Script | None
    verdict: Verdict | None


class ReviewScript(Request[Review], frozen=True):
    """Check a script within ``envelope`` (None: script rules only); compare ``frozen`` sites but the ``retired``."""

    source: str
    envelope: Envelope | None = None
    frozen: Mapping[str, FrozenSite] | None = None
    retired: frozenset[str] = frozenset()


class GateActor(Actor[ReviewScript]):
    """Answers reviews. Whatever goes wrong with one is its asker's answer, so that no live run is restarted with it."""

    answers = (Exception,)

    def __init__(self, catalogue: Mapping[str, CapabilitySpec]) -> None:
        super().__init__()
        self._catalogue = catalogue

    async def handle(self, message: ReviewScript) -> Review:
        """Review one script."""
        return await anyio.to_thread.run_sync(self._review, message)

    def _review(self, message: ReviewScript) -> Review:
        try:
            report = check(message.source, message.envelope, self._catalogue)
        except SystemError:
            # CPython up to 3.12 loses count of its depth when a finalizer parses something in the midst of a parse.
            report = check(message.source, message.envelope, self._catalogue)
        if not report.valid or report.script is None:
            return Review(report, None, None)
        verdict = gate(message.frozen, report.script, message.retired) if message.frozen is not None else None
        return Review(report, report.script, verdict)
