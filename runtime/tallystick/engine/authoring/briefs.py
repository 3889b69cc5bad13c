"""From a run to what a model is told of it: the task, the frozen calls with what they read, what it is judged by."""

from collections import Counter
from collections.abc import Callable, Mapping

import msgspec

from tallystick.contract.authoring.acceptance import call_expressions
from tallystick.contract.authoring.prompt import (
    MOST_READS,
    ROLE,
    FrozenCall,
    RepairTask,
)
from tallystick.contract.authoring.reads import reads_of
from tallystick.contract.authoring.untrusted import harmless
from tallystick.contract.capability import CapabilitySpec, Envelope
from tallystick.contract.events import AnyEvent
from tallystick.contract.history import History
from tallystick.contract.prefix import frozen_sites
from tallystick.contract.script import Script, read_script
from tallystick.engine.authoring.asking import Order
from tallystick.engine.authoring.messages import RepairRequest
from tallystick.engine.authoring.models import Model
from tallystick.engine.authoring.skill import skill
from tallystick.engine.limits import budget_micros

#: Failed calls of the last launch that a prompt shows, and characters of the payload of each.
MOST_FAILED = 4
PAYLOAD_LIMIT = 300
_NEVER = "The script was never launched."


def envelope_of(history: History) -> Envelope:
    """Return the limits of a run: those of its latest launch, or those that it was made with."""
    if history.launch is not None:
        return history.launch.envelope
    return history.created.envelope if history.created is not None else Envelope()


def failure_of(history: History) -> str:
    """Say what a run stopped with, in the host's words, in which a provider's stand."""
    ended = history.launch.ended if history.launch is not None else None
    if ended is None:
        return _NEVER
    if ended.error is None:
        return f"The run {ended.status}; what is to be changed is what the person asks for."
    number = len(history.launches)
    failed = [
        attempt
        for attempt in history.latest_attempt.values()
        if attempt.started.launch == number and attempt.state in ("failed", "unusable") and not attempt.survived
    ]
    shown = [
        f"failed call: {one.started.identity} {one.started.capability} "
        f"{harmless(msgspec.json.encode(one.started.payload).decode(), PAYLOAD_LIMIT)}: {one.kind}"
        for one in failed[:MOST_FAILED]
    ]
    return "\n".join([f"{ended.error.code}: {ended.error.message}", *shown])


def frozen_calls(history: History, script: Script) -> tuple[FrozenCall, ...]:
    """List the frozen sites that a rewrite has to keep, in the order of their lines."""
    facts = {fact.site: fact for fact in script.sites}
    committed = Counter(identity.site for identity in history.records)
    kept = [site for site in frozen_sites(history).values() if site.held or site.site not in history.retired]
    calls = []
    for number, site in enumerate(sorted(kept, key=lambda one: (one.span, one.site))):
        fact = facts.get(site.site)
        reads = reads_of(script, fact) if fact is not None and number < MOST_READS else ()
        calls.append(FrozenCall(site, committed[site.site], reads))
    return tuple(calls)


def repair_brief(
    history: History, model: Model, specs: Mapping[str, CapabilitySpec], request: RepairRequest
) -> tuple[RepairTask, Order]:
    """Return what a model is told of a run that stopped, and by what its answer is judged."""
    base, envelope = history.revision, envelope_of(history)
    if request.budget_usd is not None:
        envelope = msgspec.structs.replace(envelope, budget=budget_micros(request.budget_usd))
    task = RepairTask(
        script=base.source,
        failure=failure_of(history),
        frozen=frozen_calls(history, read_script(base.source)),
        envelope=envelope,
        args=base.args,
        wish=request.wish,
        arm=request.arm,
    )
    order = Order(
        model=model,
        system=f"{ROLE}\n\n{skill(specs, repairing=request.arm != 'error')}",
        revision=base.revision,
        budget=envelope,
        rules=None,
        frozen=frozen_sites(history),
        retired=frozenset(history.retired),
        calls_before=call_expressions(base.sites, history.retired),
    )
    return task, order


def author_order(
    history: History,
    model: Model,
    specs: Mapping[str, CapabilitySpec],
    accepted: Callable[[Script], list[AnyEvent]],
) -> Order:
    """Return by what a new script is judged: by all rules, those of the envelope as well."""
    envelope = envelope_of(history)
    return Order(
        model=model,
        system=f"{ROLE}\n\n{skill(specs, repairing=False)}",
        revision=None,
        budget=envelope,
        rules=envelope,
        frozen={},
        accepted=accepted,
    )
