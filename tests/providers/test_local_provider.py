import io
import subprocess
import sys
import threading
import wave
from typing import Any

import anyio
import pytest
from PIL import Image

from provider_support import MemoryArtifacts, Studio
from tallystick.providers import conformance
from tallystick.providers.catalogue import CATALOGUE
from tallystick.providers.local import create
from tallystick.providers.local.provider import LocalProvider
from tallystick.providers.local.settings import LocalSettings
from tallystick.providers.protocol import Blob, Refused, Sample, Succeeded, Unknown, Unusable

SHOT = {"prompt": "A ferry leaves the harbour", "size": "256x320"}


def subject(price: str = "estimate") -> conformance.Subject:
    return conformance.Subject(make=lambda artifacts: create({"price": price}, artifacts))


@pytest.mark.parametrize("check", [*conformance.CHECKS, *conformance.DETERMINISTIC], ids=str)
async def test_it_conforms(check: conformance.Check) -> None:
    await check(subject())


def picture(studio: Studio, result: dict[str, Any], number: int = 0) -> Image.Image:
    artifact = result["images"][number]
    assert artifact["media_type"] == "image/png"
    opened = Image.open(io.BytesIO(studio.bytes_of(artifact)))
    opened.load()
    assert opened.format == "PNG"
    return opened


@pytest.mark.parametrize("size", ["1024x1024", "1792x1024", "1024x1536", "512x512", "160x900", "64x48", "16x16"])
async def test_a_picture_is_a_png_of_the_size_asked_for(size: str) -> None:
    studio = Studio()
    result = await studio.result("image.generate", {"prompt": "A quiet city street at dusk", "size": size})
    assert f"{result['width']}x{result['height']}" == size
    opened = picture(studio, result)
    assert f"{opened.width}x{opened.height}" == size
    assert len(opened.convert("RGB").getcolors(1 << 20) or ()) > 4


async def test_a_picture_without_a_size_is_1024_pixels_square() -> None:
    result = await Studio().result("image.generate", {"prompt": "A mug"})
    assert (result["width"], result["height"]) == (1024, 1024)


async def test_n_pictures_are_n_different_ones() -> None:
    result = await Studio().result("image.generate", SHOT | {"n": 3})
    assert len({image["$artifact"] for image in result["images"]}) == 3


async def test_a_picture_is_the_same_bytes_in_another_process_and_at_another_time() -> None:
    program = (
        "import anyio, hashlib; from tallystick.providers.local import create;"
        "from tallystick.providers.protocol import Sample;"
        f"call = create({{}}, None).call('image.generate', {SHOT!r}, 'k', Sample(seed=5));"
        "outcome = anyio.run(lambda: call);"
        "print(hashlib.sha256(outcome.result['images'][0].data).hexdigest())"
    )
    elsewhere = await anyio.run_process([sys.executable, "-c", program])
    result = await Studio().result("image.generate", SHOT, seed=5)
    assert result["images"][0]["$artifact"] == f"sha256:{elsewhere.stdout.decode().strip()}"


async def test_a_seed_in_the_payload_takes_the_place_of_the_samples() -> None:
    studio = Studio()
    one = await studio.result("image.generate", SHOT | {"seed": 9}, seed=1)
    other = await studio.result("image.generate", SHOT | {"seed": 9}, seed=2)
    third = await studio.result("image.generate", SHOT | {"seed": 10}, seed=1)
    assert one == other
    assert one != third


@pytest.mark.parametrize(
    "prompt",
    [
        "x" * 50_000,
        "漢字のポスター",
        "  \n ",
        "naïve café \N{EN DASH} “déjà vu”",
        "word " * 3_000,
        "a\x00b\x1b[31m",
        "{0} %s {prompt}",
    ],
)
async def test_any_prompt_makes_a_picture(prompt: str) -> None:
    studio = Studio()
    for size in ("300x300", "400x220"):
        picture(studio, await studio.result("image.generate", {"prompt": prompt, "size": size}))


@pytest.mark.parametrize("size", ["15x100", "9999x20", "4097x4097"])
async def test_a_size_out_of_bounds_is_refused_with_the_bounds(size: str) -> None:
    outcome = await Studio().call("image.generate", {"prompt": "A mug", "size": size})
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_request"
    assert outcome.text == f"size {size} is not supported; sides may be 16 to 4096 pixels"


async def test_an_edit_keeps_the_size_of_its_source_and_shows_it() -> None:
    studio = Studio()
    buffer = io.BytesIO()
    Image.new("RGB", (300, 200), (250, 0, 250)).save(buffer, "PNG")
    source = studio.artifacts.put(Blob(buffer.getvalue(), "image/png"))
    result = await studio.result("image.edit", {"image": source, "prompt": "Warmer"})
    assert (result["width"], result["height"]) == (300, 200)
    red, green, blue = picture(studio, result).convert("RGB").getpixel((100, 60))  # type: ignore[misc]  # RGB has three
    assert min(red, blue) > green + 80


async def test_a_reference_is_set_into_the_picture() -> None:
    studio = Studio()
    buffer = io.BytesIO()
    Image.new("RGB", (50, 50), (250, 0, 250)).save(buffer, "PNG")
    source = studio.artifacts.put(Blob(buffer.getvalue(), "image/png"))
    plain = picture(studio, await studio.result("image.generate", SHOT)).convert("RGB")
    pinned = picture(studio, await studio.result("image.generate", SHOT | {"reference": source})).convert("RGB")

    def magentas(image: Image.Image) -> int:
        return sum(count for count, (r, g, b) in image.getcolors(1 << 20) or () if min(r, b) > 200 and g < 60)  # type: ignore[misc]  # RGB colours are tuples

    assert magentas(plain) == 0
    assert magentas(pinned) > 1_000


async def test_bytes_that_are_no_picture_do_not_stop_an_edit() -> None:
    studio = Studio()
    for data in (b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + bytes(40)):
        source = studio.artifacts.put(Blob(data, "application/octet-stream"))
        result = await studio.result("image.edit", {"image": source, "prompt": "Warmer"})
        assert (result["width"], result["height"]) == (1024, 1024)


@pytest.mark.parametrize(
    ("capability", "payload"),
    [
        ("image.edit", {"prompt": "Warmer"}),
        ("image.generate", {"prompt": "Warmer"}),
        ("video.edit", {"prompt": "Warmer"}),
    ],
)
async def test_an_artifact_that_is_not_there_is_refused(capability: str, payload: dict[str, Any]) -> None:
    field = {"image.edit": "image", "image.generate": "reference", "video.edit": "video"}[capability]
    missing = {"$artifact": f"sha256:{'0' * 64}", "media_type": "image/png", "bytes": 1}
    outcome = await Studio().call(capability, payload | {field: missing})
    assert isinstance(outcome, Refused)
    assert outcome.kind == "invalid_request"
    assert "cannot be read" in outcome.text


async def test_a_storyboard_has_as_many_distinct_shots_as_asked_for() -> None:
    studio = Studio()
    for shots in (1, 2, 6, 32):
        board = (await studio.result("storyboard.plan", {"brief": "A mug.", "shots": shots, "style": "35mm"}))["shots"]
        assert [shot["id"] for shot in board] == [f"s{n}" for n in range(1, shots + 1)]
        assert len({shot["prompt"] for shot in board}) == shots
        assert all("A mug" in shot["prompt"] and "35mm" in shot["prompt"] for shot in board)
        assert all(1 <= shot["duration_s"] <= 8 for shot in board)


async def test_a_review_depends_on_its_payload_alone_and_sometimes_fails() -> None:
    studio = Studio()
    artifact = conformance.example("review.visual")["image"]
    verdicts = []
    for number in range(60):
        payload = {"image": artifact, "criteria": f"criterion {number}"}
        once = await studio.result("review.visual", payload, seed=1)
        assert once == await studio.result("review.visual", payload, seed=2)
        assert once["ok"] == (once["score"] >= 0.6)
        verdicts.append(once["ok"])
    assert {True, False} == set(verdicts)


async def test_text_varies_with_the_sample_unless_the_temperature_is_zero() -> None:
    studio = Studio()
    payload = {"prompt": "Write about the lighthouse keeper, the storm and the lamp"}
    varied = [(await studio.result("text.generate", payload, seed=seed))["text"] for seed in range(8)]
    fixed = [
        (await studio.result("text.generate", payload | {"temperature": 0}, seed=seed))["text"] for seed in range(8)
    ]
    assert len(set(varied)) > 1
    assert len(set(fixed)) == 1


@pytest.mark.parametrize("tokens", [1, 5, 12, 40, 400])
async def test_text_keeps_to_its_tokens(tokens: int) -> None:
    result = await Studio().result("text.generate", {"prompt": "Tag the missing parcel", "max_tokens": tokens})
    assert 1 <= len(result["text"].split()) <= tokens
    assert result["data"] is None


async def test_text_with_a_schema_comes_with_data_and_the_same_as_json() -> None:
    schema = {"type": "object", "properties": {"urgency": {"type": "integer", "minimum": 1, "maximum": 5}}}
    result = await Studio().result("text.generate", {"prompt": "Label it", "schema": schema})
    assert result["text"] == f'{{"urgency":{result["data"]["urgency"]}}}'


async def test_a_schema_that_no_value_fits_is_an_invalid_request() -> None:
    outcome = await Studio().call("text.generate", {"prompt": "Label it", "schema": {"type": "strin"}})
    assert outcome == Refused(kind="invalid_request", text="schema: there is no type 'strin'")


@pytest.mark.parametrize(
    ("capability", "payload", "seconds"),
    [
        ("music.generate", {"prompt": "calm", "duration_s": 1.25}, 1.25),
        ("speech.generate", {"text": "Up, up went Pim."}, None),
    ],
)
async def test_sound_is_a_wav_of_the_length_it_says(
    capability: str, payload: dict[str, Any], seconds: float | None
) -> None:
    studio = Studio()
    result = await studio.result(capability, payload)
    assert result["audio"]["media_type"] == "audio/wav"
    with wave.open(io.BytesIO(studio.bytes_of(result["audio"]))) as sound:
        assert sound.getnframes() / sound.getframerate() == result["duration_s"]
        assert len(set(sound.readframes(8_000))) > 16
    assert seconds is None or result["duration_s"] == seconds


async def test_longer_speech_takes_longer() -> None:
    studio = Studio()
    short = await studio.result("speech.generate", {"text": "Up went Pim."})
    longer = await studio.result("speech.generate", {"text": "Up, up, up the winding stairs went Pim."})
    assert 0 < short["duration_s"] < longer["duration_s"]


def gif_length(data: bytes) -> float:
    with Image.open(io.BytesIO(data)) as moving:
        frames: int = moving.n_frames  # type: ignore[attr-defined]  # of GIF files
        total = 0
        for number in range(frames):
            moving.seek(number)
            total += moving.info["duration"]
    assert frames > 1
    return total / 1000


@pytest.mark.parametrize("seconds", [0.3, 2, 5.37])
async def test_a_clip_is_an_animation_of_the_length_it_says(seconds: float) -> None:
    studio = Studio()
    result = await studio.result("video.generate", {"prompt": "Waves at sea", "duration_s": seconds})
    assert result["video"]["media_type"] == "image/gif"
    assert result["duration_s"] == pytest.approx(seconds)
    assert gif_length(studio.bytes_of(result["video"])) == pytest.approx(seconds)


async def test_an_edited_clip_is_as_long_as_its_source() -> None:
    studio = Studio()
    source = (await studio.result("video.generate", {"prompt": "Waves at sea", "duration_s": 1.5}))["video"]
    edited = await studio.result("video.edit", {"video": source, "prompt": "Molten orange"})
    assert edited["duration_s"] == pytest.approx(1.5)
    assert edited["video"] != source


@pytest.mark.parametrize("capability", CATALOGUE)
async def test_every_call_costs_the_estimate_unless_the_price_is_zero(capability: str) -> None:
    payload, artifacts = conformance.example(capability), conformance.ExampleArtifacts()
    for settings, cost in (({}, CATALOGUE[capability].estimate), ({"price": "zero"}, 0)):
        outcome = await create(settings, artifacts).call(capability, payload, "key", Sample(seed=1))
        assert isinstance(outcome, Succeeded)
        assert outcome.cost == cost


async def test_an_ordered_failure_strikes_its_execution_and_no_other() -> None:
    studio = Studio()
    faults = ("image.generate:2:content_policy:no weapons", "image.generate:3:unknown", "image.generate:4:unusable")
    outcomes = [await studio.call("image.generate", SHOT, execution=n, faults=faults) for n in range(1, 6)]
    assert isinstance(outcomes[0], Succeeded)
    assert outcomes[1] == Refused(kind="content_policy", text="no weapons")
    assert isinstance(outcomes[2], Unknown)
    assert isinstance(outcomes[3], Unusable)
    assert outcomes[3].cost == CATALOGUE["image.generate"].estimate
    assert isinstance(outcomes[4], Succeeded)
    elsewhere = await studio.call("storyboard.plan", {"brief": "b", "shots": 1}, execution=2, faults=faults)
    assert isinstance(elsewhere, Succeeded)


async def test_a_failure_that_cannot_be_read_refuses_the_call_in_words() -> None:
    outcome = await Studio().call("image.generate", SHOT, faults=("image.generate:x:timeout",))
    assert isinstance(outcome, Refused)
    assert 'the execution is "x"' in outcome.text


async def test_pictures_are_made_beside_the_event_loop() -> None:
    """A worker that waits for something which only the loop can do."""
    opened = threading.Event()

    class Waiting(MemoryArtifacts):
        def get_file(self, sha256: str) -> bytes:
            assert opened.wait(timeout=30)
            return super().get_file(sha256)

    artifacts, outcomes = Waiting(), []
    source = artifacts.put(Blob(b"", "image/png"))

    async def edit() -> None:
        payload = {"image": source, "prompt": "Warmer"}
        outcomes.append(await create({}, artifacts).call("image.edit", payload, "key", Sample(seed=1)))

    async with anyio.create_task_group() as group:
        group.start_soon(edit)
        await anyio.wait_all_tasks_blocked()
        assert not outcomes
        opened.set()
    assert isinstance(outcomes[0], Succeeded)


async def test_latency_is_waited_give_or_take_a_half_and_the_same_each_time() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    provider = LocalProvider(LocalSettings(), MemoryArtifacts(), sleep=sleep)
    for seed in (*range(20), *range(20)):
        await provider.call("storyboard.plan", {"brief": "b", "shots": 1}, "key", Sample(seed=seed, latency=2.0))
    await provider.call("storyboard.plan", {"brief": "b", "shots": 1}, "key", Sample(seed=1))
    assert len(waits) == 40
    assert waits[:20] == waits[20:]
    assert all(1.0 <= wait <= 3.0 for wait in waits)
    assert len(set(waits)) == 20
    assert waits[:20] != sorted(waits[:20])


async def test_a_capability_it_does_not_have_gets_the_nearest_name() -> None:
    outcome = await Studio().provider.call("image.generat", {}, "key", Sample(seed=1))
    assert outcome == Refused(
        kind="invalid_request", text='the local provider has no "image.generat"; did you mean "image.generate"?'
    )


def test_making_the_provider_does_not_import_pillow() -> None:
    program = (
        "import sys; from tallystick.providers.local import create; create({}, None);"
        "print(sorted(name for name in ('PIL', 'wave', 'httpx', 'litestar') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "[]"
