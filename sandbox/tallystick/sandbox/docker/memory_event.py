"""Whether a container ran out of memory, where the engine's description of its end does not say so yet."""

import signal
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from aiodocker.events import DockerEvents

from tallystick.sandbox.docker.client import Engine

#: Seconds, by the engine's clock, within which the news of a memory event follows the end that it caused.
EVENT_SECONDS = 0.5

_KILLED = 128 + signal.SIGKILL


async def ran_out_of_memory(engine: Engine, container: str, state: Mapping[str, Any]) -> bool:
    """Ask the engine for a memory event of a container that has ended.

    The kernel's kill and the news of what it was for go different ways, and the news may come last. So an unexplained
    kill is asked about until the engine's own clock says that nothing more will come.

    Args:
        engine: the container's.
        container: its id.
        state: its state after its end, as the engine describes it.

    Raises:
        EngineError: the engine does not answer.
    """
    if state["OOMKilled"] or state["ExitCode"] != _KILLED:
        return bool(state["OOMKilled"])
    started, finished = (datetime.fromisoformat(state[name]).timestamp() for name in ("StartedAt", "FinishedAt"))
    async with engine.asked("list a guest's events") as docker:
        events = DockerEvents(docker)  # type: ignore[no-untyped-call]  # the client has no types here
        news = events.channel.subscribe()
        filters = {"container": [container], "event": ["oom"]}
        await events.run(since=f"{started:.6f}", until=f"{finished + EVENT_SECONDS:.6f}", filters=filters)
        return await news.get() is not None  # type: ignore[no-untyped-call]  # as above
