import copy
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.providers import catalogue, conformance
from tallystick.providers.catalogue import CATALOGUE, PayloadRefusedError, ResultRefusedError, UnknownCapabilityError
from tallystick.providers.payloads import Artifact

ARTIFACT = {"$artifact": f"sha256:{'a' * 64}", "media_type": "image/png", "bytes": 10}

RESULTS: dict[str, Any] = {
    "storyboard.plan": {"shots": [{"id": "s1", "prompt": "p", "duration_s": 3}]},
    "image.generate": {"images": [ARTIFACT], "width": 8, "height": 8},
    "image.edit": {"images": [ARTIFACT], "width": 8, "height": 8},
    "review.visual": {"ok": True, "score": 1, "notes": ""},
    "text.generate": {"text": "", "data": None},
    "speech.generate": {"audio": ARTIFACT, "duration_s": 1.5},
    "music.generate": {"audio": ARTIFACT, "duration_s": 1},
    "video.generate": {"video": ARTIFACT, "duration_s": 1},
    "video.edit": {"video": ARTIFACT, "duration_s": 0},
}

FULL_PAYLOADS: dict[str, Any] = {
    "storyboard.plan": {"brief": "b", "shots": 32, "style": "s"},
    "image.generate": {"prompt": "p", "size": "1792x1024", "n": 4, "seed": 0, "reference": ARTIFACT},
    "image.edit": {"image": ARTIFACT, "prompt": "p", "mask": ARTIFACT},
    "review.visual": {"image": ARTIFACT, "criteria": "c"},
    "text.generate": {"prompt": "p", "system": "", "max_tokens": 1, "temperature": 0, "schema": {"type": "string"}},
    "speech.generate": {"text": "t", "voice": "v"},
    "music.generate": {"prompt": "p", "duration_s": 0.5},
    "video.generate": {"prompt": "p", "image": ARTIFACT, "duration_s": 5, "resolution": "720p"},
    "video.edit": {"video": ARTIFACT, "prompt": "p"},
}


def refusal(name: str, payload: Any) -> PayloadRefusedError:
    with pytest.raises(PayloadRefusedError) as caught:
        catalogue.validate_payload(name, payload)
    return caught.value


def test_the_catalogue_has_nine_capabilities_of_which_four_are_bound() -> None:
    assert len(CATALOGUE) == 9
    bound = [name for name, capability in CATALOGUE.items() if capability.bound]
    assert bound == ["storyboard.plan", "image.generate", "review.visual", "text.generate"]


def test_what_makes_artifacts_is_side_effecting() -> None:
    read_only = {name for name in CATALOGUE if not catalogue.spec(name).side_effecting}
    assert read_only == {"storyboard.plan", "review.visual", "text.generate"}


def test_estimates_are_in_micro_dollars() -> None:
    assert catalogue.spec("image.generate").estimate == 20_000
    assert catalogue.spec("video.edit").estimate == 600_000


@pytest.mark.parametrize("name", CATALOGUE)
@pytest.mark.parametrize("source", [conformance.example, FULL_PAYLOADS.__getitem__], ids=["example", "every field"])
def test_a_good_payload_passes_and_stays_as_it_is(name: str, source: Any) -> None:
    payload = source(name)
    before = msgspec.json.encode(payload)
    catalogue.validate_payload(name, payload)
    assert msgspec.json.encode(payload) == before


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_payload_shape_survives_a_round_trip_of_its_type(name: str) -> None:
    typed = msgspec.convert(FULL_PAYLOADS[name], CATALOGUE[name].payload, strict=True)
    assert msgspec.to_builtins(typed) == FULL_PAYLOADS[name]


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_result_shape_survives_a_round_trip_of_its_type(name: str) -> None:
    catalogue.validate_result(name, RESULTS[name])
    typed = msgspec.convert(RESULTS[name], CATALOGUE[name].result, strict=True)
    assert msgspec.to_builtins(typed) == RESULTS[name]


@pytest.mark.parametrize("name", CATALOGUE)
def test_the_written_shape_names_every_field_and_marks_the_optional_ones(name: str) -> None:
    fields = msgspec.structs.fields(CATALOGUE[name].payload)
    written = re.findall(r'"(\w+)"(\??):', catalogue.shape(name).payload)
    assert written == [(field.encode_name, "" if field.required else "?") for field in fields]


def test_shapes_are_written_as_in_a_script() -> None:
    assert catalogue.shape("storyboard.plan").payload == '{"brief": str, "shots": int 1-32, "style"?: str}'
    assert catalogue.shape("review.visual").result == '{"ok": bool, "score": number 0-1, "notes": str}'
    assert catalogue.shape("image.edit").result == '{"images": [artifact], "width": int, "height": int}'


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_misspelt_field_gets_the_nearest_name(name: str) -> None:
    for field in msgspec.structs.fields(CATALOGUE[name].payload):
        good = field.encode_name
        misspelt = good[:-1] if len(good) > 1 else f"{good}{good}"
        payload = copy.deepcopy(FULL_PAYLOADS[name])
        payload[misspelt] = payload.pop(good)
        error = refusal(name, payload)
        assert error.path == misspelt
        assert f'did you mean "{good}"?' in error.message


def test_a_field_that_resembles_nothing_gets_the_list() -> None:
    error = refusal("video.edit", {"video": ARTIFACT, "prompt": "p", "zzz": 1})
    assert error.message == ('video.edit: the payload\'s "zzz" is not a field here; the fields are video, prompt')


@pytest.mark.parametrize(
    ("name", "change", "path", "message"),
    [
        ("storyboard.plan", {"shots": 0}, "shots", "is 0, and must be int 1-32"),
        ("storyboard.plan", {"shots": 33}, "shots", "is 33, and must be int 1-32"),
        ("storyboard.plan", {"shots": 3.0}, "shots", "is 3.0, and must be int 1-32"),
        ("storyboard.plan", {"shots": True}, "shots", "is true, and must be int 1-32"),
        ("image.generate", {"n": 5}, "n", "is 5, and must be int 1-4"),
        ("image.generate", {"seed": None}, "seed", "is null; leave it out, or give int from 0"),
        ("image.generate", {"size": "1024*768"}, "size", 'is "1024*768", and must be str like "1024x1024"'),
        ("image.generate", {"reference": "sha256:1"}, "reference", "must be an artifact as an earlier call gave it"),
        ("image.edit", {"image": RESULTS["image.edit"]}, "image", 'say result["images"][0]'),
        ("image.edit", {"image": ARTIFACT | {"$artifact": "x"}}, "image.$artifact", 'is "x", and must be "sha256:'),
        ("text.generate", {"temperature": 2.5}, "temperature", "is 2.5, and must be number 0-2"),
        ("text.generate", {"schema": ["x"]}, "schema", 'is ["x"], and must be JSON schema'),
        ("music.generate", {"duration_s": 0}, "duration_s", "is 0, and must be number of seconds up to 600"),
        ("music.generate", {"duration_s": "9"}, "duration_s", 'is "9", and must be number of seconds'),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(name: str, change: dict[str, Any], path: str, message: str) -> None:
    error = refusal(name, FULL_PAYLOADS[name] | change)
    assert error.path == path
    assert message in error.message
    assert error.message.startswith(f"{name}: the payload's ")


def test_a_missing_field_is_named() -> None:
    error = refusal("storyboard.plan", {"brief": "b"})
    assert (error.path, error.message) == (
        "shots",
        'storyboard.plan: the payload\'s "shots" is missing; it must be int 1-32',
    )


@pytest.mark.parametrize("payload", [None, [], "prompt", 3])
def test_a_payload_that_is_no_dict_gets_the_shape(payload: Any) -> None:
    error = refusal("video.edit", payload)
    assert error.path == ""
    assert 'must be a dict: {"video": artifact, "prompt": str}' in error.message


def test_a_long_value_is_shortened_in_the_message() -> None:
    assert len(refusal("image.generate", {"prompt": ["x" * 10_000]}).message) < 200


@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("images.generate", "image.generate"),
        ("image.generat", "image.generate"),
        ("Image.Edit", "image.edit"),
        ("text.genrate", "text.generate"),
        ("review.visaul", "review.visual"),
    ],
)
def test_a_misspelt_capability_gets_the_nearest_name(typo: str, meant: str) -> None:
    assert catalogue.nearest(typo) == meant
    for ask in (catalogue.spec, catalogue.shape, lambda name: catalogue.validate_payload(name, {})):
        with pytest.raises(UnknownCapabilityError, match=f'did you mean "{meant}"'):
            ask(typo)


def test_a_capability_that_resembles_nothing_gets_the_list() -> None:
    assert catalogue.nearest("pay") is None
    with pytest.raises(UnknownCapabilityError, match=r"there are storyboard\.plan, image\.generate"):
        catalogue.validate_result("pay", {})


@pytest.mark.parametrize(
    ("name", "result", "path"),
    [
        (
            "storyboard.plan",
            {"shots": [RESULTS["storyboard.plan"]["shots"][0], {"id": "s2", "prompt": "p"}]},
            "shots[1].duration_s",
        ),
        ("image.generate", {"images": [], "width": 1, "height": 1}, "images"),
        ("image.generate", {"images": [ARTIFACT | {"bytes": -1}], "width": 1, "height": 1}, "images[0].bytes"),
        ("review.visual", {"ok": True, "score": 1.01, "notes": ""}, "score"),
        ("text.generate", {"text": "t"}, "data"),
        ("video.edit", {"video": ARTIFACT}, "duration_s"),
        ("video.edit", [], ""),
        ("text.generate", {"text": "t", "data": None, 1: "x"}, ""),
    ],
)
def test_a_result_against_its_shape_is_refused_with_the_place(name: str, result: Any, path: str) -> None:
    with pytest.raises(ResultRefusedError) as caught:
        catalogue.validate_result(name, result)
    assert caught.value.path == path
    assert caught.value.message.startswith(f"{name}: the result")


def test_a_result_may_carry_more_than_the_catalogue_names() -> None:
    catalogue.validate_result("text.generate", {"text": "t", "data": None, "model": "m"})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@given(
    name=st.sampled_from(sorted(CATALOGUE)),
    change=st.dictionaries(st.sampled_from(["prompt", "image", "shots", "schema", "n", "x"]), JSON),
)
def test_any_payload_either_fits_its_type_or_is_refused_in_words(name: str, change: dict[str, Any]) -> None:
    payload = FULL_PAYLOADS[name] | change
    try:
        msgspec.convert(payload, CATALOGUE[name].payload, strict=True)
    except msgspec.ValidationError:
        error = refusal(name, payload)
        assert error.path.split(".")[0] in payload
        assert "$." not in error.message
    else:
        catalogue.validate_payload(name, payload)


def test_an_artifact_reference_is_exactly_three_fields() -> None:
    assert msgspec.to_builtins(msgspec.convert(ARTIFACT, Artifact)) == ARTIFACT
