"""One call of the ``http`` provider: one request, and an outcome of the closed set (contract.md, section 6.2)."""

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.to_thread
import msgspec

from tallystick.contract.errors import StoreError
from tallystick.kernel import Clock, SystemClock
from tallystick.providers.blobs import referred
from tallystick.providers.catalogue import CATALOGUE, nearest
from tallystick.providers.http import answers, errors, jobs, paths, prices, retry_after
from tallystick.providers.http.answers import UnfitAnswerError
from tallystick.providers.http.credentials import Credential
from tallystick.providers.http.downloads import Downloader, DownloadError
from tallystick.providers.http.exchange import Answer, Exchange, Lost, NotSent
from tallystick.providers.http.operations import Operation, artifacts_of, attach
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.settings import HttpSettings
from tallystick.providers.protocol import (
    API_VERSION,
    Absent,
    Artifacts,
    Blob,
    Outcome,
    Profile,
    Refused,
    Sample,
    Succeeded,
    Tracker,
    Unknown,
    Unusable,
)

_INLINE = 32 << 10
_NOT_FOUND = 404


class _Nobody:
    """A tracker for a call that nobody follows."""

    async def submitted(self, job: str) -> None:
        """Note nothing."""

    async def answered(self, raw: Any, cost: int | None) -> None:
        """Note nothing."""


class HttpProvider:
    """Any JSON API, as its settings describe it; see ``protocol.Provider`` and its optional parts.

    Raises:
        ValueError: the settings speak of what does not exist; the message says where.
    """

    api_version = API_VERSION

    def __init__(
        self, settings: HttpSettings, credential: Credential, artifacts: Artifacts, *, clock: Clock | None = None
    ) -> None:
        unknown = sorted((settings.operations.keys() | settings.models.keys()) - CATALOGUE.keys())
        if unknown:
            meant = nearest(unknown[0])
            hint = f'did you mean "{meant}"?' if meant else f"there are {', '.join(CATALOGUE)}"
            raise ValueError(f'there is no capability "{unknown[0]}"; {hint}')
        self._all = {name: Operation(name, one, settings) for name, one in settings.operations.items()}
        self._operations = {name: one for name, one in self._all.items() if not one.needs_model}
        if not self._operations:
            raise ValueError(f"no model is set: name one in model, or in models for {', '.join(self._all)}")
        self.name = settings.name
        self.capabilities = frozenset(self._operations)
        self.profile = Profile(dedupes_keys=settings.dedupes_keys, absence_final_after=settings.absence_final_after)
        self._settings = settings
        self._credential = credential
        self._artifacts = artifacts
        self._clock = clock or SystemClock()
        self._exchange = Exchange(settings, credential)
        self._downloader = Downloader(settings.downloads, self._clock, proxy=settings.proxy)

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """Execute once; see ``protocol.Provider.call``."""
        return await self.call_tracked(capability, payload, key, sample, _Nobody())

    async def call_tracked(
        self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample, tracker: Tracker
    ) -> Outcome:
        """Execute once, and tell of the job and of the answer; see ``protocol.Tracked``."""
        operation = self._operations.get(capability)
        if operation is None:
            return Refused(kind="invalid_request", text=self._not_served(capability))
        wrong = operation.refusal(payload)
        if wrong:
            return Refused(kind="invalid_request", text=wrong)
        try:
            request = await anyio.to_thread.run_sync(self._request, operation, payload, key, sample.seed)
        except (StoreError, ValueError) as error:
            return Refused(kind="invalid_request", text=f"nothing was sent: {error}")
        sent = await self._exchange.send(request, once=CATALOGUE[capability].effect == "side_effecting")
        match sent:
            case NotSent(reason=reason):
                return Refused(kind="unavailable", text=reason)
            case Lost(reason=reason, kind=kind):
                return Unknown(reason=reason, kind=kind)
        call = _Call(operation, payload, tracker)
        ended = await self._ending(call, sent)
        return ended if ended is not None else await self._answered(call, sent)

    async def lookup(self, capability: str, payload: Mapping[str, Any], key: str, job: str | None) -> Outcome | Absent:
        """Ask what became of a call: by its job, else by its key; see ``protocol.LooksUp``."""
        operation = self._operations.get(capability)
        if operation is None:
            return Unknown(reason=self._not_served(capability), kind="unavailable")
        call = _Call(operation, payload, _Nobody())
        if job is not None and operation.settings.job is not None:
            return await self._job_ending(call, job, started=False)
        if operation.settings.lookup is None:
            return Unknown(reason="this API cannot be asked what became of a call", kind="unavailable")
        return await self._by_key(call, key)

    async def reprocess(self, capability: str, payload: Mapping[str, Any], raw: Any) -> Outcome:
        """Read a kept answer again; see ``protocol.Reprocesses``."""
        operation = self._operations.get(capability)
        if operation is None:
            return Unusable(raw=raw, text=self._not_served(capability))
        try:
            body = await anyio.to_thread.run_sync(self._kept, raw)
        except StoreError as error:
            return Unusable(raw=raw, text=f"the kept answer cannot be read: {error}")
        answer = Answer(status=200, headers={}, body=body)
        return await self._made(_Call(operation, payload, _Nobody()), answer, answer.parsed(), None)

    async def close(self) -> None:
        """Release connections."""
        await self._exchange.close()
        await self._downloader.close()

    def _not_served(self, capability: str) -> str:
        if capability in self._all:
            return f'no model is set for {capability}: name one in models of the provider "{self.name}"'
        return f'the provider "{self.name}" has no "{capability}"; it has {", ".join(sorted(self.capabilities))}'

    def _request(self, operation: Operation, payload: Mapping[str, Any], key: str, seed: int) -> Any:
        files = {name: self._artifacts.get_file(referred(one)) for name, one in artifacts_of(payload).items()}
        return operation.request(attach(payload, files), key, seed)

    async def _ending(self, call: "_Call", answer: Answer) -> Outcome | None:
        """Return how an answer ends a call by its status, or None for one of success."""
        data = answer.parsed()
        wait = retry_after.read(answer.headers.get("retry-after"), answer.headers.get("date"), self._clock.now())
        verdict = errors.judge(self._settings.errors, answer.status, wait, data)
        if verdict is None:
            return None
        said = self._said(answer, data)
        text = f"{said or 'the API gave no reason'} [status {answer.status}]"
        match verdict:
            case errors.Refusal(kind=kind):
                text = f"{text}; {self._credential.hide(wait.note)}" if wait.note else text
                return Refused(kind=kind, text=text, retry_after=wait.seconds)
            case errors.Doubt(kind=kind):
                return Unknown(reason=text, kind=kind, job=self._job_of(call, data))

    async def _answered(self, call: "_Call", answer: Answer) -> Outcome:
        if answer.cut == "broken":
            return Unknown(reason="the answer was cut off", kind="unavailable")
        data = await _off_loop(len(answer.body), answer.parsed)
        settings = call.operation.settings.job
        if settings is None:
            return await self._made(call, answer, data, None)
        job = self._job_of(call, data)
        if job is None:
            return self._unusable(call, answer, data, f'the answer names no job at "{settings.id}"')
        await call.tracker.submitted(job)
        known = jobs.state(settings, data)
        if known != "pending":
            return await self._job_outcome(call, jobs.Ended(known, answer, data), job)
        ended = await self._job_ending(call, job, started=True)
        assert not isinstance(ended, Absent)
        return ended

    async def _job_ending(self, call: "_Call", job: str, *, started: bool) -> Outcome | Absent:
        ended = await jobs.wait(self._exchange, call.operation, job, self._clock, started=started)
        match ended:
            case jobs.Vanished():
                return Absent(text=f"the API knows no job {job}")
            case jobs.Unheard(reason=reason):
                return Unknown(reason=self._credential.hide(reason), job=job)
            case jobs.Ended():
                return await self._job_outcome(call, ended, job)

    async def _job_outcome(self, call: "_Call", ended: jobs.Ended, job: str) -> Outcome:
        if ended.state == "done":
            return await self._made(call, ended.answer, ended.data, job)
        kind = errors.meaning(self._settings.errors, ended.data) or "unavailable"
        said = self._said(ended.answer, ended.data)
        cost = self._cost(call, ended.answer, ended.data) if self._has_usage(call, ended.data) else 0
        return Refused(kind=kind, text=f"{said} [job {job} failed]", cost=cost)

    async def _by_key(self, call: "_Call", key: str) -> Outcome | Absent:
        settings = call.operation.settings
        assert settings.lookup is not None
        answer = await self._exchange.send(call.operation.lookup_request(key), once=False)
        if not isinstance(answer, Answer):
            return Unknown(reason=answer.reason, kind="unavailable")
        data = answer.parsed()
        entry = paths.parse(settings.lookup.entry).find(data)
        if answer.status == _NOT_FOUND or (answer.status == 200 and data is not MISSING and entry is MISSING):  # noqa: PLR2004 - an answer to the question
            return Absent(text="the API knows no request with this key")
        if answer.status != 200 or answer.cut or data is MISSING:  # noqa: PLR2004 - as above
            return Unknown(reason=f"the look-up was answered with status {answer.status}", kind="unavailable")
        found = Answer(status=200, headers={}, body=msgspec.json.encode(entry))
        return await self._answered(call, found)

    async def _made(self, call: "_Call", answer: Answer, data: Any, job: str | None) -> Outcome:
        """Make the outcome of an answer of success: everything in it was paid for, so nothing of it is dropped."""
        if answer.cut:
            text = f"the answer has more than {self._settings.max_answer} bytes; max_answer is the limit"
            return self._unusable(call, answer, MISSING, text)
        if data is MISSING:
            return self._unusable(
                call, answer, data, "the answer is empty" if not answer.body else "the answer is not JSON"
            )
        cost = self._cost(call, answer, data)
        scope = answers.answer_scope(call.operation, call.payload, data)
        limit = self._settings.downloads.max_bytes
        try:
            wanted = answers.links(call.operation, scope)
            if wanted:
                await call.tracker.answered(self._raw(answer, data), cost)
            fetched = {link: await self._downloader.fetch(link) for link in dict.fromkeys(wanted)}
            result = await _off_loop(len(answer.body), answers.result, call.operation, scope, fetched, limit)
        except UnfitAnswerError as error:
            said = self._said(answer, data) if errors.meaning(self._settings.errors, data) else ""
            return self._unusable(call, answer, data, f"{error}; the API says: {said}" if said else str(error))
        except DownloadError as error:
            text = self._credential.hide(f"a file that was made could not be fetched: {error}")
            if error.lasting:
                return self._unusable(call, answer, data, text)
            return Unknown(reason=text, kind="unavailable", job=job, cost=cost, raw=self._raw(answer, data))
        usage = paths.parse(call.operation.settings.usage).find(data)
        return Succeeded(
            result=self._credential.hide_in(result),
            usage=self._credential.hide_in(usage) if isinstance(usage, dict) else {},
            cost=cost,
            job=job,
        )

    def _unusable(self, call: "_Call", answer: Answer, data: Any, text: str) -> Unusable:
        return Unusable(
            raw=self._raw(answer, data), text=self._credential.hide(text), cost=self._cost(call, answer, data)
        )

    def _raw(self, answer: Answer, data: Any) -> Any:
        """Return an answer as it is kept: as data where it is small, else as the bytes that came."""
        if data is not MISSING and len(answer.body) <= _INLINE:
            return self._credential.hide_in(data)
        kind = "application/json" if data is not MISSING else "text/plain"
        return self._credential.hide_in(Blob(answer.body, kind))

    def _kept(self, raw: Any) -> bytes:
        """Return the body of a kept answer, which may have become a file."""
        if isinstance(raw, Blob):
            return raw.data
        if isinstance(raw, dict) and "$artifact" in raw:
            return self._artifacts.get_file(referred(raw))
        return msgspec.json.encode(raw)

    def _cost(self, call: "_Call", answer: Answer, data: Any) -> int | None:
        return prices.cost(call.operation.settings.price, data, answer.headers)

    def _has_usage(self, call: "_Call", data: Any) -> bool:
        return paths.parse(call.operation.settings.usage).find(data) is not MISSING

    def _said(self, answer: Answer, data: Any) -> str:
        said = errors.words(self._settings.errors, data, answer.body) or errors.describe(answer.headers)
        return self._credential.hide(said)

    def _job_of(self, call: "_Call", data: Any) -> str | None:
        settings = call.operation.settings.job
        return None if settings is None else jobs.identifier(settings, data)


class _Call(msgspec.Struct, frozen=True):
    """What belongs to one call: how it is asked for, its payload, and who follows it."""

    operation: Operation
    payload: Mapping[str, Any]
    tracker: Any


async def _off_loop(size: int, work: Any, *arguments: Any) -> Any:
    """Do the work here where it is small, else in a thread: a large picture would hold up every other call."""
    if size <= _INLINE:
        return work(*arguments)
    return await anyio.to_thread.run_sync(work, *arguments)
