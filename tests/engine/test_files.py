"""Files that people bring in, and references in payloads: refused where nobody has the file, before an attempt."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from engine_support import House
from engine_witness import Witness, assert_standing, witnessed
from tallystick.contract.errors import UsageError
from tallystick.engine.files import MIN_AGE
from tallystick.engine.money_messages import SweepRequest
from tallystick.store.lmdb_store import LmdbStore

PNG = b"\x89PNG\r\n\x1a\n" + bytes(32)
REVIEW = """
async def orchestrate(ctx, args):
    await ctx.run("review.visual", {"image": args["picture"], "criteria": "sharp"})
"""
CAUGHT = """
async def orchestrate(ctx, args):
    try:
        await ctx.run("image.edit", {"image": args["picture"], "prompt": "warmer"})
    except CapabilityError as error:
        return error.kind
"""
NOWHERE = {"$artifact": "sha256:" + "ab" * 32, "media_type": "image/png", "bytes": 7}


async def test_a_file_that_was_brought_in_can_be_passed_to_a_call() -> None:
    async with witnessed() as (engine, witness):
        added = await engine.host.files.add(PNG, None)
        assert (added.media_type, added.bytes) == ("image/png", len(PNG))
        again = await engine.host.files.add(PNG, None)
        assert again == added
        picture = {"$artifact": added.sha256, "media_type": added.media_type, "bytes": added.bytes}
        report = await engine.run(REVIEW, {"picture": picture})
        assert report.status == "completed"
        assert witness.hits[0].payload["image"] == picture
        await assert_standing(engine, report.run)


async def test_a_reference_to_a_file_that_nobody_has_is_refused_before_an_attempt() -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(REVIEW, {"picture": NOWHERE})
        assert (report.status, report.reason, witness.count()) == ("failed", "TS-R002", 0)
        assert report.error is not None
        assert "the store has no such file" in report.error.message
        assert await engine.attempts(report.run) == []
        await assert_standing(engine, report.run)


async def test_a_script_may_catch_that_a_file_is_missing() -> None:
    async with witnessed() as (engine, witness):
        report = await engine.run(CAUGHT, {"picture": NOWHERE})
        assert (report.status, report.result, witness.count()) == ("completed", "invalid_request", 0)


@pytest.mark.parametrize(("data", "said"), [(b"", "empty"), (b"plain words", "what the file is")])
async def test_what_nobody_can_use_is_not_kept(data: bytes, said: str) -> None:
    async with witnessed() as (engine, _):
        with pytest.raises(UsageError, match=said):
            await engine.host.files.add(data, None)


async def test_a_type_that_is_named_counts() -> None:
    async with witnessed() as (engine, _):
        assert (await engine.host.files.add(b"II*\0", "image/tiff")).media_type == "image/tiff"


async def test_a_sweep_never_hurries() -> None:
    async with witnessed() as (engine, _):
        for seconds in (0.0, MIN_AGE - 1, float("nan")):
            with pytest.raises(UsageError, match="on its way"):
                await engine.host.files.sweep(SweepRequest(older_than=seconds))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[LmdbStore]:
    store = LmdbStore(tmp_path / "store")
    yield store
    store.close()


@asynccontextmanager
async def on_disk(disk: LmdbStore) -> AsyncIterator[House]:
    async with witnessed(Witness(), store=disk) as (engine, _):
        yield engine


def age_all(tmp_path: Path) -> None:
    import os

    for path in (tmp_path / "store" / "artifacts").rglob("*"):
        if path.is_file():
            os.utime(path, (1.0, 1.0))


async def test_a_sweep_leaves_all_that_a_run_has_named(tmp_path: Path, disk: LmdbStore) -> None:
    source = """
async def orchestrate(ctx, args):
    made = await ctx.run("image.generate", {"prompt": "a lamp"})
    await ctx.run("review.visual", {"image": made["images"][0], "criteria": "sharp"})
    await ctx.run("review.visual", {"image": args["picture"], "criteria": "sharp"})
    return made["images"]
"""
    async with on_disk(disk) as engine:
        added = await engine.host.files.add(PNG, None)
        loose = await engine.host.files.add(PNG + b"never used", None)
        picture = {"$artifact": added.sha256, "media_type": added.media_type, "bytes": added.bytes}
        report = await engine.run(source, {"picture": picture})
        assert report.status == "completed"
        age_all(tmp_path)
        counted = await engine.host.files.sweep(SweepRequest(dry_run=True))
        swept = await engine.host.files.sweep(SweepRequest())
        assert (counted.removed, swept.removed, swept.bytes) == (1, 1, loose.bytes)
        assert not disk.has_file(loose.sha256.removeprefix("sha256:"))
        again = await engine.resume(report.run)
        assert (again.status, again.calls.replayed, again.result) == ("completed", 3, report.result)
        assert disk.get_file(added.sha256.removeprefix("sha256:")) == PNG
