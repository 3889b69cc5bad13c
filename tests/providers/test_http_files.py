"""Files of answers are captured at once, and what was paid for is never lost on the way (casebook 30)."""

import base64
from collections.abc import Callable
from typing import Any

import pytest

from http_support import Diary, Rigs, SwiftClock, operation
from tallystick.providers.blobs import reference
from tallystick.providers.http.downloads import Downloader, DownloadError
from tallystick.providers.http.settings import Downloads
from tallystick.providers.protocol import Blob, Succeeded, Unknown, Unusable
from upstream_content import picture
from upstream_faults import Fault
from upstream_server import Upstream

LARGE = base64.b64encode(picture(64, 48, "large") + bytes(25 << 20)).decode()


async def test_pictures_behind_links_arrive_as_bytes(rig: Rigs, upstream: Upstream) -> None:
    result = await rig(upstream, "studio").result({"prompt": "a lighthouse", "size": "64x48", "n": 3})
    assert [blob.data for blob in result["images"]] == list(upstream.files.values())
    assert {blob.media_type for blob in result["images"]} == {"image/png"}  # the header says octet-stream
    upstream.links_live = False
    assert upstream.count("file") == 3


@pytest.mark.parametrize("shape", ["b64_json", "url"])
async def test_a_picture_may_come_inline_or_as_a_link(shape: str, rig: Rigs, upstream: Upstream) -> None:
    changes = operation(body={"response_format": shape})
    for kind in ("openai", "seedream"):
        result = await rig(upstream, kind, operations=changes).result()
        assert (result["width"], result["height"]) == (64, 48)
    assert upstream.count("file") == (2 if shape == "url" else 0)


async def test_a_data_url_is_read_where_a_link_stands(rig: Rigs, upstream: Upstream) -> None:
    encoded = base64.b64encode(picture(64, 48, "inline")).decode()
    upstream.script(Fault(status=200, body={"data": [{"url": f"data:image/png;base64,{encoded}"}]}))
    result = await rig(upstream, "openai").result()
    assert result["images"][0].data == picture(64, 48, "inline")


async def test_the_answer_is_told_before_its_links_are_fetched(rig: Rigs, upstream: Upstream) -> None:
    diary = Diary()
    seen: list[int] = []
    provider = rig(upstream, "studio")
    told = diary.answered

    async def answered(raw: Any, cost: int | None) -> None:
        seen.append(upstream.count("file"))
        await told(raw, cost)

    diary.answered = answered  # type: ignore[method-assign]  # the test looks at the moment
    await provider.track(diary)
    (raw, cost), *rest = diary.answers
    assert (seen, rest, cost) == ([0], [], upstream.bill)
    assert raw["output"][0]["url"].startswith(upstream.url)


async def test_a_half_download_is_tried_again(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(drop="cut"), kind="file", times=2)
    assert isinstance(await rig(upstream, "studio").call(), Succeeded)
    assert (upstream.count("file"), upstream.count("submit")) == (3, 1)


@pytest.mark.parametrize("fault", [Fault(drop="cut"), Fault(drop="unanswered"), Fault(status=503), Fault(status=429)])
async def test_a_download_that_keeps_breaking_leaves_the_call_unknown_with_its_links(
    fault: Fault, rig: Rigs, upstream: Upstream
) -> None:
    upstream.script(fault, kind="file", times=None)
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Unknown)
    assert (outcome.job, outcome.cost) == ("job-1", upstream.bill)
    assert outcome.raw["output"][0]["url"].startswith(upstream.url)
    assert "tried 3 times" in outcome.reason
    assert upstream.count("submit") == 1


async def test_what_was_kept_is_processed_again_without_a_new_order(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(drop="cut"), kind="file", times=None)
    provider = rig(upstream, "studio")
    lost = await provider.call()
    assert isinstance(lost, Unknown)
    upstream.calm()
    found = await provider.provider.reprocess("image.generate", {"prompt": "x"}, lost.raw)
    assert isinstance(found, Succeeded)
    assert found.result["images"][0].data == upstream.files["1.png"]
    assert (found.cost, upstream.count("submit")) == (upstream.bill, 1)


async def test_a_download_that_takes_too_long_leaves_the_call_unknown(rig: Rigs, upstream: Upstream) -> None:
    gate = upstream.hold("file")
    outcome = await rig(upstream, "studio", downloads={"tries": 1}).time_out(gate=gate)
    assert isinstance(outcome, Unknown)
    assert "nothing came within 120 s" in outcome.reason


async def test_a_dead_link_is_unusable_and_keeps_the_answer(rig: Rigs, upstream: Upstream) -> None:
    upstream.links_live = False
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Unusable)
    assert "the status is 403" in outcome.text
    assert (outcome.cost, outcome.raw["id"]) == (upstream.bill, "job-1")
    assert (upstream.count("file"), upstream.count("submit")) == (1, 1)


async def test_a_private_address_is_refused_unless_it_is_allowed(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, "studio", downloads={"allow": []}).call()
    assert isinstance(outcome, Unusable)
    assert "private address" in outcome.text
    assert upstream.count("file") == 0


async def test_a_file_that_is_too_large_is_not_fetched(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, "studio", downloads={"max_bytes": 20}).call()
    assert isinstance(outcome, Unusable)
    assert "downloads.max_bytes is the limit" in outcome.text
    inline = await rig(upstream, "openai", downloads={"max_bytes": 20}).call()
    assert isinstance(inline, Unusable)
    assert "max_bytes is 20" in inline.text


async def test_a_page_instead_of_a_picture_is_unusable(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=200, body="<html>log in</html>", headers={"Content-Type": "image/png"}), kind="file")
    outcome = await rig(upstream, "studio").call()
    assert isinstance(outcome, Unusable)
    assert "of no known format" in outcome.text


async def test_a_large_picture_inline_is_kept_whole(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=200, body={"data": [{"b64_json": LARGE}]}))
    result = await rig(upstream, "openai").result()
    assert len(result["images"][0].data) > 25 << 20
    assert upstream.paid_hits == 1


async def test_a_large_answer_that_is_unusable_is_kept_as_a_file_and_read_again(rig: Rigs, upstream: Upstream) -> None:
    upstream.script(Fault(status=200, body={"data": [{"b64_json": LARGE}]}))
    provider = rig(upstream, "openai", downloads={"max_bytes": 1 << 20})
    refused = await provider.call()
    assert isinstance(refused, Unusable)
    assert isinstance(refused.raw, Blob)
    kept = provider.artifacts.put(refused.raw)
    roomy = rig(upstream, "openai")
    roomy.artifacts.files = provider.artifacts.files
    found = await roomy.provider.reprocess("image.generate", {"prompt": "x"}, kept)
    assert isinstance(found, Succeeded)
    assert upstream.paid_hits == 1


async def test_a_kept_answer_that_is_gone_says_so(rig: Rigs, upstream: Upstream) -> None:
    gone = reference(Blob(b"{}", "application/json"))
    outcome = await rig(upstream, "openai").provider.reprocess("image.generate", {"prompt": "x"}, gone)
    assert isinstance(outcome, Unusable)
    assert "cannot be read" in outcome.text


async def test_a_picture_of_the_payload_is_sent_as_its_bytes(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "seedream")
    data = picture(8, 8, "mine")
    artifact = provider.artifacts.put(Blob(data, "image/png"))
    await provider.result({"prompt": "warmer", "image": artifact}, "image.edit")
    (hit,) = upstream.hits
    assert hit.payload["image"] == f"data:image/png;base64,{base64.b64encode(data).decode()}"


async def test_a_picture_that_is_not_there_sends_nothing(rig: Rigs, upstream: Upstream) -> None:
    missing = reference(Blob(b"gone", "image/png"))
    outcome = await rig(upstream, "seedream").call({"prompt": "warmer", "image": missing}, "image.edit")
    assert "nothing was sent" in getattr(outcome, "text", "")
    assert upstream.hits == []


async def test_a_request_that_is_too_large_is_not_sent(rig: Rigs, upstream: Upstream) -> None:
    outcome = await rig(upstream, "openai", max_request=60).call()
    assert "max_request is 60" in getattr(outcome, "text", "")
    assert upstream.hits == []


def downloader(answer: Callable[[str], list[str]], **settings: Any) -> Downloader:
    async def resolve(host: str, port: int) -> list[str]:
        return answer(host)

    return Downloader(Downloads(**settings), SwiftClock(), proxy=False, resolver=resolve)


async def test_a_name_that_leads_inside_is_refused_before_a_connection(upstream: Upstream) -> None:
    port = upstream.url.rsplit(":", 1)[1]
    for addresses in (["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]):
        fetcher = downloader(lambda _, found=addresses: found)  # type: ignore[misc]  # mypy reads the default as an argument
        with pytest.raises(DownloadError, match="private address") as caught:
            await fetcher.fetch(f"http://files.example:{port}/files/1.png")
        assert caught.value.lasting
        await fetcher.close()
    assert upstream.connections == 0


async def test_the_address_that_was_looked_at_is_the_one_connected_to(upstream: Upstream) -> None:
    port = upstream.url.rsplit(":", 1)[1]
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])  # a second look-up would lead elsewhere
    fetcher = downloader(lambda _: next(answers), allow=("127.0.0.1/32",))
    upstream.files["1.png"] = b"bytes"
    assert await fetcher.fetch(f"http://files.example:{port}/files/1.png") == b"bytes"
    assert upstream.hits[0].headers["host"] == f"files.example:{port}"
    await fetcher.close()


async def test_each_hop_of_a_redirect_is_looked_at(upstream: Upstream) -> None:
    upstream.files["1.png"] = b"bytes"
    upstream.script(Fault(status=302, headers={"Location": "/files/1.png"}), kind="file", containing="0.png")
    upstream.script(Fault(status=302, headers={"Location": "http://inside.example/"}), kind="file", containing="2.png")
    upstream.script(
        Fault(status=302, headers={"Location": "/files/3.png"}), kind="file", containing="3.png", times=None
    )
    hosts = {"127.0.0.1": ["127.0.0.1"], "inside.example": ["10.0.0.1"]}
    fetcher = downloader(hosts.__getitem__, allow=("127.0.0.0/8",))
    assert await fetcher.fetch(f"{upstream.url}/files/0.png") == b"bytes"
    with pytest.raises(DownloadError, match=r"inside\.example is a private address"):
        await fetcher.fetch(f"{upstream.url}/files/2.png")
    with pytest.raises(DownloadError, match="passed on more than 3 times"):
        await fetcher.fetch(f"{upstream.url}/files/3.png")
    await fetcher.close()


async def test_a_host_without_an_address_may_have_one_later() -> None:
    def fail(_: str) -> list[str]:
        raise OSError("no such name")

    fetcher = downloader(fail)
    with pytest.raises(DownloadError, match=r"is not found.*tried 3 times") as caught:
        await fetcher.fetch("https://files.example/1.png")
    assert not caught.value.lasting
    await fetcher.close()


@pytest.mark.parametrize(
    "link", ["file:///etc/passwd", "//files/1.png", "http://", "https://me:pw@files.example/1.png"]
)
async def test_what_is_no_link_is_not_followed(link: str) -> None:
    fetcher = downloader(lambda _: ["93.184.216.34"])
    with pytest.raises(DownloadError, match="is not a link"):
        await fetcher.fetch(link)
    await fetcher.close()


async def test_no_credential_goes_to_the_host_of_a_link(rig: Rigs, upstream: Upstream) -> None:
    provider = rig(upstream, "studio")
    await provider.call()
    (fetched,) = [hit for hit in upstream.hits if hit.kind == "file"]
    assert not {"x-api-key", "authorization", "idempotency-key"} & fetched.headers.keys()
    assert all("x-api-key" in hit.headers for hit in upstream.hits if hit.kind != "file")
