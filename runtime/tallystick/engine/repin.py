"""Whether a run goes on in the sandbox that it had before; pure functions."""

from tallystick.contract.events import SandboxChanged
from tallystick.contract.history import History
from tallystick.contract.runtime_rule import Stop
from tallystick.engine.steps import REPINNED


def change(history: History, driver: str, image: str, at: float) -> SandboxChanged | None:
    """Return what is to be journalled of the guest that the latest launch got, None when nothing has changed."""
    launch = history.launch
    before = history.sandbox
    if launch is None or before is None or before == (driver, image):
        return None
    return SandboxChanged(
        run=history.run, at=at, launch=launch.started.launch, driver=driver, image=image, before=before
    )


def note(changed: SandboxChanged) -> str:
    """Say what a change means for people; "" where only the first image of the run became known."""
    driver, image = changed.before
    if driver == changed.driver and not image:
        return ""
    return (
        f"launch {changed.launch} runs in another sandbox than the run did before: "
        f"{_pin(changed.driver, changed.image)}, not {_pin(driver, image)}"
    )


def refusal(text: str) -> Stop:
    """Return the stop of a launch that may not go on in another sandbox."""
    return Stop(
        REPINNED,
        f"{text}; sandbox.repin is refuse, so the script was not sent and nothing was dispatched",
        "pin the sandbox of before (sandbox.driver, sandbox.image), or allow the change with sandbox.repin = "
        '"note"; then tally resume',
    )


def _pin(driver: str, image: str) -> str:
    return f"{driver} {image}".rstrip()
