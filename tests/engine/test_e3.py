"""The paper's experiment E3: one script submitted three times, and what its handler was really asked for."""

from collections.abc import Awaitable, Callable

import pytest

from engine_support import House
from engine_witness import assert_standing, witnessed
from tallystick.bench.paper.cases import V1, V2, V3
from tallystick.contract.errors import GateStoppedError
from tallystick.sandbox.protocol import Limits, Sandbox


def counted(engine: House, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each guest that is started."""
    driver = engine.host.engine.pool.driver
    started: list[str] = []
    opens: Callable[[Limits, str], Awaitable[Sandbox]] = driver.open

    def noted(limits: Limits, nonce: str) -> Awaitable[Sandbox]:
        started.append(nonce)
        return opens(limits, nonce)

    monkeypatch.setattr(driver, "open", noted)
    return started


async def test_three_submissions_cost_three_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    async with witnessed() as (engine, witness):
        guests = counted(engine, monkeypatch)

        def handled() -> list[int]:
            return [int(hit.payload["prompt"]) for hit in witness.hits]

        v1 = await engine.run(V1)
        checks = {
            "v1 executes two calls": (v1.calls.executed, handled()) == (2, [1, 2]),
            "v1 fails by its own error": (v1.status, v1.reason) == ("failed", "TS-R001"),
        }
        v2 = await engine.resume(v1.run, V2)
        checks |= {
            "v2 replays both": (v2.status, v2.calls.replayed) == ("completed", 2),
            "v2 executes the third only": (v2.calls.executed, handled()) == (1, [1, 2, 3]),
        }
        guests.clear()
        with pytest.raises(GateStoppedError) as stopped:
            await engine.resume(v1.run, V3)
        checks |= {
            "v3 is stopped by the gate": [each.kind for each in stopped.value.details] == ["call_changed"],
            "no guest was started for v3": guests == [],
            "the handler log stays at three": handled() == [1, 2, 3],
            "the certificate has no differences": (
                await engine.host.inquiry.certificate(v1.run, check=True)
            ).differences
            == (),
        }
        assert len(checks) == 8
        assert [name for name, holds in checks.items() if not holds] == []
        await assert_standing(engine, v1.run)


async def test_a_run_of_its_own_pays_for_all_three() -> None:
    """The control: what saves the calls is the journal, not the handler."""
    async with witnessed() as (engine, witness):
        assert (await engine.run(V2)).status == "completed"
        assert [hit.payload["prompt"] for hit in witness.hits] == ["1", "2", "3"]
