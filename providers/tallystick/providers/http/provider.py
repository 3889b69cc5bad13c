"""One call of the ``http`` provider: one request, and an outcome of the closed set (contract.md, section 6.2)."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import anyio.to_thread
import msgspec

from tallystick.contract.errors import StoreError
from tallystick.kernel import Clock, SystemClock
from tallystick.providers.blobs import referred
from tallystick.providers.catalogue import CATALOGUE, nearest
from tallystick.providers.http import answers, errors, jobs, paths, retry_after
from tallystick.providers.http.answers import UnfitAnswerError
from tallystick.providers.http.call import SMALL, Call
from tallystick.providers.http.credentials import Credential
from tallystick.providers.http.downloads import Downloader, DownloadError
from tallystick.providers.http.exchange import Answer, Exchange, Lost, NotSent, Request
from tallystick.providers.http.operations import Operation, artifacts_of, attach
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.prices import Price
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

_T = TypeVar("_T")
_OK, _NOT_FOUND = 200, 404


class HttpProvider:
    """Any JSON API, as its settings describe it; see ``protocol.Provider`` and its optional parts.

    Raises:
        ValueError: the settings speak of what does not exist; the message says where.
    """

    api_version = API_VERSION

    def __init__(
        self,
        settings: HttpSettings,
        credential: Credential,
        artifacts: Artifacts,
        *,
        clock: Clock | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self._declared = _operations(settings)
        self._operations = {name: one for name, one in self._declared.items() if not one.needs_model}
        if not self._operations:
            raise ValueError(f"no model is set: name one in model, or in models for {', '.join(self._declared)}")
        self.name = settings.name
        self.capabilities = frozenset(self._operations)
        self.profile = Profile(dedupes_keys=settings.dedupes_keys, absence_final_after=settings.absence_final_after)
        self._settings = settings
        self._credential = credential
        self._artifacts = artifacts
        self._clock = clock or SystemClock()
        self._exchange = exchange or Exchange(settings, credential, self._clock)
        self._downloader = Downloader(settings.downloads, self._clock, proxy=settings.proxy)

    def prices(self, capability: str) -> bool:
        """Tell whether calls are priced; see ``protocol.Prices``."""
        price = self._operations[capability].settings.price
        return price is not None and price != Price()

    async def call(self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample) -> Outcome:
        """Execute once; see ``protocol.Provider``."""
        return await self._execute(capability, payload, key, sample, None)

    async def call_tracked(
        self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample, tracker: Tracker
    ) -> Outcome:
        """Execute once, and tell of the job and of the answer; see ``protocol.Tracked``."""
        return await self._execute(capability, payload, key, sample, tracker)

    async def lookup(self, capability: str, payload: Mapping[str, Any], key: str, job: str | None) -> Outcome | Absent:
        """Ask what became of a call: by its job, else by its key; see ``protocol.LooksUp``."""
        operation = self._operations.get(capability)
        if operation is None:
            return Unknown(reason=self._not_served(capability), kind="unavailable")
        call = self._call(operation, payload)
        if job is not None and operation.settings.job is not None:
            return await self._job_end(call, job, fresh=False)
        if operation.settings.lookup is not None:
            return await self._by_key(call, key)
        return Unknown(reason="this API cannot be asked what became of a call", kind="unavailable", job=job)

    async def reprocess(self, capability: str, payload: Mapping[str, Any], raw: Any) -> Outcome:
        """Read a kept answer again; see ``protocol.Reprocesses``."""
        operation = self._operations.get(capability)
        if operation is None:
            return Unusable(raw=raw, text=self._not_served(capability))
        try:
            body = await anyio.to_thread.run_sync(self._kept, raw)
        except StoreError as error:
            return Unusable(raw=raw, text=f"the kept answer cannot be read: {error}")
        answer = Answer(status=_OK, headers={}, body=body)
        return await self._made(self._call(operation, payload), answer, answer.parsed(), None)

    async def close(self) -> None:
        """Release connections."""
        await self._exchange.close()
        await self._downloader.close()

    async def _execute(
        self, capability: str, payload: Mapping[str, Any], key: str, sample: Sample, tracker: Tracker | None
    ) -> Outcome:
        operation = self._operations.get(capability)
        if operation is None:
            return Refused(kind="invalid_request", text=self._not_served(capability))
        if wrong := operation.refusal(payload):
            return Refused(kind="invalid_request", text=wrong)
        try:
            request = await self._request(operation, payload, key, sample.seed)
        except (StoreError, ValueError) as error:
            return Refused(kind="invalid_request", text=f"nothing was sent: {error}")
        sent = await self._exchange.send(request, once=CATALOGUE[capability].effect == "side_effecting")
        match sent:
            case NotSent(reason=reason, kind=kind):
                return Refused(kind=kind, text=reason)
            case Lost(reason=reason, kind=doubt):
                return Unknown(reason=reason, kind=doubt)
        data = await _aside(len(sent.body), sent.parsed)
        call = self._call(operation, payload, tracker)
        return self._refused(call, sent, data) or await self._answered(call, sent, data)

    def _call(self, operation: Operation, payload: Mapping[str, Any], tracker: Tracker | None = None) -> Call:
        return Call(operation, payload, self._settings, self._credential, tracker)

    def _not_served(self, capability: str) -> str:
        if capability in self._declared:
            return f'no model is set for {capability}: name one in models of the provider "{self.name}"'
        return f'the provider "{self.name}" has no "{capability}"; it has {", ".join(sorted(self.capabilities))}'

    async def _request(self, operation: Operation, payload: Mapping[str, Any], key: str, seed: int) -> Request:
        artifacts = artifacts_of(payload)

        def build() -> Request:
            files = {name: self._artifacts.get_file(referred(one)) for name, one in artifacts.items()}
            return operation.request(attach(payload, files), key, seed)

        return await anyio.to_thread.run_sync(build) if artifacts else build()

    def _refused(self, call: Call, answer: Answer, data: Any) -> Refused | Unknown | None:
        """Return how an answer ends a call by its status, or None for one of success."""
        wait = retry_after.read(answer.headers.get("retry-after"), answer.headers.get("date"), self._clock.now())
        verdict = errors.judge(self._settings.errors, answer.status, wait, data)
        if verdict is None:
            return None
        text = f"{call.words(answer, data)} [status {answer.status}]"
        if isinstance(verdict, errors.Doubt):
            return Unknown(reason=text, kind=verdict.kind, job=call.job(data))
        note = f"; {self._credential.hide(wait.note)}" if wait.note else ""
        return Refused(kind=verdict.kind, text=text + note, retry_after=wait.seconds)

    async def _answered(self, call: Call, answer: Answer, data: Any) -> Outcome:
        if answer.cut == "broken":
            return Unknown(reason="the answer was cut off", kind="unavailable")
        settings = call.operation.settings.job
        if settings is None:
            return await self._made(call, answer, data, None)
        job = call.job(data)
        if job is None:
            return call.unusable(answer, data, f'the answer names no job at "{settings.id}"')
        if call.tracker is not None:
            await call.tracker.submitted(job)
        state = jobs.state(settings, data)
        if state != "pending":
            return await self._job_outcome(call, jobs.Ended(state, answer, data), job)
        return await self._job_end(call, job, fresh=True)

    async def _job_end(self, call: Call, job: str, *, fresh: bool) -> Outcome:
        ended = await jobs.wait(self._exchange, call.operation, job, self._clock, fresh=fresh)
        if isinstance(ended, jobs.Unheard):
            return Unknown(reason=ended.reason, job=job)
        return await self._job_outcome(call, ended, job)

    async def _job_outcome(self, call: Call, ended: jobs.Ended, job: str) -> Outcome:
        if ended.state == "done":
            return await self._made(call, ended.answer, ended.data, job)
        return Refused(
            kind=errors.meaning(self._settings.errors, ended.data) or "unavailable",
            text=f"{call.words(ended.answer, ended.data)} [job {job} failed]",
            cost=call.cost_of_failed_job(ended.answer, ended.data),
        )

    async def _by_key(self, call: Call, key: str) -> Outcome | Absent:
        settings = call.operation.settings.lookup
        assert settings is not None
        answer = await self._exchange.send(call.operation.lookup_request(key), once=False)
        if not isinstance(answer, Answer):
            return Unknown(reason=answer.reason, kind="unavailable")
        data, entry = answer.parsed(), paths.parse(settings.entry)
        if answer.status == _NOT_FOUND or (answer.status == _OK and entry.lacks(data)):
            return Absent(text="the API knows no request with this key")
        found = entry.find(data)
        if answer.status != _OK or answer.cut or found is MISSING:
            reason = f"{call.words(answer, data)} [the look-up was answered with status {answer.status}]"
            return Unknown(reason=reason, kind="unavailable")
        return await self._answered(call, Answer(status=_OK, headers={}, body=msgspec.json.encode(found)), found)

    async def _made(self, call: Call, answer: Answer, data: Any, job: str | None) -> Outcome:
        """Make the outcome of an answer of success: all of it was paid for, so nothing of it is dropped."""
        if answer.cut:
            limit = self._settings.max_answer
            return call.unusable(answer, MISSING, f"the answer has more than {limit} bytes; max_answer is the limit")
        if data is MISSING:
            return call.unusable(answer, data, "the answer is not JSON" if answer.body else "the answer is empty")
        cost = call.cost(answer, data)
        scope = answers.scope_of(call.operation, call.payload, data)
        limit = self._settings.downloads.max_bytes
        try:
            links = answers.links(call.operation, scope)
            if links and call.tracker is not None:
                await call.tracker.answered(call.raw(answer, data), cost)
            fetched = {link: await self._downloader.fetch(link) for link in dict.fromkeys(links)}
            result = await _aside(len(answer.body), lambda: answers.result(call.operation, scope, fetched, limit))
        except UnfitAnswerError as error:
            return call.unusable(answer, data, str(error))
        except DownloadError as error:
            text = f"a file that was made could not be fetched: {error}"
            if error.lasting:
                return call.unusable(answer, data, text)
            reason = self._credential.hide(text)
            return Unknown(reason=reason, kind="unavailable", job=job, cost=cost, raw=call.raw(answer, data))
        return Succeeded(result=self._credential.hide_in(result), usage=call.usage(data), cost=cost, job=job)

    def _kept(self, raw: Any) -> bytes:
        """Return the body of a kept answer, which may have become a file."""
        if isinstance(raw, Blob):
            return raw.data
        if isinstance(raw, dict) and "$artifact" in raw:
            return self._artifacts.get_file(referred(raw))
        return msgspec.json.encode(raw)


def _operations(settings: HttpSettings) -> dict[str, Operation]:
    unknown = sorted((settings.operations.keys() | settings.models.keys()) - CATALOGUE.keys())
    if unknown:
        meant = nearest(unknown[0])
        hint = f'did you mean "{meant}"?' if meant else f"there are {', '.join(CATALOGUE)}"
        raise ValueError(f'there is no capability "{unknown[0]}"; {hint}')
    return {name: Operation(name, one, settings) for name, one in settings.operations.items()}


async def _aside(size: int, work: Callable[[], _T]) -> _T:
    """Do the work here where it is little, else in a thread: a large picture would hold up every other call."""
    return work() if size <= SMALL else await anyio.to_thread.run_sync(work)
