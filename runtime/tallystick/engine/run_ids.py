"""Run ids: short, sortable by age, readable aloud."""

import secrets

from tallystick.contract.errors import UsageError

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_TIME_DIGITS = 9


def new_run_id(now: float) -> str:
    """Return an id of 14 characters: 9 of milliseconds since 1970, 5 of chance."""
    milliseconds = int(now * 1000)
    digits = [_ALPHABET[(milliseconds >> (5 * place)) & 31] for place in reversed(range(_TIME_DIGITS))]
    return "".join(digits) + "".join(secrets.choice(_ALPHABET) for _ in range(5))


def resolve(text: str, known: list[str]) -> str:
    """Return the one run that ``text`` names: its id, the start or the end of it, or ``last``.

    Args:
        text: what the user wrote.
        known: all run ids, newest first.

    Raises:
        UsageError: no run or several match.
    """
    wanted = text.strip().lower()
    if not known:
        raise UsageError("there is no run yet", hint="tally run SCRIPT starts one", code="TS-U002")
    if wanted == "last":
        return known[0]
    if wanted in known:
        return wanted
    matches = [run for run in known if wanted and (run.startswith(wanted) or run.endswith(wanted))]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise UsageError(f"no run is called {text!r}", hint="tally runs lists them", code="TS-U002")
    raise UsageError(f"{text!r} fits {len(matches)} runs: {', '.join(matches[:4])}", hint="write more of it")
