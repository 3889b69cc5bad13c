"""A provider that can answer closes an unresolved attempt by itself; before anything is paid again it is asked."""

from typing import Any

import anyio
import pytest

from broker_support import CAUGHT, PAID, Knowing, states
from engine_stores import RefusingStore
from engine_support import House, passes, still
from engine_witness import witnessed
from tallystick.contract.errors import AttemptUnresolvedError, UsageError
from tallystick.contract.prefix import frozen_sites
from tallystick.kernel import ManualClock
from tallystick.providers.protocol import Absent, Blob, Outcome, Profile, Refused, Succeeded, Unknown, Unusable

LOST = Unknown(reason="the connection broke")
PICTURE = {"images": [Blob(b"\x89PNG found", "image/png")], "width": 64, "height": 48}
DONE = Succeeded(result=PICTURE, cost=20_000)
NONE_SUCH = Absent(text="no such request")


async def lost(engine: House, provider: Knowing) -> str:
    """Run until the call is unresolved, with nobody who knows more; return the run's id."""
    provider.broken["a mug"] = LOST
    report = await engine.run(PAID)
    assert (report.reason, await states(engine, report.run)) == ("TS-A002", ["unresolved"])
    provider.calm()
    return report.run


async def test_it_is_asked_at_once_and_the_launch_goes_on() -> None:
    provider = Knowing()
    provider.broken["a mug"], provider.ends["a mug"] = LOST, DONE
    async with witnessed(provider) as (engine, _):
        report = await engine.run(PAID)
        assert (report.status, report.result, provider.count()) == ("completed", [64, 1], 1)
        assert await states(engine, report.run) == ["committed"]
        assert (report.calls.executed, report.calls.unresolved, report.spend.usd) == (1, 0, 0.02)
        assert provider.asked == [(provider.hits[0].key, None)]


@pytest.mark.parametrize("end", [DONE, Unusable(raw=1, text="no picture in it")], ids=["applied", "unusable"])
async def test_it_is_asked_again_after_each_request(end: Outcome) -> None:
    class Late(Knowing):
        async def lookup(self, *asked: Any) -> Outcome | Absent:
            found = await super().lookup(*asked)
            return found if len(self.asked) > 1 else LOST

    clock, provider = ManualClock(), Late(profile=Profile(dedupes_keys=3_600))
    provider.broken["a mug"], provider.ends["a mug"] = LOST, end
    async with witnessed(provider, clock=clock, policy={"retries": 1, "retry_on": ("unknown",)}) as (engine, _):
        run = await engine.submit(CAUGHT)
        await passes(engine, clock, 2)
        report = await engine.end(run)
        assert (report.status, provider.count(), len(provider.asked)) == ("completed", 2, 2)
        assert await states(engine, run) == ["resent", "committed" if end is DONE else "unusable"]


async def test_a_resume_asks_before_anything_else_and_replays_what_is_found() -> None:
    provider = Knowing()
    async with witnessed(provider) as (engine, _):
        run = await lost(engine, provider)
        provider.ends["a mug"] = DONE
        report = await engine.resume(run)
        assert (report.status, report.calls.replayed, report.calls.executed) == ("completed", 1, 0)
        assert provider.count() == 1
        again = await engine.resume(run)
        assert again.result == report.result


@pytest.mark.parametrize(
    ("end", "state", "kind"),
    [
        (Refused(kind="content_policy", text="not this", cost=3), "failed", "content_policy"),
        (Unusable(raw={"empty": True}, text="no picture in it", cost=9), "unusable", "unusable"),
        (Succeeded(result={"images": []}, cost=9), "unusable", "unusable"),
    ],
)
async def test_whatever_it_says_closes_the_attempt(end: Outcome, state: str, kind: str) -> None:
    provider = Knowing()
    provider.broken["a mug"], provider.ends["a mug"] = LOST, end
    async with witnessed(provider) as (engine, _):
        report = await engine.run(CAUGHT)
        assert (report.status, report.result[0], await states(engine, report.run)) == ("completed", kind, [state])
        assert (report.spend.usd, report.spend.unpriced, report.spend.reserved_usd) == ((end.cost or 0) / 1e6, 0, 0)
        frozen = frozen_sites(await engine.history(report.run))
        assert bool(frozen) == (state == "unusable"), "a failure holds no site"


async def test_that_it_knows_no_such_call_counts_only_after_its_time() -> None:
    clock, provider = ManualClock(), Knowing(profile=Profile(absence_final_after=300))
    async with witnessed(provider, clock=clock) as (engine, _):
        run = await lost(engine, provider)
        provider.ends["a mug"] = NONE_SUCH
        with pytest.raises(AttemptUnresolvedError, match="no such request; that counts from 15:11:40 UTC on"):
            await engine.resume(run)
        assert await states(engine, run) == ["unresolved"]
        await clock.advance(301)
        report = await engine.resume(run)
        assert (report.status, await states(engine, run)) == ("completed", ["failed", "committed"])
        assert (provider.count(), len({hit.key for hit in provider.hits})) == (2, 1)
        assert report.spend.unpriced == 0


async def test_an_absence_alone_settles_nothing_where_the_provider_does_not_vouch_for_it() -> None:
    clock, provider = ManualClock(), Knowing()
    async with witnessed(provider, clock=clock) as (engine, _):
        run = await lost(engine, provider)
        provider.ends["a mug"] = NONE_SUCH
        await clock.advance(1_000_000)
        with pytest.raises(AttemptUnresolvedError, match="that alone settles nothing"):
            await engine.resume(run)
        assert provider.count() == 1


async def test_it_is_asked_before_an_attempt_is_abandoned() -> None:
    provider = Knowing()
    async with witnessed(provider) as (engine, _):
        run = await lost(engine, provider)
        provider.ends["a mug"] = DONE
        with pytest.raises(UsageError, match="attempt 1 is committed; it was not abandoned"):
            await engine.reconcile(run, 1, abandon=True)
        assert (await engine.resume(run)).calls.replayed == 1
        assert provider.count() == 1


async def test_one_that_raises_or_hangs_has_said_nothing() -> None:
    clock = ManualClock()

    class Silent(Knowing):
        async def lookup(self, *asked: Any) -> Any:
            if len(self.asked) == 1:
                raise RuntimeError("out of order")
            await super().lookup(*asked)
            await anyio.sleep_forever()

    provider = Silent()
    provider.broken["a mug"] = LOST
    async with witnessed(provider, clock=clock, policy={"timeout": 90.0}) as (engine, _):
        run = await engine.submit(PAID)
        await still(engine, clock)
        await clock.advance(91)
        assert (await engine.end(run)).reason == "TS-A002"
        with pytest.raises(AttemptUnresolvedError, match="RuntimeError: out of order"):
            await engine.resume(run)


async def test_a_cancelled_launch_does_not_wait_for_an_answer() -> None:
    class Slow(Knowing):
        async def lookup(self, *asked: Any) -> Any:
            await super().lookup(*asked)
            await anyio.sleep_forever()

    provider, clock = Slow(), ManualClock()
    provider.broken["a mug"] = LOST
    async with witnessed(provider, clock=clock) as (engine, _):
        run = await engine.submit(PAID)
        await still(engine, clock)
        assert len(provider.asked) == 1
        await engine.host.service.cancel(run, "tester")
        assert ((await engine.end(run)).status, await states(engine, run)) == ("cancelled", ["unresolved"])


async def crashed(provider: Knowing) -> str:
    """Run until the call is in flight, then let the engine die; return the run's id."""
    store = RefusingStore(provider.disk)
    async with witnessed(provider, store=store) as (engine, _):
        gate = provider.hold()
        run = await engine.submit(PAID)
        await gate.reached()
        store.die()
        gate.release()
    return run


async def test_what_was_in_flight_at_a_crash_is_asked_after_at_the_start() -> None:
    provider = Knowing()
    provider.tells["a mug"] = [("submitted", ("job-7",))]
    run = await crashed(provider)
    provider.ends["a mug"] = DONE
    async with witnessed(provider) as (engine, _):
        while not (report := await engine.end(run)).result:
            await anyio.lowlevel.checkpoint()
        assert (report.status, report.result, provider.count()) == ("completed", [64, 1], 1)
        assert provider.asked == [(provider.hits[0].key, "job-7")]
        (attempt,) = await engine.attempts(run)
        assert (attempt.job, attempt.state) == ("job-7", "committed")


async def test_a_run_whose_provider_cannot_say_stays_and_can_be_settled_by_hand() -> None:
    provider, clock = Knowing(), ManualClock()
    run = await crashed(provider)
    async with witnessed(provider, clock=clock) as (engine, _):
        await still(engine, clock)
        assert (await engine.end(run)).status == "interrupted"
        assert provider.asked != []
        await engine.reconcile(run, 1, abandon=True)
        assert (await engine.resume(run)).status == "completed"
    assert provider.disk.rows[run].live is False


async def test_an_answer_that_was_kept_at_a_crash_is_read_again_without_a_new_call() -> None:
    provider, answer = Knowing(), {"links": ["https://files.example/1"]}
    provider.tells["a mug"] = [("submitted", ("job-7",)), ("answered", (answer, 20_000))]
    run = await crashed(provider)
    provider.readings["a mug"] = Succeeded(result=PICTURE)
    async with witnessed(provider, daemon={"auto_resume": False}) as (engine, _):
        (attempt,) = await engine.attempts(run)
        assert (attempt.state, attempt.cost_usd, attempt.job) == ("unresolved", 0.02, "job-7")
        report = await engine.resume(run)
        assert (report.status, report.result, provider.count()) == ("completed", [64, 1], 1)
        assert (report.spend.usd, report.spend.unpriced) == (0.02, 0)
        assert provider.read == [answer]
        assert [record.cost for record in (await engine.history(run)).records.values()] == [20_000]


async def test_an_answer_that_could_not_be_completed_is_kept() -> None:
    provider, answer = Knowing(), {"links": ["https://files.example/1"]}
    async with witnessed(provider) as (engine, _):
        provider.broken["a mug"] = Unknown(reason="the link is slow", raw=answer, cost=20_000)
        run = (await engine.run(PAID)).run
        kept = (await engine.history(run)).attempts[1].raw
        assert kept is not None
        assert kept.inline == answer
        provider.readings["a mug"] = DONE
        assert (await engine.resume(run)).status == "completed"
        assert provider.count() == 1


async def test_what_another_provider_was_asked_is_not_asked_of_this_one() -> None:
    provider = Knowing()
    async with witnessed(provider) as (engine, _):
        run = await lost(engine, provider)
    asked = len(provider.asked)
    other = Knowing(disk=provider.disk, profile=Profile(dedupes_keys=3_600, absence_final_after=0))
    other.name, other.ends["a mug"] = "another", NONE_SUCH
    async with witnessed(other) as (engine, _):
        with pytest.raises(AttemptUnresolvedError):
            await engine.resume(run)
        assert (other.asked, other.count(), len(provider.asked)) == ([], 0, asked)
