"""litellm itself: imported when a provider needs it, silent, without retries, files or connections of its own."""

import importlib
import logging
import os
import threading
from collections.abc import Coroutine
from typing import Any

import httpx

from tallystick.providers.litellm.wire import ThreadedWire, Wire
from tallystick.providers.registry import ProviderSetupError

# Read while it is imported: no list of prices from the network, no .env file from whatever folder this is.
_ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
_LOADING = threading.Lock()


def load() -> Any:
    """Return the module, ready for use; several seconds and 200 MB the first time.

    Raises:
        ProviderSetupError: it is not installed, or its clients cannot be given a transport.
    """
    with _LOADING:
        os.environ.update(_ENVIRONMENT)
        try:
            library: Any = importlib.import_module("litellm")
            clients: Any = importlib.import_module("litellm.llms.custom_httpx.http_handler")
            logbook: Any = importlib.import_module("litellm.litellm_core_utils.logging_worker")
        except ModuleNotFoundError as error:
            raise ProviderSetupError(
                f'the provider "litellm" needs a package that is not installed: {error.name}',
                hint="pip install 'tallystick[litellm]' into the environment of the daemon",
            ) from error
        if not hasattr(clients.AsyncHTTPHandler, "create_async_transport"):
            raise ProviderSetupError(
                "this version of litellm cannot be used: its requests could not be counted",
                hint="install the version that requirements.lock names",
            )
        clients.AsyncHTTPHandler.create_async_transport = staticmethod(_wire)
        library.sync_transport = ThreadedWire()
        library.client_session = httpx.Client(transport=ThreadedWire())
        library.suppress_debug_info = True
        library.drop_params = False
        library.telemetry = False
        logbook.GLOBAL_LOGGING_WORKER.ensure_initialized_and_enqueue = _forget
        # What it logs holds prompts and addresses; whatever ends a call is in the call's outcome.
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        return library


def _forget(async_coroutine: Coroutine[Any, Any, None]) -> None:
    """Drop a report to services that nobody has set up, and with it a task that would run for ever."""
    async_coroutine.close()


def _wire(*_: Any, **__: Any) -> Wire:
    return Wire()
