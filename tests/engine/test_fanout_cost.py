"""A fanout with one failing branch costs N + 1 calls, whichever branch it is and whenever it fails."""

import pytest

from engine_witness import Witness, assert_standing, witnessed
from scripted_provider import Gate, Hit
from tallystick.bench.paper.cases import WIDE
from tallystick.providers.protocol import Refused

TIMES = 20
REFUSAL = Refused(kind="invalid_request", text="no")


def script(width: int) -> str:
    return WIDE.replace("WIDTH", str(width))


def artifact_of(witness: Witness, number: int) -> str:
    """The bytes of a stand-in picture hold the prompt that it was made for."""
    holders = [sha for sha, data in witness.disk.files.items() if f"shot <{number}>".encode() in data]
    (sha,) = holders
    return f"sha256:{sha}"


class Others(Gate):
    """Holds every call but those of one branch."""

    def matches(self, hit: Hit) -> bool:
        return self._containing not in hit.text


@pytest.mark.parametrize("width", [4, 8, 16, 32])
@pytest.mark.parametrize("when", ["first", "last", "whenever"])
async def test_one_failing_branch_costs_one_call_more(width: int, when: str) -> None:
    for seed in range(TIMES):
        failing = (seed * 7) % width
        concurrency = width if when != "whenever" else 1 + seed % width
        witness = Witness(shuffle=seed)
        async with witnessed(witness) as (engine, _):
            witness.broken[f"<{failing}>"] = REFUSAL
            gate = Others(None, f"<{failing}>") if when == "first" else Gate(None, f"<{failing}>")
            if when != "whenever":
                witness._gates.append(gate)
            run = await engine.submit(script(width), limits={"concurrency": concurrency})
            if when != "whenever":
                others = width - 1
                await gate.reached(others if when == "first" else 1)
                await witness.has_answered(1 if when == "first" else others)
                gate.release()
            failed = await engine.end(run)
            assert (failed.status, failed.calls.executed, failed.calls.failed) == ("failed", width - 1, 1)
            assert witness.count() == width

            witness.calm()
            witness.reshuffle(seed + 1)
            resumed = await engine.resume(run)
            assert (resumed.calls.replayed, resumed.calls.executed) == (width - 1, 1)
            assert witness.count() == width + 1
            assert resumed.result == [artifact_of(witness, number) for number in range(width)]
            await assert_standing(engine, run)
