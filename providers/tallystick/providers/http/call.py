"""What belongs to one call: what an answer to it says, costs and keeps."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tallystick.providers.http import errors, jobs, paths, prices
from tallystick.providers.http.credentials import Credential
from tallystick.providers.http.exchange import Answer
from tallystick.providers.http.operations import Operation
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.settings import HttpSettings
from tallystick.providers.protocol import Blob, Tracker, Unusable

SMALL = 32 << 10
"""Bytes up to which an answer is kept as data, and worked on without a thread of its own."""


class Call(msgspec.Struct, frozen=True):
    """One call, or one look back at a call. Whatever leaves it is without the key."""

    operation: Operation
    payload: Mapping[str, Any]
    settings: HttpSettings
    credential: Credential
    tracker: Tracker | None = None

    def cost(self, answer: Answer, data: Any) -> int | None:
        """Return what an answered call cost, in micro-dollars, or None where it is not known."""
        return prices.cost(self.operation.settings.price, data, answer.headers)

    def cost_of_failed_job(self, answer: Answer, data: Any) -> int | None:
        """Return what a failed job cost: nothing, unless its answer says what was used."""
        used = paths.parse(self.operation.settings.usage).find(data)
        return 0 if used is MISSING or used is None else self.cost(answer, data)

    def usage(self, data: Any) -> dict[str, Any]:
        """Return what the answer says was used."""
        found = paths.parse(self.operation.settings.usage).find(data)
        return self.credential.hide_in(found) if isinstance(found, dict) else {}

    def job(self, data: Any) -> str | None:
        """Return the id of the job that an answer names, or None."""
        settings = self.operation.settings.job
        return None if settings is None else jobs.identifier(settings, data)

    def words(self, answer: Answer, data: Any) -> str:
        """Return what the API says of its own refusal or trouble."""
        said = errors.words(self.settings.errors, data, answer.body) or errors.describe(answer.headers)
        return self.credential.hide(said) or "the API gave no reason"

    def raw(self, answer: Answer, data: Any) -> Any:
        """Return an answer as it is kept: as data where it is small, else as the bytes that came."""
        if data is not MISSING and len(answer.body) <= SMALL:
            return self.credential.hide_in(data)
        return self.credential.hide_in(Blob(answer.body, "text/plain" if data is MISSING else "application/json"))

    def unusable(self, answer: Answer, data: Any, text: str) -> Unusable:
        """Return the end of a call whose answer came, was billed, and is not what was asked for."""
        if errors.meaning(self.settings.errors, data) is not None:
            text = f"{text}; the API says: {self.words(answer, data)}"
        return Unusable(raw=self.raw(answer, data), text=self.credential.hide(text), cost=self.cost(answer, data))
