"""A planted key is sent where it belongs, and shows nowhere else: not in outcomes, messages, representations or logs."""

import json
import logging
import sys
import types
from typing import Any

import msgspec
import pytest

from http_support import SECRET, Diary, Rigs
from provider_support import MemoryArtifacts
from tallystick.providers.http import create, credentials
from tallystick.providers.http.credentials import Credential, KeySettings
from tallystick.providers.protocol import Blob, Refused, Sample, Succeeded, Unusable
from upstream_faults import Fault
from upstream_server import Upstream

ODD = 'sk-"quoted"/planted+4f9a&7c21'  # JSON and addresses write it otherwise

FAULTS = [
    Fault(),
    Fault(echo=True),
    *(Fault(status=status, echo=True) for status in (400, 401, 403, 429, 500)),
    *(Fault(status=400, body=f"your key {key} is odd") for key in (SECRET, ODD)),
    Fault(status=400, body={"error": {"code": ODD, "message": ODD}}),
    Fault(status=308, headers={"Location": f"https://api.example/?key={SECRET}"}),
    Fault(status=429, headers={"Retry-After": SECRET}),
    Fault(drop="unanswered"),
    Fault(drop="cut"),
    Fault(lie="broken"),
    Fault(lie="empty"),
]


def shown(value: Any) -> str:
    """Return all that can be seen of a value: its representation, its JSON, and the bytes in it."""
    blobs = [str(value.raw.data)] if isinstance(value, Unusable) and isinstance(value.raw, Blob) else []
    return " ".join([repr(value), str(value), str(msgspec.json.encode(value)), *blobs])


@pytest.mark.parametrize(("kind", "secret"), [("openai", SECRET), ("studio", ODD)])
@pytest.mark.parametrize("fault", FAULTS, ids=repr)
async def test_a_planted_key_never_shows(
    fault: Fault, secret: str, kind: str, *, rig: Rigs, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    upstream.script(fault)
    provider = rig(upstream, kind, secret=secret)
    diary = Diary()
    outcome = await provider.track(diary)
    looked_up = await provider.lookup()
    seen = " ".join(
        [shown(outcome), shown(looked_up), shown(diary.answers), repr(vars(provider.provider)), caplog.text]
    )
    for form in {secret, json.dumps(secret)[1:-1]}:
        assert form not in seen
    assert secret in str(upstream.hits[0].headers)  # it was sent, so the test could have found it


async def test_a_result_that_echoes_the_key_does_not_pass_it_on(rig: Rigs, upstream: Upstream) -> None:
    answer = {"choices": [{"message": {"content": f"Your key is {SECRET}."}}], "usage": {SECRET: SECRET}}
    upstream.script(Fault(status=200, body=answer))
    outcome = await rig(upstream, "openai").call({"prompt": "What is my key?"}, "text.generate")
    assert isinstance(outcome, Succeeded)
    assert outcome.result["text"] == "Your key is [key]."
    assert outcome.usage == {"[key]": "[key]"}


async def test_a_key_in_a_large_answer_is_hidden_and_the_rest_is_kept(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=200, body={"noise": "x" * 100_000, "key": SECRET}))
    outcome = await rig(upstream, "openai").call()
    assert isinstance(outcome, Unusable)
    assert msgspec.json.decode(outcome.raw.data) == {"noise": "x" * 100_000, "key": "[key]"}


def test_a_picture_is_not_touched_where_bytes_look_like_a_key() -> None:
    credential = Credential(SECRET, KeySettings(env="X"))
    picture = Blob(SECRET.encode(), "image/png")
    assert credential.hide_in({"images": [picture]}) == {"images": [picture]}


def test_a_short_word_is_not_taken_for_a_key() -> None:
    assert Credential("key", KeySettings(env="X")).hide("the keyword") == "the keyword"


def test_a_credential_does_not_show_itself() -> None:
    credential = credentials.load(KeySettings(env="X"), {"X": SECRET})
    assert SECRET not in f"{credential!r} {credential} {credential.headers} {[credential]}"
    assert dict(credential.headers) == {"Authorization": f"Bearer {SECRET}"}


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "the environment variable X is not set"),
        ({"X": "  "}, "the environment variable X is not set"),
        ({"X": f"{SECRET}\n{SECRET}"}, "the key from X has characters that no header may have"),
        ({"X": f"{SECRET}ü"}, "the key from X has characters that no header may have"),
    ],
)
def test_a_key_that_cannot_be_sent_is_refused_unseen(environment: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        credentials.load(KeySettings(env="X"), environment)
    assert SECRET not in str(caught.value)


def test_a_line_break_at_the_end_of_a_key_is_no_part_of_it() -> None:
    assert credentials.load(KeySettings(env="X"), {"X": f"{SECRET}\n"}).headers["Authorization"] == f"Bearer {SECRET}"


def keyring(answer: Any) -> types.ModuleType:
    module = types.ModuleType("keyring")

    def get_password(service: str, user: str) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer if (service, user) == ("studio", "tallystick") else None

    module.get_password = get_password  # type: ignore[attr-defined]  # the one function that is used
    return module


def test_the_keyring_is_asked_where_the_environment_has_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", keyring(SECRET))
    settings = KeySettings(env="X", keyring="studio")
    assert credentials.load(settings, {}).headers["Authorization"] == f"Bearer {SECRET}"
    assert credentials.load(settings, {"X": "other-key"}).headers["Authorization"] == "Bearer other-key"
    with pytest.raises(ValueError, match="the keyring has no atelier of tallystick"):
        credentials.load(KeySettings(keyring="atelier"), {})


def test_trouble_with_the_keyring_is_told_without_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", keyring(RuntimeError(SECRET)))
    with pytest.raises(ValueError, match="does not answer: RuntimeError") as caught:
        credentials.load(KeySettings(keyring="studio"), {})
    assert SECRET not in str(caught.value)
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ValueError, match="install the package keyring"):
        credentials.load(KeySettings(keyring="studio"), {})


@pytest.mark.parametrize("name", ["Authorization", "x-api-key", "Cookie"])
def test_a_credential_in_the_configuration_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with pytest.raises(ValueError, match="keep it out of the configuration") as caught:
        create({"profile": "openai", "model": "m-1", "headers": {name: SECRET}}, MemoryArtifacts())
    assert SECRET not in str(caught.value)


async def test_an_api_without_a_key_is_called_without_one(upstream: Upstream) -> None:
    # Any OpenAI-compatible server on this machine; the profile's key is set aside by naming none.
    provider = create(
        {
            "base_url": f"{upstream.url}/v1",
            "proxy": False,
            "operations": {
                "text.generate": {
                    "path": "/chat/completions",
                    "body": {"messages": [{"role": "user", "content": "{prompt}"}]},
                    "result": {"text": "{choices[0].message.content}", "data": {"$when": "$none", "then": 0}},
                }
            },
        },
        MemoryArtifacts(),
    )
    outcome = await provider.call("text.generate", {"prompt": "Hello"}, "key", Sample(seed=1))
    assert not isinstance(outcome, Refused)
    assert "authorization" not in upstream.hits[0].headers
    await provider.close()
