"""Another budget for a run that exists, live or not."""

from tallystick.contract.errors import UsageError
from tallystick.contract.events import BudgetChanged
from tallystick.contract.history import History
from tallystick.engine.limits import budget_micros
from tallystick.engine.messages import BudgetRequest, RunReport
from tallystick.engine.service import Service
from tallystick.kernel import Clock


class Budgets:
    """Sets budgets, each with who did it."""

    def __init__(self, service: Service, clock: Clock) -> None:
        self._service = service
        self._clock = clock

    async def change(self, run: str, request: BudgetRequest) -> RunReport:
        """Have another budget hold, from the next dispatch on, and for every later launch.

        What is in flight goes on; a call that does not fit any more is refused before its attempt.

        Raises:
            UsageError: no budget, or the run was never launched.
            PolicyDeniedError: the run is not live, and another operation has it.
            StoreError: it could not be journalled; the budget is as it was.
        """
        micros = budget_micros(request.budget_usd)
        service = self._service
        live = service.launches.live.get(run)
        if live is not None:
            await self._journal(live.history, micros, request.who)
            live.set_budget(micros)
        else:
            with service.launches.claim(run, "change of its budget"):
                await self._journal(await service.library.history(run), micros, request.who)
        return await service.report(run)

    async def _journal(self, history: History, micros: int, who: str) -> None:
        launch = history.launch
        if launch is None:
            raise UsageError(
                f"run {history.run} has never been launched", hint="give the budget when you launch it: --budget"
            )
        number = launch.started.launch
        changed = BudgetChanged(run=history.run, at=self._clock.now(), launch=number, budget=micros, who=who)
        await self._service.journal.append([changed])
