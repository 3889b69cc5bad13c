"""A real LiteLLM proxy for tests: one process for the whole session, in front of an upstream that each test starts anew.

Nothing is polled: the proxy inherits a socket that already listens, so that the first question waits for its start.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from http_support import LOOPBACK
from upstream_apis import TEXT_IN, TEXT_OUT
from upstream_server import Upstream, running

KEY_NAME = "TALLYSTICK_TEST_PROXY_KEY"
#: What the tests plant and then look for where it must not be: the key of the proxy, and that of the upstream.
PROXY_SECRET, UPSTREAM_SECRET = "sk-planted-proxy-7d20c1", "sk-planted-upstream-b3e94f"
#: Seconds after which a proxy that does not start is a failure of the tests.
PATIENCE = 55.0


class LitellmProxy(msgspec.Struct, frozen=True):
    """The proxy's address, and the socket on which it expects its upstream."""

    url: str
    port: socket.socket

    @asynccontextmanager
    async def upstream(self) -> AsyncIterator[Upstream]:
        """Serve as the upstream of the proxy until the block ends."""
        async with running(self.port.dup()) as server:
            yield server

    def settings(self, model: str = "pictures", **changes: Any) -> dict[str, Any]:
        """Return settings of the ``litellm`` provider for a model of the proxy."""
        own = {"model": f"litellm_proxy/{model}", "base_url": self.url, "key": {"env": KEY_NAME}}
        return {**own, "downloads": LOOPBACK, "proxy": False, **changes}


@pytest.fixture(scope="session")
def litellm_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LitellmProxy]:
    """Start the proxy, once."""
    folder = tmp_path_factory.mktemp("litellm")
    with socket.create_server(("127.0.0.1", 0)) as upstream:
        with socket.create_server(("127.0.0.1", 0)) as own:
            url, behind = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in (own, upstream))
            process = _start(folder, own, f"{behind}/v1")
        try:
            _wait(url, process, folder)
            os.environ[KEY_NAME] = PROXY_SECRET
            yield LitellmProxy(url, upstream)
        finally:
            os.environ.pop(KEY_NAME, None)
            process.kill()
            process.wait()


def _start(folder: Path, listening: socket.socket, upstream: str) -> "subprocess.Popen[bytes]":
    config = folder / "config.yaml"  # which JSON is, too
    config.write_text(json.dumps(_config(upstream)))
    environment = {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "CONFIG_FILE_PATH": str(config),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_MODE": "PRODUCTION",
    }
    command = [sys.executable, "-m", "uvicorn", "litellm.proxy.proxy_server:app", "--fd", str(listening.fileno())]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            [*command, "--loop", "asyncio", "--ws", "none", "--log-level", "warning"],
            env=environment,
            cwd=folder,
            pass_fds=[listening.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def _config(upstream: str) -> dict[str, Any]:
    """Return the proxy's configuration: models that send once, and one that sends again."""
    once = {"api_base": upstream, "api_key": UPSTREAM_SECRET, "max_retries": 0}
    prices = {"input_cost_per_token": TEXT_IN / 1e6, "output_cost_per_token": TEXT_OUT / 1e6}
    models = {
        "pictures": {"model": "openai/gpt-image-1", **once},
        "words": {"model": "openai/gpt-4.1-mini", **once, **prices},
        "unpriced": {"model": "openai/house-model", **once},
        "eager": {"model": "openai/gpt-image-1", **once, "num_retries": 1},
    }
    return {
        "model_list": [{"model_name": name, "litellm_params": one} for name, one in models.items()],
        "litellm_settings": {"num_retries": 0, "telemetry": False},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "general_settings": {"master_key": PROXY_SECRET},
    }


def _wait(url: str, process: "subprocess.Popen[bytes]", folder: Path) -> None:
    try:
        answer = httpx.get(f"{url}/health/readiness", timeout=PATIENCE, trust_env=False)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        process.kill()
        log = (folder / "log").read_text(errors="replace")[-2_000:]
        raise RuntimeError(f"the LiteLLM proxy did not start: {error}\n{log}") from error
