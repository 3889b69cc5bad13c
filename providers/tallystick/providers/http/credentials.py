"""The key of an API: read from the environment or the keyring, sent in one header, shown nowhere."""

import importlib
import json
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from tallystick.providers.protocol import Blob

HIDDEN = "[key]"

# A shorter text occurs by chance, and hiding it would only spoil what it occurs in.
_SHORTEST = 8
_PLACE = "{key}"


class KeySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the key of an API is found, and how it is sent.

    ``env``: the environment variable that holds it. ``keyring``: the service under which the operating system's
    keyring holds it, for ``user``; asked when the variable is not set. ``header`` and ``form`` say how it is sent.
    """

    env: str | None = None
    keyring: str | None = None
    user: str = "tallystick"
    header: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9-]+$")] = "Authorization"
    form: str = "Bearer {key}"

    def __post_init__(self) -> None:
        """Refuse a key that cannot be found or sent."""
        if self.env is None and self.keyring is None:
            raise ValueError("key needs env, the name of an environment variable, or keyring, the name of a service")
        if _PLACE not in self.form:
            raise ValueError('the form of the key must hold "{key}"')


class Credential:
    """A key that can be sent and hidden, and does not show itself; None stands for an API without one."""

    def __init__(self, value: str | None, settings: KeySettings | None = None) -> None:
        self.headers: Mapping[str, str] = _Secret()
        self._forms: tuple[str, ...] = ()
        if value is not None and settings is not None:
            self.headers = _Secret({settings.header: settings.form.replace(_PLACE, value)})
            if len(value) >= _SHORTEST:
                forms = (value, json.dumps(value)[1:-1], quote(value, safe=""), quote(value))
                self._forms = tuple(dict.fromkeys(forms))

    def __repr__(self) -> str:
        """Return what may be seen."""
        return f"Credential({HIDDEN})"

    def hide(self, text: str) -> str:
        """Return a text without the key, should somebody have echoed it."""
        for form in self._forms:
            text = text.replace(form, HIDDEN)
        return text

    def hide_in(self, value: Any) -> Any:
        """Return JSON-like data without the key in any of its texts; blobs of text included, others as they are."""
        match value:
            case str():
                return self.hide(value)
            case dict():
                return {self.hide(key): self.hide_in(item) for key, item in value.items()}
            case list() | tuple():
                return [self.hide_in(item) for item in value]
            case Blob(data=data, media_type=media_type) if media_type == "application/json" or "text/" in media_type:
                for form in self._forms:
                    data = data.replace(form.encode(), HIDDEN.encode())
                return Blob(data, media_type)
            case _:
                return value


class _Secret(dict[str, str]):
    """Headers that no representation gives away."""

    def __repr__(self) -> str:
        return HIDDEN


def load(settings: KeySettings | None, environment: Mapping[str, str] = os.environ) -> Credential:
    """Fetch the key.

    Raises:
        ValueError: there is none, or it cannot be sent in a header; the message does not show it.
    """
    if settings is None:
        return Credential(None)
    value = environment.get(settings.env, "").strip() if settings.env is not None else ""
    if not value and settings.keyring is not None:
        value = (_from_keyring(settings.keyring, settings.user) or "").strip()
    if not value:
        places = [f"the environment variable {settings.env} is not set"] if settings.env is not None else []
        places += [f"the keyring has no {settings.keyring} of {settings.user}"] if settings.keyring is not None else []
        raise ValueError(f"there is no key: {', and '.join(places)}")
    if not re.fullmatch(r"[\x21-\x7e]+", value):
        place = settings.env or settings.keyring
        raise ValueError(f"the key from {place} has characters that no header may have, perhaps a line break inside")
    return Credential(value, settings)


def _from_keyring(service: str, user: str) -> str | None:
    try:
        keyring = importlib.import_module("keyring")
    except ModuleNotFoundError:
        raise ValueError("the key is in the keyring: install the package keyring next to tallystick") from None
    try:
        found = keyring.get_password(service, user)
    except Exception as error:  # noqa: BLE001 - the backends of the keyring raise what they like
        raise ValueError(f"the keyring does not answer: {type(error).__name__}") from None
    return found if isinstance(found, str) else None
