"""A launch of one script without an engine round it: its history, and a guest whose ids are counted."""

from typing import Any

from tallystick.contract.capability import Envelope
from tallystick.contract.checker import check
from tallystick.contract.events import AnyEvent, AttemptStarted, Committed, Record, RunCreated, Stored
from tallystick.contract.history import History
from tallystick.contract.identity import Identity
from tallystick.contract.payload import digest
from tallystick.contract.runtime_rule import Allowance, Stop
from tallystick.engine.launch import Launch
from tallystick.engine.resumes import revision_of
from tallystick.engine.steps import CANCELLED, Dispatch
from tallystick.engine.tree import payload_fault
from tallystick.providers import catalogue
from tallystick.sandbox.frames import Call

SCRIPT = """
async def orchestrate(ctx, args):
    async def shot(number):
        return await ctx.run("image.generate", {"prompt": f"shot {number}"})

    plan = await ctx.run("storyboard.plan", {"brief": "x", "shots": 4})
    return await ctx.parallel([shot(number) for number in range(4)])
"""
SHOT, PLAN = "orchestrate.shot/#1", "orchestrate/#1"
STOP = Stop(CANCELLED, "cancelled", "resume")
IDENTITY = Identity(SHOT, (0,), 0)


class Table:
    """A launch of the script, its history, and the frames of its guest with their ids counted."""

    def __init__(self, *events: AnyEvent, allowance: Allowance | None = None, number: int = 1, **limits: Any) -> None:
        script = check(SCRIPT).script
        assert script is not None
        self.history = History("r")
        self.revision = revision_of(self.history, script, None, 0.0)
        self.fingerprints = {fact.site: fact.fingerprint for fact in script.sites}
        envelope = Envelope(**{"grants": tuple(catalogue.CATALOGUE), **limits})
        for event in (RunCreated(run="r", at=0.0, name="r", envelope=envelope), self.revision, *events):
            self.history.apply(event)
        self.launch = Launch(
            number=number,
            revision=self.revision,
            envelope=envelope,
            allowance=allowance or Allowance(),
            history=self.history,
            specs={name: catalogue.spec(name) for name in catalogue.CATALOGUE},
            validate=payload_fault,
        )
        self.sent = 0

    def call(self, path: tuple[int | str, ...] = (0,), **changes: Any) -> Any:
        self.sent += 1
        fields: dict[str, Any] = {
            "id": self.sent,
            "site": SHOT,
            "path": path,
            "occurrence": 0,
            "capability": "image.generate",
            "payload": {"prompt": "shot"},
        }
        return self.launch.on_frame(Call(nonce="n", **{**fields, **changes}))

    def plan(self, **changes: Any) -> Any:
        told = {"site": PLAN, "capability": "storyboard.plan", "payload": {"brief": "x", "shots": 4}, **changes}
        return self.call((), **told)

    def start(self, number: int, identity: Identity = IDENTITY, payload: Any = None, **changes: Any) -> AttemptStarted:
        """Apply and return the attempt at an identity of the script."""
        facts = {fact.site: fact for fact in self.revision.sites}
        capability = facts[identity.site].capability
        fields: dict[str, Any] = {
            "effect": catalogue.spec(capability).effect,
            "payload": payload or {"prompt": "shot"},
            "launch": 1,
            **changes,
        }
        event = AttemptStarted(
            run="r",
            at=1.0,
            attempt=number,
            revision=0,
            identity=identity,
            capability=capability,
            fingerprint=self.fingerprints[identity.site],
            digest=digest(fields["payload"]),
            effect_key=f"key-{number}",
            reserved=5,
            **fields,
        )
        self.history.apply(event)
        return event

    def commit(self, number: int, identity: Identity = IDENTITY, payload: Any = None, cost: int | None = 7) -> Record:
        """Apply an attempt and its record."""
        record = record_of(self.start(number, identity, payload), cost)
        self.history.apply(Committed(run="r", at=2.0, record=record))
        return record


def record_of(started: AttemptStarted, cost: int | None = 7) -> Record:
    return Record(
        identity=started.identity,
        capability=started.capability,
        fingerprint=started.fingerprint,
        digest=started.digest,
        take=started.take,
        result=Stored(inline={"width": 1}),
        cost=cost,
        revision=0,
        launch=started.launch,
        attempt=started.attempt,
    )


def dispatched(table: Table) -> int:
    step = table.call()
    assert isinstance(step, Dispatch)
    return step.call
