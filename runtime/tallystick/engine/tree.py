"""The tree of actors, as data (architecture.md, section 3).

    daemon (rest_for_one)
    ├── journal       the writer thread of the store
    ├── gate          checks and compares scripts
    ├── broker        one actor per capability
    ├── pool          warm sandboxes
    ├── runs          one actor per live run
    └── repairs       what models write and rewrite

Whatever stands below a part that crashed is restarted with it: a run never outlives the journal that it writes to.
"""

from collections.abc import Callable, Mapping

from tallystick.contract.capability import CapabilitySpec, Envelope
from tallystick.contract.events import RevisionAdded
from tallystick.contract.history import History
from tallystick.contract.runtime_rule import Allowance, Stop
from tallystick.engine.announcer import Announcer
from tallystick.engine.attempting import DispatchCall
from tallystick.engine.authoring.actor import RepairActor, Work
from tallystick.engine.capability_actor import CapabilityActor
from tallystick.engine.config import CapabilityPolicy, Config, SandboxSettings
from tallystick.engine.files import missing_file
from tallystick.engine.gate_actor import GateActor
from tallystick.engine.inquirer import Inquirer
from tallystick.engine.journal import Journal, JournalActor
from tallystick.engine.launch import Launch
from tallystick.engine.live_run import LiveRun
from tallystick.engine.provider_bench import ProviderBench
from tallystick.engine.purse import Purse
from tallystick.engine.results import ResultKeeper
from tallystick.engine.run_actor import CancelRun, RunActor
from tallystick.engine.sandbox_pool import GuestPool, PoolActor, Refill
from tallystick.kernel import ActorGoneError, ChildSpec, Clock, Ref, StartChild, SupervisorSpec
from tallystick.providers import catalogue
from tallystick.providers.protocol import Provider
from tallystick.sandbox.protocol import Driver, Limits

#: Calls that may wait in front of one capability: more than all windows of all live launches.
CALLS_WAITING = 65_536


class Engine:
    """The parts of a daemon and the specification of their tree."""

    def __init__(
        self,
        config: Config,
        journal: Journal,
        driver: Driver,
        providers: Mapping[str, Provider],
        clock: Clock,
        *,
        news: Announcer,
    ) -> None:
        self.journal = journal
        self.keeper = ResultKeeper(journal)
        self.purse = Purse(config.budget.cap, clock)
        journal.listen(self.purse.apply)
        self.bench = ProviderBench(config.providers, journal.store, providers)
        self.specs = config.specs()
        self.policies = config.policies()
        self.inquirer = Inquirer(
            bench=self.bench, policies=self.policies, journal=journal, keeper=self.keeper, clock=clock
        )
        self.pool = GuestPool(
            driver,
            _guest_limits(config.sandbox),
            clock,
            max_live=config.daemon.max_live,
            warm=config.daemon.warm,
            max_age=config.sandbox.max_age,
            news=news,
        )
        self._on_change = config.sandbox.repin
        known = {name: catalogue.spec(name) for name in catalogue.CATALOGUE}
        self._journal = ChildSpec(id="journal", factory=lambda: JournalActor(journal), shutdown=None)
        self.gate = ChildSpec(id="gate", factory=lambda: GateActor(known | self.specs))
        self._capabilities = [self._capability(spec, self.policies[name]) for name, spec in self.specs.items()]
        self.calls: Mapping[str, Ref[DispatchCall]] = {spec.id: spec.ref for spec in self._capabilities}
        self._pool = ChildSpec(id="pool", factory=lambda: PoolActor(self.pool))
        self._runs = SupervisorSpec(id="runs")
        self.repairs: ChildSpec[Work] = ChildSpec(id="repairs", mailbox=256, factory=RepairActor)
        self.pool.refill = self._refill
        self.spec = SupervisorSpec(
            id="daemon",
            strategy="rest_for_one",
            children=(
                self._journal,
                self.gate,
                SupervisorSpec(id="broker", children=tuple(self._capabilities)),
                self._pool,
                self._runs,
                self.repairs,
            ),
        )
        self._live: dict[str, Ref[CancelRun]] = {}

    @property
    def driver_name(self) -> str:
        """The name of the sandbox driver."""
        return self.pool.driver.name

    @property
    def image(self) -> str:
        """The id of the image that the driver has pinned, "" where there is none."""
        return self.pool.driver.image

    def launch(
        self, history: History, envelope: Envelope, number: int, revision: RevisionAdded, allowance: Allowance
    ) -> Launch:
        """Build a launch's state machine."""
        return Launch(
            number=number,
            revision=revision,
            envelope=envelope,
            allowance=allowance,
            history=history,
            specs=self.specs,
            validate=self._payload_fault,
        )

    async def start(self, live: LiveRun, launch: Launch, annotated: str, ended: Callable[[], None]) -> None:
        """Start the actor of a run."""
        run = live.run

        def gone() -> None:
            self._live.pop(run, None)
            ended()

        spec: ChildSpec[CancelRun] = ChildSpec(
            id=f"{run}.{launch.number}",
            restart="temporary",
            mailbox=16,
            factory=lambda: RunActor(
                live=live,
                launch=launch,
                annotated=annotated,
                capabilities=self.calls,
                pool=self.pool,
                on_change=self._on_change,
                journal=self.journal,
                keeper=self.keeper,
                ended=gone,
            ),
        )
        self._live[run] = spec.ref
        await self._runs.ref.ask(StartChild(spec))

    def cancel(self, run: str, stop: Stop) -> None:
        """Tell the actor of a live run to stop; nothing happens when it has just ended."""
        ref = self._live.get(run)
        if ref is not None:
            try:
                ref.tell(CancelRun(stop))
            except ActorGoneError:
                self._live.pop(run, None)

    def _capability(self, spec: CapabilitySpec, policy: CapabilityPolicy) -> ChildSpec[DispatchCall]:
        return ChildSpec(
            id=spec.name,
            mailbox=CALLS_WAITING,
            factory=lambda: CapabilityActor(
                spec=spec,
                policy=policy,
                bench=self.bench,
                journal=self.journal,
                keeper=self.keeper,
                inquirer=self.inquirer,
                purse=self.purse,
            ),
        )

    def _payload_fault(self, capability: str, payload: object) -> str | None:
        return payload_fault(capability, payload) or missing_file(payload, self.journal.store)

    def _refill(self) -> None:
        try:
            self._pool.ref.tell(Refill())
        except ActorGoneError:
            return


def _guest_limits(settings: SandboxSettings) -> Limits:
    return Limits(memory=settings.memory_mb << 20, cpu_seconds=settings.cpu_seconds, output=settings.output_mb << 20)


def payload_fault(capability: str, payload: object) -> str | None:
    """Return what the catalogue says against a payload, or None."""
    try:
        catalogue.validate_payload(capability, payload)
    except catalogue.PayloadRefusedError as error:
        return str(error)
    return None
