"""A scripted provider for a daemon in a process of its own, whose every answer the test's process gives.

Each call is reported, one JSON line, over a connection of its own to the socket of the setting ``desk``, and answered
when a line comes back: ``daemon_support.Desk`` is the other end. So a test knows which calls are out, and decides.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec

import scripted_provider
from scripted_provider import Gate, Hit, ScriptedProvider
from tallystick.providers.protocol import Artifacts


class DeskGate(Gate):
    """Holds each call until the desk answers it, and for ever when the desk is gone."""

    def __init__(self, desk: str) -> None:
        super().__init__(None, "")
        self._desk = desk

    async def pass_through(self, hit: Hit) -> None:
        async with await anyio.connect_unix(self._desk) as stream:
            await stream.send(msgspec.json.encode(hit) + b"\n")
            try:
                await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                await anyio.sleep_forever()


def create(settings: Mapping[str, Any], artifacts: Artifacts) -> ScriptedProvider:
    """Make one; settings: ``desk`` (left out: calls are answered at once) and those of ``scripted_provider``."""
    provider = scripted_provider.create(settings, artifacts)
    if "desk" in settings:
        provider._gates.append(DeskGate(settings["desk"]))
    return provider


def install(folder: Path) -> None:
    """Declare the entry point ``desk`` in ``folder``, for a process with it and ``tests`` on its PYTHONPATH."""
    info = folder / "desk_provider-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: desk-provider\nVersion: 1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[tallystick.providers]\ndesk = desk_provider:create\n", encoding="utf-8")
