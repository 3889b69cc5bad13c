"""The command that goes on from where a run stopped."""

import re

from tallystick.engine.messages import RunReport

#: What lifts a policy's denial; where the denial's hint names a value for the option, that value is shown.
_LIFTED = {
    "TS-P001": "--grant NAME,...",
    "TS-P002": "--budget DOLLARS",
    "TS-P003": "--max-calls N",
    "TS-P005": "--script REPAIRED.py | --allow-repeat IDENTITY",
    "TS-P007": "--wall-clock TIME",
    "TS-P009": "--script REPAIRED.py",
    "TS-P013": "--budget-tokens N",
}
_APPROVAL = "TS-P004"
_VALUE = re.compile(r"(--grant|--budget-tokens|--budget) (\w[\w.]*(?:,\w[\w.]*)*)")
_UNPAID = "(committed calls replay, unpaid)"


def next_step(report: RunReport) -> str:
    """Return what to do after a run has stopped, a command a line; unresolved attempts come first, all of them."""
    if not report.unresolved:
        return _resume(report)
    numbers = [str(attempt.attempt) for attempt in report.unresolved]
    if len(numbers) == 1:
        lines = [f"tally reconcile {report.run} {numbers[0]} --result FILE | --abandon --why '...'"]
    else:
        lines = [
            f"tally reconcile {report.run} N --result FILE | --abandon --why '...', for each N of {', '.join(numbers)}",
            f"or tally reconcile {report.run} --all --abandon --why '...'",
        ]
    return "\n".join([*lines, f"then {_resume(report)}"])


def _resume(report: RunReport) -> str:
    command, reason = f"tally resume {report.run}", report.reason or ""
    if report.status == "draft":
        return f"{command} (nothing has run yet)"
    if reason == _APPROVAL:
        undecided = [call for call in report.waiting if call.decision is None]
        which = f" '{undecided[0].identity}'" if len(undecided) == 1 else ""
        return f"tally approve {report.run}{which} {_UNPAID}" if undecided else f"{command} {_UNPAID}"
    if reason.startswith("TS-P"):
        option = _LIFTED.get(reason, "")
        named = _VALUE.search(report.error.hint) if report.error is not None else None
        if named is not None and option.startswith(named[1]):
            option = named[0]
        return f"{command} {option} {_UNPAID}" if option else f"{command} {_UNPAID}"
    if report.status in ("failed", "stopped") and not reason.startswith(("TS-A", "TS-N", "TS-S")):
        return f"{command} --script REPAIRED.py {_UNPAID}"
    return command
