"""One operation, compiled: what a payload becomes on its way out, and what is wrong with it or with the settings."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import msgspec

from tallystick.providers import shapes
from tallystick.providers.catalogue import CATALOGUE
from tallystick.providers.http.exchange import Request
from tallystick.providers.http.filters import Attachment
from tallystick.providers.http.paths import MISSING
from tallystick.providers.http.settings import HttpSettings, OperationSettings
from tallystick.providers.http.templates import SUBJECT, Scope, Template
from tallystick.providers.payloads import Artifact

MODEL = "$model"
_ENCODERS = frozenset({"base64", "data_url"})
# Of the names that a template may use, $none has never a value: it takes a part of a profile away.
_OUTGOING = frozenset({SUBJECT, MODEL, "$seed", "$key", "$none"})
_RESULT = frozenset({SUBJECT, MODEL, "$payload", "$width", "$height", "$none"})


class Operation:
    """How one capability is asked for.

    Args:
        capability: a name of the catalogue.
        settings: the operation's own part.
        common: the settings that it is part of.

    Raises:
        ValueError: a template is wrong, or speaks of what does not exist.
    """

    def __init__(self, capability: str, settings: OperationSettings, common: HttpSettings) -> None:
        self.capability = capability
        self.settings = settings
        self.model = common.models.get(capability, common.model)
        self.timeout = settings.timeout or common.timeouts.answer
        self._key_header = common.idempotency_header
        self._limit = common.max_request
        self._path = Template(settings.path, f"{self._place}.path")
        self._headers = Template(settings.headers, f"{self._place}.headers")
        self._body = Template(settings.body, f"{self._place}.body")
        self.result = Template(settings.result, f"{self._place}.result")
        self._job_path = Template(settings.job.path if settings.job else None, f"{self._place}.job.path")
        self._lookup_path = Template(settings.lookup.path if settings.lookup else None, f"{self._place}.lookup.path")
        self._fields = self._sent()
        self._check()

    @property
    def needs_model(self) -> bool:
        """Whether it names a model and none is set."""
        return self.model is None and any(
            reference.root == MODEL for one in (self._path, self._headers, self._body) for reference in one.references
        )

    def refusal(self, payload: Mapping[str, Any]) -> str:
        """Return what of a payload cannot be asked for, or nothing: it would be paid for and not done."""
        for field, value in payload.items():
            allowed = self.settings.only.get(field)
            if allowed is not None:
                if value not in allowed:
                    return f'"{field}" is {shapes.shown(value)}, and this API takes {shapes.shown(allowed)[1:-1]} only'
            elif field not in self._fields:
                return f'this API takes no "{field}" for {self.capability}; leave it out'
        return ""

    def request(self, payload: Mapping[str, Any], key: str, seed: int) -> Request:
        """Return the request of a call.

        Args:
            payload: with an ``Attachment`` in place of each artifact reference.
            key: the idempotency key.
            seed: that of the sample.

        Raises:
            ValueError: it is larger than ``max_request``, or a filter cannot take a value of the payload.
        """
        scope: dict[str, Any] = {SUBJECT: payload, "$seed": seed, "$key": key}
        if self.model is not None:
            scope[MODEL] = self.model
        headers = {name: _header(name, value) for name, value in _filled(self._headers, scope).items()}
        if self._key_header is not None:
            headers[self._key_header] = key
        body = None if self.settings.body is None else msgspec.json.encode(_filled(self._body, scope))
        if body is not None and len(body) > self._limit:
            raise ValueError(f"the request has {len(body)} bytes; max_request is {self._limit}")
        return Request(
            method=self.settings.method,
            path=_quoted(self._path, scope),
            headers=headers,
            body=body,
            timeout=self.timeout,
        )

    def job_request(self, job: str) -> Request:
        """Return the request that asks after a job."""
        return Request(method="GET", path=_quoted(self._job_path, {"$job": job}), timeout=self.timeout)

    def lookup_request(self, key: str) -> Request:
        """Return the request that asks what a key has done."""
        return Request(method="GET", path=_quoted(self._lookup_path, {"$key": key}), timeout=self.timeout)

    def _sent(self) -> frozenset[str]:
        sent = {
            str(reference.path.steps[0])
            for one in (self._path, self._headers, self._body)
            for reference in one.references
            if reference.root == SUBJECT and reference.path.steps
        }
        return frozenset(sent | set(self.settings.ignore))

    def _check(self) -> None:
        if self._body.files:
            raise ValueError(f"{self._place}: $files stands in a result only")
        fields = {one.encode_name: one for one in msgspec.structs.fields(CATALOGUE[self.capability].payload)}
        for name in (*self._fields, *self.settings.only):
            if name not in fields:
                meant = shapes.nearest(name, fields)
                hint = f'did you mean "{meant}"?' if meant else f"the fields are {', '.join(fields)}"
                raise ValueError(f'{self._place}: a payload has no field "{name}"; {hint}')
        for reference in (*self._headers.references, *self._body.references, *self._path.references):
            name = reference.path.text
            field = fields.get(name) if reference.root == SUBJECT else None
            if field is not None and _is_artifact(field) and not _ENCODERS & {*reference.names}:
                raise ValueError(
                    f'{self._place}: "{name}" is an artifact; write {{{name}|data_url}} or {{{name}|base64}}'
                )
        for template, known in self._roots():
            for reference in template.references:
                if reference.root not in known:
                    names = ", ".join(sorted(known - {SUBJECT}))
                    raise ValueError(f'{self._place}: there is no "{reference.root}" here; there are {names}')
        promised = {one.encode_name for one in msgspec.structs.fields(CATALOGUE[self.capability].result)}
        if promised - self.settings.result.keys():
            missing = ", ".join(sorted(promised - self.settings.result.keys()))
            raise ValueError(
                f"{self._place}: the result lacks {missing}; it is {shapes.shape(CATALOGUE[self.capability].result)}"
            )

    def _roots(self) -> Iterator[tuple[Template, frozenset[str]]]:
        yield from ((one, _OUTGOING) for one in (self._path, self._headers, self._body))
        yield self.result, _RESULT
        yield self._job_path, frozenset({"$job"})
        yield self._lookup_path, frozenset({"$key"})

    @property
    def _place(self) -> str:
        return f'operations."{self.capability}"'


def _is_artifact(field: Any) -> bool:
    return shapes.shape(field.type) == shapes.shape(Artifact)


def artifacts_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the artifact references of a checked payload by their fields."""
    return {name: value for name, value in payload.items() if isinstance(value, dict) and "$artifact" in value}


def attach(payload: Mapping[str, Any], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return a payload with the bytes of its artifacts, which ``files`` has by field, in place of the references."""
    attached = {name: Attachment(data, str(payload[name]["media_type"])) for name, data in files.items()}
    return {**payload, **attached}


def _header(name: str, value: Any) -> str:
    text = str(value)
    if not (text.isascii() and text.isprintable()):
        raise ValueError(f"the header {name} cannot hold {shapes.shown(text)}")
    return text


def _filled(template: Template, scope: Scope) -> dict[str, Any]:
    filled = template.fill(scope)
    return {} if filled is MISSING else filled


def _quoted(template: Template, scope: Scope) -> str:
    """Fill in a path; what is put into it cannot lead out of its place."""
    safe = {name: quote(value, safe="") if isinstance(value, str) else value for name, value in scope.items()}
    if isinstance(subject := scope.get(SUBJECT), Mapping):
        safe[SUBJECT] = {
            name: quote(value, safe="") if isinstance(value, str) else value for name, value in subject.items()
        }
    filled = template.fill(safe)
    if not isinstance(filled, str):
        raise ValueError("the path of the request needs a value that is not there")  # noqa: TRY004 - the value is missing
    return filled
